import { describe, expect, test } from 'vitest';
import { readServices } from '../../src/bundle/services-file.ts';
import type { ServicePort } from '../../src/cluster/model.ts';
import { findGonePorts, findStaleFlows, forgottenFlows } from '../../src/cluster/stale-flows.ts';
import { parseConntrack } from '../../src/kernel/conntrack.ts';
import { behavioursOf, releases, type Release } from '../../src/kube-proxy/releases.ts';
import { compile } from '../../src/library/index.ts';

const udp = { name: 'u', port: 53, protocol: 'UDP', targetPort: 5353, nodePort: 30053 };
const tcp = { name: 't', port: 80, protocol: 'TCP', targetPort: 8080, nodePort: 30080 };
const spec = { type: 'LoadBalancer', clusterIP: '10.96.0.53', externalIPs: ['192.0.2.7'], ports: [udp, tcp] };
const status = { loadBalancer: { ingress: [{ ip: '198.51.100.7' }] } };

const service = (over: object = {}, name = 'dns') => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'a' },
  spec: { ...spec, ...over },
  status,
});
const slice = (name = 'dns', address = '10.1.0.5', port = 'u') => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: `${name}-1`, namespace: 'a', labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  ports: [{ name: port, port: 5353, protocol: 'UDP' }],
  endpoints: [{ addresses: [address] }],
});
const other = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'other', namespace: 'a' },
  spec: { clusterIP: '10.96.0.99', ports: [{ port: 80 }] },
};

function portsOf(...objects: readonly object[]): readonly ServicePort[] {
  const manifests = [...objects, other].map((object, i) => ({ name: `${i}.json`, text: JSON.stringify(object) }));
  const { bundle, diagnostics } = compile({ manifests, proxyMode: 'iptables' });
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  const services = readServices(bundle?.files.get('services.json') ?? '');
  return 'problems' in services ? [] : services.value.servicePorts;
}

const flow = (to: string, port: number, answers = '10.1.0.5') =>
  `udp 17 29 src=10.0.0.1 dst=${to} sport=40000 dport=${port} src=${answers} dst=10.0.0.1 sport=5353 dport=40000 mark=0 use=1\n`;
const { flows } = parseConntrack(
  [
    flow('10.96.0.53', 53),
    flow('192.0.2.7', 53),
    flow('198.51.100.7', 53),
    flow('192.168.0.1', 30053),
    flow('10.96.0.53', 9),
    flow('10.96.0.1', 53),
  ].join(''),
);

function forgotten(release: Release, before: readonly object[], after: readonly object[]): readonly string[] {
  const [old, ports] = [portsOf(...before), portsOf(...after)];
  const rules = { ...forgottenFlows(behavioursOf(release)), isToNode: () => true };
  const stale = findStaleFlows(flows, { ports, gone: findGonePorts(old, ports) }, rules);
  return stale.map(({ flow: { destination } }) => `${destination.address.text}:${destination.port}`);
}

const before = [service(), slice()];
const headless = { type: 'ClusterIP', clusterIP: 'None', externalIPs: [], ports: [{ ...udp, nodePort: undefined }] };
const gone: readonly (readonly [string, readonly object[]])[] = [
  ['deleted', []],
  ['deleted, and its slice is still there', [slice()]],
  ['without its UDP port', [service({ ports: [tcp] }), slice()]],
  [
    'with its UDP port renamed, and no endpoint of the new name',
    [service({ ports: [{ ...udp, name: 'v' }, tcp] }), slice()],
  ],
  ['with its UDP port made TCP', [service({ ports: [{ ...udp, protocol: 'TCP' }, tcp] }), slice()]],
  ['made headless', [service(headless), slice()]],
  [
    'made ExternalName',
    [service({ type: 'ExternalName', externalName: 'a.example', clusterIP: undefined, externalIPs: [] })],
  ],
  ['deleted, and another of TCP has its address', [service({ ports: [{ ...udp, protocol: 'TCP' }] }, 'new')]],
];
const addresses = ['10.96.0.53:53', '192.0.2.7:53', '198.51.100.7:53'];

describe.each(gone)('of a Service %s', (_, after) => {
  test('1.38 forgets the flows to its addresses, and those to its node port never', () => {
    expect(forgotten('1.38', before, after)).toEqual(addresses);
  });

  test('1.32 to 1.37 forget none, unless a UDP port without endpoints has the address', () => {
    for (const release of releases.filter((each) => each >= '1.32' && each < '1.37')) {
      expect(forgotten(release, before, after), release).toEqual([]);
    }
  });

  test('1.30 and 1.31 forget all flows to its cluster IP, whatever their port', () => {
    for (const release of ['1.30', '1.31'] as const) {
      const those = forgotten(release, before, after).filter((to) => to.startsWith('10.96.0.53'));
      expect(those, release).toEqual(['10.96.0.53:53', '10.96.0.53:9']);
    }
  });
});

test.each<[string, readonly object[]]>([
  ['its TCP port goes', [service({ ports: [udp] }), slice()]],
  ['its UDP port has another number', [service({ ports: [{ ...udp, port: 54 }, tcp] }), slice()]],
  ['its cluster IP is another', [service({ clusterIP: '10.96.0.54' }), slice()]],
  ['an external IP goes', [service({ externalIPs: [] }), slice()]],
  ['nothing changes', before],
  [
    'its port is renamed, and the same endpoint serves',
    [service({ ports: [{ ...udp, name: 'v' }, tcp] }), slice('dns', '10.1.0.5', 'v')],
  ],
  ['another Service has its addresses and endpoint', [service({}, 'new'), slice('new')]],
])('no release forgets a flow where a UDP port is not gone, or another one serves the flow: %s', (_, after) => {
  for (const release of releases.filter((each) => each >= '1.32')) {
    expect(forgotten(release, before, after), release).toEqual([]);
  }
});

test('where another UDP port has the address, its serving endpoints decide', () => {
  const after = [service({ externalIPs: [] }, 'new'), slice('new', '10.1.0.6')];
  // The flow to the node port is stale, too: it is to the new Service's, and to none of its endpoints.
  expect(forgotten('1.38', before, after)).toEqual([...addresses, '192.168.0.1:30053']);
  expect(forgotten('1.37', before, after)).toEqual(['10.96.0.53:53', '198.51.100.7:53', '192.168.0.1:30053']);
});

test('a family that a Service loses is gone', () => {
  const dual = { clusterIP: 'fd00::53', clusterIPs: ['fd00::53', '10.96.0.53'], ipFamilies: ['IPv6', 'IPv4'] };
  const both = [service({ ...dual, ipFamilyPolicy: 'RequireDualStack' }), slice()];
  const one = [service({ clusterIP: 'fd00::53', clusterIPs: ['fd00::53'], ipFamilies: ['IPv6'], externalIPs: [] })];
  expect(forgotten('1.38', both, one)).toEqual(addresses);
});
