// Makes the review of a change, and formats it as JSON, Markdown and findings.
import { otherParts } from '../base/findings/answers.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { areSidesSame, type SideDiff, type ServicePortDiff } from '../ask/diff/diff-sides.ts';
import { effectsByService, type ServiceEffect, type ServiceEffects } from '../ask/equivalence/findings.ts';
import { severities } from '../ask/equivalence/effects.ts';
import { packetsTo, packetsToPlaced, pairsOnAny } from '../ask/equivalence/representatives.ts';
import { onOneNode, pairsElsewhere, sceneOf } from '../ask/trace/scene.ts';
import { sideChanges } from './diff-report.ts';
import { signs } from './formats/text.ts';
import { unlessEmpty } from './formats/json.ts';
import { lacksOf, type Review } from './diff-review.ts';
import { effectJson, type TraceWords } from './equivalence.ts';
import type { Shaped } from '../base/json/schema.ts';
import { describeKernelChange } from './changes.ts';
import type { KernelChange } from '../ask/changes/kernel-change.ts';
import { reasonJson, serviceReasonWords } from './port-facts.ts';
import type { difference, servicePortDifference } from './outputs/compile-and-compare.ts';
import type { kernelChange } from './outputs/envelope.ts';
import { groupBy } from '../cluster/grouping.ts';
import type { ArgumentsOf } from '../base/findings/codes.ts';
import { diagnose, type Finding } from '../base/findings/finding.ts';

/** The number of Service ports up to which unchanged ports are traced too. */
const mostWhole = 400;

/** The most distinct destinations to trace. Packets from many kinds of senders go to each. */
const mostAsked = 3000;

const noEffects: ServiceEffects = { effects: [], unknown: 0, unknownOnOne: 0, touchesHairpins: false };

/**
 * Reviews a change, including what happens to packets. In a large cluster, traces only the Service ports that differ. If something outside
 * Services differs, traces all Service ports, because any of them may be affected.
 */
export function makeReview(from: Snapshot, to: Snapshot, diff: SideDiff, trace: TraceWords): Review {
  const { servicePorts, base } = diff;
  if (servicePorts.length + base.length === 0) return { from, to, diff, packets: undefined, trace };
  const bareScene = (side: Snapshot) => sceneOf(side.with({ objects: undefined }));
  const labels = new Set(servicePorts.flatMap(({ label, formerLabel }) => [label, formerLabel]));
  const changed = [from, to].flatMap(({ cluster }) =>
    (cluster?.servicePorts ?? []).filter(({ label }) => labels.has(label)),
  );
  // kube-proxy programs nothing for the Services that differ, such as those of type ExternalName, so no packet can differ.
  if (changed.length + base.length === 0) return { from, to, diff, packets: noEffects, trace };
  const isWhole = base.length > 0 || [from, to].every(({ ports }) => ports.length <= mostWhole);
  const options = { only: isWhole ? undefined : packetsTo(changed), most: mostAsked };
  const packets = effectsByService(...onOneNode(bareScene(from), bareScene(to), [from, to]), options);
  if (!packets) return { from, to, diff, packets, trace };
  const only = packetsToPlaced(changed);
  const others = (only ? [...pairsElsewhere(from, to), ...pairsOnAny(from, to, changed)] : []).flatMap(
    ([old, fresh]) => effectsByService(...onOneNode(bareScene(old), bareScene(fresh), [from, to]), { only }) ?? [],
  );
  return { from, to, diff, packets: withoutOutsiders(withLosses(packets, others)), trace };
}

/** Adds differences on other Nodes that break or open something. Leaves out differences that this node has too. */
function withLosses(packets: ServiceEffects, others: readonly ServiceEffects[]): ServiceEffects {
  const keyOf = ({ target, senders, from, to, services }: ServiceEffect): string =>
    JSON.stringify([target, senders, from, to, services]);
  const known = groupBy(packets.effects, keyOf);
  const added = others
    .flatMap(({ effects }) => effects)
    .filter(({ severity }) => severity === 'breaks' || severity === 'opens')
    .flatMap((each): readonly ServiceEffect[] => {
      const here = new Set(known.get(keyOf(each))?.flatMap(({ asked }) => asked.map(({ id }) => id)));
      const asked = each.asked.filter(({ id }) => !here.has(id));
      return asked[0] ? [{ ...each, asked, example: asked[0].example }] : [];
    });
  const all = [...packets.effects, ...added];
  return { ...packets, effects: severities.flatMap((severity) => all.filter((each) => each.severity === severity)) };
}

/**
 * Leaves out clients outside the cluster that send to cluster IPs, because nobody expects this to work. Keeps them if nothing else differs.
 */
function withoutOutsiders(packets: ServiceEffects): ServiceEffects {
  const effects = packets.effects.flatMap((effect) => {
    const senders = effect.senders.filter(({ kind }) => effect.target !== 'cluster-ip' || kind !== 'outside');
    return senders.length === 0 ? [] : [{ ...effect, senders }];
  });
  return effects.length === 0 ? packets : { ...packets, effects };
}

export type ChangeJson = Shaped<typeof kernelChange>;

export type DifferenceJson = Shaped<typeof difference>;

export type ServicePortDifference = Shaped<typeof servicePortDifference>;

/** Returns the whole difference for programs, without limits on lists. `review` adds what happens to packets. */
export function diffToJson(from: Snapshot, to: Snapshot, diff: SideDiff, review?: Review): DifferenceJson {
  const [dead, live] = [diff.dead.map(changeToJson), diff.live.map(changeToJson)];
  const { compared } = diff;
  return {
    from: from.name,
    to: to.name,
    differs: !areSidesSame(diff),
    changed: unlessEmpty(sideChanges({ from, to })),
    notCompared: lacksOf({ from, to, diff }, review).notCompared,
    compared: compared && { servicePorts: compared.all, withoutEndpoints: compared.withoutEndpoints },
    servicePorts: diff.servicePorts.map(servicePortToJson),
    packets: review?.packets?.effects.map(({ asked, ...effect }) => ({
      ...effectJson(effect, review.trace),
      destinations: asked.map(({ example: { to: destination, protocol, nodePort, family } }) => {
        return { to: destination, protocol, nodePort, family };
      }),
    })),
    unknown: review?.packets?.unknown,
    unknownOnOne: review?.packets?.unknownOnOne,
    base: diff.base.map(changeToJson),
    foreign: diff.foreign.map(changeToJson),
    unaccounted: diff.unaccounted.map(changeToJson),
    leftovers: dead.length + live.length > 0 ? { dead, live } : undefined,
    rulesThatDifferInCommentsAlone: diff.comments || undefined,
  };
}

function servicePortToJson(port: ServicePortDiff): ServicePortDifference {
  return {
    servicePort: port.label,
    formerServicePort: port.formerLabel,
    change: port.change,
    place: port.place?.locate(),
    reasons: port.reasons.map(reasonJson),
    kernel: [...port.kernel, ...port.follows].map(changeToJson),
  };
}

function changeToJson({ kind, change, fields }: KernelChange): ChangeJson {
  return { kind, change, ...fields };
}

const mostLines = 20;

export function firstLines(lines: readonly string[]) {
  return { what: lines.slice(0, mostLines), more: Math.max(0, lines.length - mostLines) };
}

/** Describes a change in words, after the sign that text output also uses. */
function signedWords(change: KernelChange): string {
  return `${signs[change.change] ?? ''}${describeKernelChange(change)}`;
}

/** Returns a finding for each Service port that differs, and one for each other part. `golden`: the folder that should match the input. */
export function differencesFound(
  { servicePorts, ...others }: SideDiff,
  golden?: ArgumentsOf<'service-differs'>['golden'],
): readonly Finding[] {
  const ofServices = servicePorts.map(({ label: servicePort, change, reasons, kernel, place }) => {
    const lines = reasons.length > 0 ? reasons.map((reason) => serviceReasonWords(reason)) : kernel.map(signedWords);
    return diagnose('service-differs', { servicePort, change, ...firstLines(lines), golden }, place);
  });
  const ofParts = otherParts.flatMap((part) => {
    const lines = others[part].map(signedWords);
    return lines.length === 0 ? [] : [diagnose('state-differs', { golden, part, ...firstLines(lines) })];
  });
  return [...ofServices, ...ofParts];
}
