import { expect, test } from 'vitest';
import { compareScenes, healthAnswers, endsAlike, type Difference } from '../../src/ask/equivalence/compare.ts';
import { Findings } from '../../src/ask/equivalence/findings.ts';
import type { Divergence } from '../../src/ask/equivalence/effects.ts';
import { placesOfSenders } from '../../src/ask/equivalence/places.ts';
import { existsOn, knownOwnAddresses, placeSender } from '../../src/ask/equivalence/senders.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import type { PacketProtocol } from '../../src/packet/packet.ts';
import { packetOf } from '../../src/ask/trace/ask.ts';
import { readSender } from '../../src/ask/trace/read-sender.ts';
import { sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { labSide, readAddress, senders, senders6 } from '../packet/lab.ts';
import { portsOf } from '../packet/packets-of-side.ts';
import { makeRandom } from '../support/random.ts';
import { isFull, rounds, some } from '../support/rounds.ts';

const labScene = async (mode: ProxyMode): Promise<Scene> => sceneOf(await labSide(mode));

function find(from: Scene, to: Scene): readonly Divergence[] {
  const findings = new Findings();
  compareScenes(from, to, findings.collector(from, to));
  return findings.list();
}

/** Packets for each pair of modes. */
const most = isFull ? 20_000 : 10_000;

test('every difference over the packets that kernels were asked for is in a class that is reported', async () => {
  let packets = 0;
  let differing = 0;
  const pairs = [
    ['ipvs', 'nftables'],
    ['iptables', 'nftables'],
    ['ipvs', 'iptables'],
  ] as const;
  for (const [a, b] of some(pairs)) {
    const scenes = [await labScene(a), await labScene(b)] as const;
    const reported = effectsOf(find(...scenes));
    for (const difference of randomDifferences(scenes, rounds(most, 20), () => packets++)) {
      differing++;
      const alone = new Findings();
      alone.collector(...scenes)(difference);
      for (const effect of effectsOf(alone.list())) {
        const { source, destination, port } = difference.packet;
        const example = `${a} ${b} ${source?.text} to ${destination.text}:${port}: ${effect}`;
        expect(reported.has(effect) ? 'reported' : example).toBe('reported');
      }
    }
  }
  expect(packets).toBeGreaterThan(rounds(1.5 * most, 60));
  expect(differing).toBeGreaterThan(rounds(most / 20, 60));
}, 600_000);

function effectsOf(findings: readonly Divergence[]): ReadonlySet<string> {
  return new Set(
    findings.flatMap(({ cause, effects }) =>
      effects.map(({ target, from, to }) => `${cause}: ${target}: ${JSON.stringify([from, to])}`),
    ),
  );
}

/** Random packets that end otherwise on the two sides: to known and unknown places, from known and unknown senders. */
function* randomDifferences(
  [from, to]: readonly [Scene, Scene],
  count: number,
  sent: () => void,
): Generator<Difference> {
  const random = makeRandom(29);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const byte = (): number => Math.floor(random() * 254) + 1;
  const asked = portsOf(from.side);
  const nodes = knownOwnAddresses([from, to]);
  const answersTo = healthAnswers(from, to);
  const places = placesOfSenders([from, to]);
  for (let i = 0; i < count; i++) {
    const place = pick(asked);
    const isV6 = place.address.includes(':');
    const anyAddress = isV6 ? `fd00:96::${byte().toString(16)}` : `10.96.${pick([0, 3])}.${byte()}`;
    const address = readAddress(random() < 0.85 ? place.address : anyAddress);
    const protocol = random() < 0.8 ? place.protocol : pick<PacketProtocol>(['tcp', 'udp', 'sctp']);
    const port = protocol === 'icmp' ? 0 : random() < 0.8 ? pick(asked).port || 80 : Math.floor(random() * 65535) + 1;
    const known = pick(Object.values(isV6 ? senders6 : senders)) ?? 'node';
    const strangers = isV6
      ? [`fd00:1:1::${byte().toString(16)}`, `2001:db8::${byte().toString(16)}`]
      : [`10.1.1.${byte()}`, `10.1.2.${byte()}`, `192.168.0.${byte()}`, `8.8.${byte()}.${byte()}`];
    const text = random() < 0.6 ? known : pick(strangers);
    const sender = readSender({ from: text, inInterface: undefined, namespace: undefined }, address.family, from);
    if (sender.kind !== 'read') continue;
    const placed = placeSender(text, sender.value, places, nodes);
    if (!existsOn(nodes, placed, address)) continue;
    const packet = packetOf(placed, { address, port, protocol, label: undefined });
    sent();
    const fates = [from.evaluate(packet), to.evaluate(packet)] as const;
    const [before, after] = fates;
    if (endsAlike(fates, nodes)) continue;
    yield {
      sender: placed,
      packet,
      from: before,
      to: after,
      isOfConnection: false,
      answers: answersTo?.(packet, fates),
    };
  }
}
