import type { Shaped } from '../base/json/schema.ts';
import { isSame, type ServicePortDiff, type SideDiff } from '../ask/diff/diff-sides.ts';
import type { KernelChange } from '../ask/changes/kernel-change.ts';
import { reasonJson } from '../ask/diff/reason-words.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { describeGaps } from '../ask/diff/not-compared.ts';
import { uncomparedPackets, type Review } from './diff-review.ts';
import { effectJson } from './equivalence.ts';
import type { difference, servicePortDifference } from './outputs/diff.ts';
import type { kernelChange } from './outputs/shared.ts';

export type ChangeJson = Shaped<typeof kernelChange>;

export type DifferenceJson = Shaped<typeof difference>;

export type ServicePortDifference = Shaped<typeof servicePortDifference>;

/** The complete difference for programs, without limits; `review` adds what happens to packets. */
export function diffToJson(from: Snapshot, to: Snapshot, diff: SideDiff, review?: Review): DifferenceJson {
  const [dead, live] = [diff.dead.map(changeToJson), diff.live.map(changeToJson)];
  return {
    from: from.name,
    to: to.name,
    differs: !isSame(diff),
    notCompared: [...describeGaps(diff.gaps), ...(review ? uncomparedPackets(review) : [])],
    servicePorts: diff.servicePorts.map(servicePortToJson),
    ...(review?.packets
      ? {
          packets: review.packets.effects.map((effect) => effectJson(effect, review.trace)),
          unknown: review.packets.unknown,
        }
      : {}),
    base: diff.base.map(changeToJson),
    foreign: diff.foreign.map(changeToJson),
    unaccounted: diff.unaccounted.map(changeToJson),
    ...(dead.length + live.length > 0 ? { leftovers: { dead, live } } : {}),
    ...(diff.comments > 0 ? { rulesThatDifferInCommentsAlone: diff.comments } : {}),
  };
}

function servicePortToJson(port: ServicePortDiff): ServicePortDifference {
  const place = port.place?.locate();
  return {
    servicePort: port.label,
    ...(port.formerLabel === undefined ? {} : { formerServicePort: port.formerLabel }),
    change: port.change,
    ...(place ? { place } : {}),
    reasons: port.reasons.map(reasonJson),
    kernel: [...port.kernel, ...port.follows].map(changeToJson),
  };
}

function changeToJson({ kind, change, fields }: KernelChange): ChangeJson {
  return { kind, change, ...fields };
}
