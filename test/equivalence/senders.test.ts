// Which senders exist: what no host sends, or what does not come by the node, is not compared.
import { expect, test } from 'vitest';
import { placesOfSenders } from '../../src/ask/equivalence/places.ts';
import { existsOn, type PlacedSender } from '../../src/ask/equivalence/senders.ts';
import type { Address } from '../../src/kernel/address.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
import { equivalence, open } from '../../src/library/index.ts';
import { readAddress } from '../packet/lab.ts';

const nodes: ReadonlyMap<string, Address> = new Map(
  ['192.168.0.1', '127.0.0.1'].map((text) => [text, readAddress(text)] as const),
);

function sender(place: PlacedSender['place'], address: string | undefined): PlacedSender {
  return {
    who: { kind: 'client' },
    place,
    address: address === undefined ? undefined : readAddress(address),
    enters: place === 'node' ? undefined : { interface: 'eth0' },
  };
}

test.each([
  // A pod elsewhere asks its own node for a Service, and comes here for this node's addresses alone.
  ['other-node', '10.1.2.5', '10.96.0.1', false],
  ['other-node', '10.1.2.5', '192.168.0.1', true],
  ['pod', '10.1.1.5', '10.96.0.1', true],
  ['outside', '198.51.100.1', '10.96.0.1', true],
  // A node's own address never arrives from a wire.
  ['pod', '192.168.0.1', '10.96.0.1', false],
  ['node', '192.168.0.1', '10.96.0.1', true],
  // Loopback addresses are each host's own.
  ['outside', '198.51.100.1', '127.0.0.1', false],
  ['node', '127.0.0.1', '127.0.0.1', true],
  ['node', '127.0.0.1', '10.96.0.1', false],
  ['node', undefined, '127.0.0.1', true],
  // A host's packets to itself do not pass here.
  ['pod', '10.1.1.5', '10.1.1.5', false],
  // No router forwards to a link-local address.
  ['outside', '198.51.100.1', '169.254.20.10', false],
  ['pod', '10.1.1.5', '169.254.20.10', true],
  ['node', undefined, '169.254.20.10', true],
  // An address that a mode gives the node for a Service is no client's.
  ['node', '10.96.0.9', '10.96.0.1', false],
] as const)('from %s (%s) to %s: %s', (place, from, to, wanted) => {
  expect(existsOn(nodes, sender(place, from), readAddress(to))).toBe(wanted);
});

test("a dump's routes show which endpoints are pods of another node", () => {
  const servers =
    '-A -t 10.96.0.1:80 -s rr\n-a -t 10.96.0.1:80 -r 10.1.1.5:80 -m -w 1\n-a -t 10.96.0.1:80 -r 10.1.2.5:80 -m -w 1\n';
  const routes = '10.1.1.0/24 dev cni0 proto kernel scope link src 10.1.1.1\n10.1.2.0/24 via 192.168.0.2 dev eth0\n';
  const placesIn = (text: string) => {
    const side = readDump(new Map([['node.txt', text]]));
    const { state, coverage, doubts, routes: known } = side;
    const scene = sceneOf(
      new DumpedSnapshot({ name: 'node.txt', state: () => state, coverage, doubts, routes: known }),
    );
    const places = placesOfSenders([scene, scene]);
    return ['10.1.1.5', '10.1.2.5'].map((address) => places.find(readAddress(address)));
  };
  expect(placesIn(servers + routes)).toEqual(['pod', 'other-node']);
  expect(placesIn(servers)).toEqual(['pod', 'pod']);
});

test("the node's pod networks show which endpoints without a nodeName are on it", () => {
  const [side] = open(
    {
      'web.yaml': `
{ apiVersion: v1, kind: Node, metadata: { name: n1 }, spec: { podCIDR: 10.244.1.0/24, podCIDRs: [10.244.1.0/24] } }
---
{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { clusterIP: 10.96.0.80, ports: [{ port: 80 }] } }
---
{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: { name: web-1, labels: { kubernetes.io/service-name: web } },
  addressType: IPv4, ports: [{ port: 80 }], endpoints: [{ addresses: [10.244.1.21] }, { addresses: [10.244.2.21] }] }`,
    },
    { node: 'n1' },
  ).snapshots;
  if (!side) throw new Error('the manifests are not read');
  const places = placesOfSenders([sceneOf(side), sceneOf(side)]);
  expect(places.find(readAddress('10.244.1.21'))).toBe('pod');
  expect(places.find(readAddress('10.244.2.21'))).toBe('other-node');
});

test('the first Service address is no example of an address without a Service', () => {
  const service =
    '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { type: NodePort, clusterIP: 10.96.0.80, ';
  const { report } = equivalence({
    manifests: { 'web.yaml': `${service}ports: [{ port: 80, nodePort: 30080 }] } }` },
    serviceClusterIpRange: '10.96.0.0/12',
    from: 'iptables',
    to: 'nftables',
  });
  const asked = (report?.causes ?? []).flatMap(({ effects }) => effects.map(({ example }) => example.to));
  expect(asked.some((to) => to.startsWith('10.96.0.2:'))).toBe(true);
  expect(asked.filter((to) => to.startsWith('10.96.0.1:'))).toEqual([]);
});
