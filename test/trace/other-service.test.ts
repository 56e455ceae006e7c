// A cluster IP that a new Service reuses while the node still has the rules of the old one.
import { describe, expect, test } from 'vitest';
import { open, trace } from '../../src/library/index.ts';
import { besideManifests } from '../../src/ask/trace/beside-manifests.ts';
import { ask } from '../../src/ask/trace/ask.ts';
import { compareFate } from '../../src/ask/trace/expectation.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';

const addresses = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 192.168.50.11/24 scope global eth0
`;
const rules = `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.7.1/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "shop/web:http -> 10.244.2.31:8080" -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination 10.244.2.31:8080
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
`;
const servers = `$ iptables-save
*nat
:PREROUTING ACCEPT [0:0]
COMMIT
*filter
:FORWARD ACCEPT [0:0]
COMMIT
$ ipset save
$ ipvsadm -Ln
IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.7.1:80 rr
  -> 10.244.2.31:8080             Masq    1      0          0
3: kube-ipvs0: <BROADCAST,NOARP> mtu 1500
    inet 10.96.7.1/32 scope global kube-ipvs0
`;
const manifests = (name: string, endpoint: string) => `apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { clusterIP: 10.96.7.1, ports: [{ name: http, port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-1, namespace: shop, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [${endpoint}] }]
`;

const packet = { from: '10.244.1.9', protocol: undefined, inInterface: undefined, namespace: undefined };

describe.each([
  [
    'rules that name another Service',
    rules,
    'newsvc',
    '10.244.2.200',
    { asked: 'shop/newsvc:http', by: 'shop/web:http' },
  ],
  ['rules of the Service', rules, 'web', '10.244.2.31', undefined],
  ['no endpoint of the Service', rules, 'web', '10.244.2.200', { asked: 'shop/web:http', by: undefined }],
  ['real servers of another', servers, 'newsvc', '10.244.2.200', { asked: 'shop/newsvc:http', by: undefined }],
] as const)('%s', (_, listing, name, endpoint, otherService) => {
  const [side] = open({ node: listing + addresses, 'm.yaml': manifests(name, endpoint) }).snapshots;
  test.each([`svc/shop/${name}`, '10.96.7.1:80'])('to %s', (to) => {
    if (!side) throw new Error('not opened');
    expect(trace({ side, from: packet.from, to }).trace?.traces[0]?.otherService).toEqual(otherService);
    const scene = sceneOf(side);
    const found = ask({ ...packet, to }, scene);
    if (found.kind !== 'read') throw new Error('not read');
    const { verdict } = found.value.fate;
    const expected = { verdict, endpoints: undefined, source: undefined } as const;
    const faults = verdict === 'delivered' && otherService ? [{ kind: 'other-service' }] : [];
    expect(compareFate(found.value, expected, scene)).toEqual(faults);
  });
});

describe('a Service that the node still has otherwise than the manifests beside it', () => {
  const changed = (endpoint: string) => manifests('web', endpoint).replace('10.96.7.1', '10.96.7.22');
  test.each([
    ['svc/shop/web', rules, '10.96.7.22', 'forwarded', ['10.96.7.1:80']],
    ['web.shop.svc.cluster.local', rules, '10.96.7.22', 'forwarded', ['10.96.7.1:80']],
    ['10.96.7.1:80', rules, '10.96.7.1', 'delivered', ['10.96.7.1:80']],
    // In IPVS mode nothing names the old virtual server.
    ['svc/shop/web', servers, '10.96.7.22', 'forwarded', undefined],
  ] as const)('%s', (to, listing, address, verdict, node) => {
    const [side] = open({ node: listing + addresses, 'm.yaml': changed('10.244.2.31') }).snapshots;
    if (!side) throw new Error('not opened');
    const found = ask({ ...packet, to }, sceneOf(side));
    if (found.kind !== 'read') throw new Error('not read');
    expect(found.value.target.address.text).toBe(address);
    expect(found.value.fate.otherwise?.verdict ?? found.value.fate.verdict).toBe(verdict);
    expect(besideManifests(found.value.target, side)?.places).toEqual(node && { node, manifests: ['10.96.7.22:80'] });
  });

  test.each([
    ['10.244.2.31', { node: [], manifests: [] }],
    ['10.244.2.31, 10.244.2.99', { node: [], manifests: ['10.244.2.99:8080'] }],
    ['10.244.2.99', { node: ['10.244.2.31:8080'], manifests: ['10.244.2.99:8080'] }],
  ])('its endpoints: %s', (endpoints, expected) => {
    const listed = endpoints.replace(', ', ']}, {addresses: [');
    const [side] = open({ node: rules + addresses, 'm.yaml': manifests('web', listed) }).snapshots;
    if (!side) throw new Error('not opened');
    const found = ask({ ...packet, to: 'svc/shop/web' }, sceneOf(side));
    if (found.kind !== 'read') throw new Error('not read');
    expect(besideManifests(found.value.target, side)?.endpoints).toEqual(expected);
  });
});
