// Describes how packets of one kind end on a side, in values that can be compared as JSON.
import type { ShownPort } from '../../cluster/model.ts';
import type { Address } from '../../kernel/address.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import {
  failingShare,
  type Fate,
  isArrival,
  type ReachedEndpoint,
  sumChances,
  type Verdict,
} from '../../packet/packet.ts';
import { conditionOf, isUndetectedPod } from '../trace/obstacles.ts';
import type { StopCondition } from '../trace/question.ts';
import { isLocalEndpoint, type Scene } from '../trace/scene.ts';
import { isLeft, stopOf } from '../trace/stop.ts';
import { differingParts, type DifferingParts } from './differing-parts.ts';
import { type CauseId, type CauseReason, type Losing, type StopOfNode } from './causes.ts';
import { type Answers, type Difference, sourceWord } from './compare.ts';

export interface End extends StopCondition {
  readonly verdict: Verdict;
  /** The HTTP status of kube-proxy's answer to a health check. */
  readonly answer: 200 | 503 | '200 or 503' | undefined;
  /** The chosen endpoints, if the other side chooses differently. */
  readonly chosen: ChosenEndpoints | undefined;
  readonly sources: readonly SeenSource[] | undefined;
  /** How many of the connections whose first packet arrives fail later. */
  readonly loses: 'all' | 'some' | 'none';
  /** Whether kube-proxy stops a pod's packet because no setting tells it which clients are pods. */
  readonly isUndetected: boolean;
}

type ChosenEndpoints =
  /** Each endpoint's share of connections, rounded to thousandths. */
  | { readonly kind: 'shares'; readonly shares: readonly number[] }
  | { readonly kind: 'endpoints'; readonly on: 'unknown' | 'this-node' | 'other-nodes' | 'all-nodes' };

/** Whose address receivers see as the source. */
export type SeenSource = 'client' | 'node' | 'service';

export interface SeenSources {
  readonly from: readonly SeenSource[];
  readonly to: readonly SeenSource[];
}

export function endsOf(
  { sender, packet, from, to, answers }: Difference,
  seen: SeenSources | undefined,
  [old, fresh]: readonly [Scene, Scene],
): { readonly from: End; readonly to: End } {
  const choice = compareChoice(from, to);
  const target = { ...packet, address: packet.destination, label: undefined };
  const endOf = (fate: Fate, side: keyof Answers & keyof SeenSources, scenes: readonly [Scene, Scene]): End => ({
    verdict: fate.verdict,
    answer: statusOf(answers?.[side]?.status),
    chosen: fate.endpoints.length === 0 ? undefined : chosenOf(choice, fate, scenes),
    sources: seen?.[side],
    loses: judgeLoss(fate),
    ...conditionOf(target, fate, scenes[0]),
    isUndetected: stopOf(fate) !== undefined && isUndetectedPod({ sender, target, fate }, scenes[0]),
  });
  return { from: endOf(from, 'from', [old, fresh]), to: endOf(to, 'to', [fresh, old]) };
}

function statusOf(status: NonNullable<Answers['from']>['status'] | undefined): End['answer'] {
  return status === 'unknown' ? '200 or 503' : status;
}

function judgeLoss(fate: Fate): End['loses'] {
  const lost = failingShare(fate);
  if (!isArrival(fate.verdict) || isNearly(lost, 0)) return 'none';
  return isNearly(lost, 1) ? 'all' : 'some';
}

/** A dump does not show the nodes of endpoints, but the other side may. The first scene in `scenes` is the side's own. */
function chosenOf(choice: Choice, { endpoints }: Fate, scenes: readonly Scene[]): ChosenEndpoints | undefined {
  if (choice === 'same') return undefined;
  if (choice === 'other-shares') {
    const shares = [...sumChances(endpoints, formatSocketAddress).values()];
    return { kind: 'shares', shares: shares.map((share) => Math.round(share * 1000) / 1000) };
  }
  const isHere = (each: ReachedEndpoint): boolean | undefined =>
    scenes.map((scene) => isLocalEndpoint(scene, each)).find((isLocal) => isLocal !== undefined);
  const places = new Set(endpoints.map(isHere));
  if (places.has(undefined)) return { kind: 'endpoints', on: 'unknown' };
  if (places.size > 1) return { kind: 'endpoints', on: 'all-nodes' };
  return { kind: 'endpoints', on: places.has(true) ? 'this-node' : 'other-nodes' };
}

/** Whether both sides choose endpoints alike, the same endpoints with other shares, or other endpoints. */
type Choice = 'same' | 'other-shares' | 'other-endpoints';

/** Compares the choice of endpoints. If the packets end differently on the two sides, there is no choice to compare. */
export function compareChoice(from: Fate, to: Fate): Choice {
  if (from.verdict !== to.verdict || chancesOf(from.endpoints) === chancesOf(to.endpoints)) return 'same';
  const [before, after] = [from, to].map(({ endpoints }) =>
    [...sumChances(endpoints, formatSocketAddress).keys()].join(),
  );
  return before === after ? 'other-shares' : 'other-endpoints';
}

export function chancesOf(
  endpoints: readonly ReachedEndpoint[],
  wordOf: (endpoint: ReachedEndpoint) => string = formatSocketAddress,
): string {
  return [...sumChances(endpoints, wordOf)].map(([where, chance]) => `${where} ${chance.toFixed(5)}`).join();
}

/** Returns whose address receivers see on each side, if packets arrive alike on both sides but receivers see different addresses. */
export function seenSources(
  { from, to, packet }: Difference,
  nodes: ReadonlyMap<string, Address>,
): SeenSources | undefined {
  const nameOf = (source: Fate['source']): SeenSource => {
    const word = sourceWord(source, nodes);
    if (word === 'node') return word;
    return word === packet.destination.text ? 'service' : 'client';
  };
  const seenOn = (fate: Fate): readonly SeenSource[] => {
    const seen = fate.endpoints.length > 0 ? fate.endpoints : [fate];
    return [...new Set(seen.map(({ source }) => nameOf(source)))].sort();
  };
  if (from.verdict !== to.verdict || !isArrival(from.verdict)) return undefined;
  const [before, after] = [seenOn(from), seenOn(to)];
  return before.join() === after.join() ? undefined : { from: before, to: after };
}

/** Returns how connections fail, or may fail, after their first packet has arrived. Empty if no failure is known. */
export function lossesOf(fate: Fate): readonly Losing[] {
  if (fate.verdict === 'unknown') return [];
  const { kind, ways } = fate.connection();
  if (kind === 'works' || kind === 'unknown') return [];
  const own = ways.filter(({ way }) => isArrival(fate.verdict) || isArrival(way.verdict));
  return own.flatMap(({ outcome }) => ('loss' in outcome ? outcome : []));
}

export function isNearly(share: number, other: number): boolean {
  return Math.abs(share - other) < 1e-6;
}

interface StepCause {
  readonly cause: CauseId;
  readonly because: readonly CauseReason[];
}

/** The causes that no rule or sysctl overrides, even if one also stops packets. */
const settled: ReadonlySet<CauseId> = new Set([
  'lost-jump',
  'one-sided',
  'service-addresses',
  'node-addresses',
  'service-fields',
  'service-endpoints',
  'behaviour',
  'external-ips',
  'connection',
  'ungiven-endpoints',
  'not-understood',
]);

const ofSetup: ReadonlySet<CauseId> = new Set([
  'node-port-addresses',
  'node-port-loopback',
  'external-policy-local',
  'internal-policy-local',
  'hairpin',
]);

/** Returns a function that finds what, instead of the `cause`, decides a difference. The function returns undefined if nothing does. */
export function stepFinder(scenes: readonly [Scene, Scene], isOneSetup: boolean) {
  // If both sides are compiled from manifests, their rules are never out of date.
  const areCompiled = scenes.every(({ side: { kind } }) => kind === 'manifests');
  let known: DifferingParts | undefined;
  return (cause: CauseId, { from, to }: Difference, ports: readonly ShownPort[]): StepCause | undefined => {
    if (settled.has(cause)) return undefined;
    const changed = areCompiled ? undefined : (known ??= differingParts(scenes));
    // If only one side leaves the packet as it is, what stops it afterwards is not the cause.
    const isTaken = !isLeft(from) || !isLeft(to);
    const stops = [from, to].map((fate) => stopsOf(isTaken && isLeft(fate) ? [] : fate.ways));
    const because = (kind: StopOfNode['kind']): readonly CauseReason[] =>
      scenes.flatMap(({ side }, at) => {
        const others = stops[1 - at];
        return [...(stops[at] ?? [])].flatMap(([key, stop]) =>
          stop.kind === kind && !others?.has(key) ? [{ kind: 'stop', side: side.name, stop } as const] : [],
        );
      });
    const kernel = changed?.kernel === false ? [] : because('kernel');
    const lost = isOneSetup ? changed?.lost(ports) : undefined;
    if (lost) return { cause: 'rules', because: [lost, ...kernel] };
    const foreign = changed?.foreign === false ? [] : because('stranger');
    if (foreign.length > 0) return { cause: 'foreign-rules', because: foreign };
    if (!isOneSetup) return undefined;
    const isSameState = changed?.rules(ports) === false;
    const delivers = [from, to].filter(({ endpoints }) => endpoints.length > 0).length;
    if (!isSameState && !(ofSetup.has(cause) || (cause === 'other' && delivers === 1))) return undefined;
    const sysctls = (changed?.sysctls ?? []).map((change) => ({ kind: 'sysctl', ...change }) as const);
    if (kernel.length > 0) return { cause: 'kernel', because: kernel };
    if (isSameState) return changed?.kernel ? { cause: 'kernel', because: sysctls } : undefined;
    if (compareChoice(from, to) === 'other-endpoints') return { cause: 'endpoints', because: [] };
    return areCompiled ? undefined : { cause: 'rules', because: [] };
  };
}

/**
 * Returns what stops some of the packets: rules of other programs, or the kernel. Leaves out packets from an endpoint to itself, because
 * these may fail without a fault on the node.
 */
function stopsOf(ways: Fate['ways']): ReadonlyMap<string, StopOfNode> {
  const stops = ways.flatMap((way): readonly (readonly [string, StopOfNode])[] => {
    const stop = stopOf(way);
    if (stop?.kind === 'kernel' && stop.decision.kind !== 'own-address') return [[stop.decision.kind, stop]];
    if (stop?.kind !== 'stranger') return [];
    const { kind, tool, table, chain } = stop.step;
    return [[[kind, tool, table, chain].join(' '), stop]];
  });
  return new Map(stops);
}
