// Which senders exist: what no host sends, or what does not come by the node, is not compared.
import { expect, test } from 'vitest';
import { placesOfSenders } from '../../src/ask/equivalence/places.ts';
import { existsOn, type PlacedSender } from '../../src/ask/equivalence/senders.ts';
import type { Address } from '../../src/kernel/address.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
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
