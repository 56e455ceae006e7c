// In IPVS mode every node has the addresses of Services. What the node sends to one of them without masquerading comes from that address.
import { expect, test } from 'vitest';
import { ask } from '../../src/ask/trace/ask.ts';
import { sceneOfManifests } from '../support/manifest-scene.ts';

const node = (at: number): string =>
  `{apiVersion: v1, kind: Node, metadata: {name: n${at}}, spec: {podCIDRs: [10.244.${at}.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.5.${at}}]}}`;

const endpoint = (address: string, nodeName: string): string => `{addresses: ["${address}"]${nodeName}}`;

const cluster = (endpoints: string, clusterIP: string, outer: string, family: string): string =>
  [
    node(1),
    node(2),
    `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, clusterIP: "${clusterIP}", ipFamilies: [${family}], externalTrafficPolicy: Local, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}, status: {loadBalancer: {ingress: [{ip: "${outer}"}]}}}`,
    `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, addressType: ${family}, ports: [{port: 8080}], endpoints: [${endpoints}]}`,
  ].join('\n---\n');

const here = endpoint('10.244.1.10', ', nodeName: n1');
const there = endpoint('10.244.2.10', ', nodeName: n2');
const outer = '203.0.113.80:80';

function outcomes(text: string, proxyMode: 'ipvs' | 'iptables', from: string, to: string) {
  const scene = sceneOfManifests(text, 'n1', { proxyMode });
  const answer = ask({ from, to, protocol: 'tcp', inInterface: undefined, namespace: undefined }, scene);
  if (answer.kind === 'wrong') throw new Error(JSON.stringify(answer.faults));
  const { fate } = answer.value;
  const losses = fate.connection().ways.map(({ outcome }) => ('loss' in outcome ? outcome.loss?.kind : undefined));
  return [fate.verdict, fate.connection().kind, ...losses];
}

test.each([
  ['IPv4', '10.96.0.10', '203.0.113.80', there, outer],
  ['IPv6', 'fd00:10:96::10', '2001:db8::80', endpoint('fd00:10:244:2::10', ', nodeName: n2'), '[2001:db8::80]:80'],
])(
  'the node gets no answer from an endpoint on another node, which has the address too (%s)',
  (family, ip, at, end, to) => {
    expect(outcomes(cluster(end, ip, at, family), 'ipvs', 'node', to)).toEqual(['delivered', 'fails', 'shared-source']);
  },
);

test('where an endpoint of no known node is decides', () => {
  const text = cluster(endpoint('10.244.2.10', ''), '10.96.0.10', '203.0.113.80', 'IPv4');
  expect(outcomes(text, 'ipvs', 'node', outer)).toEqual(['delivered', 'depends', 'shared-source']);
});

test.each([
  ['to an endpoint of its own', here, 'ipvs', 'node', outer],
  ['to the cluster IP, where it masquerades', there, 'ipvs', 'node', '10.96.0.10:80'],
  ['to its node port', there, 'ipvs', 'node', '192.168.5.1:30080'],
  ['in another mode', there, 'iptables', 'node', outer],
  ['and a Pod has an address of its own', there, 'ipvs', 'pod', outer],
] as const)('no such thing %s', (_, endpoints, mode, from, to) => {
  const text = cluster(endpoints, '10.96.0.10', '203.0.113.80', 'IPv4');
  expect(outcomes(text, mode, from, to)).not.toContain('shared-source');
  expect(outcomes(text, mode, from, to)[0]).toBe('delivered');
});
