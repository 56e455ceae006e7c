// One place says why a Service has no endpoints, for lint and for all that asks about packets.
import { expect, test } from 'vitest';
import { summarizeServices } from '../../../src/say/describe/table.ts';
import { lint, open } from '../../../src/library/index.ts';
import { faultsOfPort } from '../../../src/snapshot/faults.ts';

const service =
  'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.10, selector: { app: web }, ports: [{ port: 80 }] }\n---\n';
const slice = (addressType: string, addresses: string, port = 'port: 80') =>
  `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: web-1, labels: { kubernetes.io/service-name: web } }\naddressType: ${addressType}\nports: [{ ${port} }]\nendpoints: [${addresses}]\n---\n`;
const pod = (name: string, status: string) =>
  `apiVersion: v1\nkind: Pod\nmetadata: { name: ${name}, labels: { app: web } }\nspec: { nodeName: n1, containers: [{ name: c, image: c }] }\nstatus: { ${status} }\n---\n`;
const ended = 'phase: Succeeded, podIP: 10.244.0.5, podIPs: [{ ip: 10.244.0.5 }]';
const ofIPv6 = 'phase: Running, podIP: "fd00::6", podIPs: [{ ip: "fd00::6" }]';
const running = 'phase: Running, podIP: 10.244.0.6, podIPs: [{ ip: 10.244.0.6 }]';

test.each([
  ['an empty slice', slice('IPv4', ''), {}],
  [
    'a slice of the other family',
    slice('IPv6', '{ addresses: ["fd00::5"] }'),
    { unused: { by: 'address-type', types: ['IPv6'] } },
  ],
  [
    'a slice of host names',
    slice('FQDN', '{ addresses: [a.example] }'),
    { unused: { by: 'address-type', types: ['FQDN'] } },
  ],
  [
    'a slice whose port has no number',
    slice('IPv4', '{ addresses: [10.244.0.5] }', 'protocol: TCP'),
    { unused: { by: 'port' } },
  ],
  ['a Pod that has ended', pod('a', ended), { owner: 'Pod default/a', pods: ['ended'] }],
  [
    'Pods that are Pending',
    pod('a', 'phase: Pending') + pod('b', 'phase: Pending'),
    { owner: 'Pod default/a', pods: ['pending'] },
  ],
  [
    'Pods of both',
    pod('a', 'phase: Pending') + pod('b', ended),
    { owner: 'Pod default/a', pods: ['ended', 'pending'] },
  ],
  ['a Pod of the other family', pod('a', ofIPv6), { owner: 'Pod default/a', pods: ['other-family'] }],
  [
    'Pods of all kinds, beside an empty slice',
    slice('IPv4', '') + pod('a', ended) + pod('b', 'phase: Pending') + pod('c', ofIPv6),
    { owner: 'Pod default/a', pods: ['ended', 'pending', 'other-family'] },
  ],
  ['a Pod that runs, and an empty slice', slice('IPv4', '') + pod('a', running), { owner: 'Pod default/a' }],
])('%s', (_, more, why) => {
  const manifests = { 'in.yaml': service + more };
  const details = { service: 'default/web', endpoints: 0, publishes: false, isScaledToZero: false, ...why };
  const [side] = open(manifests, { proxyMode: 'nftables', node: 'n1' }).snapshots;
  const faults = side?.kind === 'manifests' ? side.faultsOf('default/web') : [];
  expect(faults.map(({ code, arguments: found }) => ({ code, found }))).toEqual([
    { code: 'no-ready-endpoint', found: details },
  ]);
  const { findings } = lint({ manifests });
  expect(findings.map(({ code, arguments: found }) => ({ code, found }))).toEqual([
    { code: 'no-ready-endpoint', found: JSON.parse(JSON.stringify(details)) as object },
  ]);
});

test('nothing of a Service that another Pod serves', () => {
  const [side] = open(
    { 'in.yaml': service + pod('a', ended) + pod('b', running) },
    { proxyMode: 'nftables' },
  ).snapshots;
  expect(side?.kind === 'manifests' && side.faultsOf('default/web')).toEqual([]);
});

test('a port that no container names is the only reason, in slices made from Pods', () => {
  const named = service.replace('port: 80', 'port: 80, targetPort: htp');
  const manifests = { 'in.yaml': named + pod('a', running) };
  const [side] = open(manifests, { proxyMode: 'nftables', node: 'n1' }).snapshots;
  const faults = side?.kind === 'manifests' ? side.faultsOf('default/web') : [];
  expect(faults.map(({ code }) => code)).toEqual(['unknown-port']);
  expect(lint({ manifests }).findings.map(({ code }) => code)).toEqual(['unknown-port']);
});

test('a family without endpoints is the reason of its ports alone', () => {
  const dual = service.replace(
    'clusterIP: 10.96.0.10',
    "clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10, 'fd00::10'], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack",
  );
  const [side] = open(
    { 'in.yaml': dual + pod('a', `${running}, conditions: [{ type: Ready, status: 'True' }]`) },
    { proxyMode: 'nftables', node: 'n1' },
  ).snapshots;
  if (side?.kind !== 'manifests') throw new Error('manifests');
  expect(side.ports.map((port) => [port.family, faultsOfPort(port, side).map(({ code }) => code)])).toEqual([
    ['ipv4', []],
    ['ipv6', ['family-without-endpoints']],
  ]);
  expect(summarizeServices(side).map(({ notes }) => notes)).toEqual([['no IPv6 endpoints']]);
});
