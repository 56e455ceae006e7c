import { isSameValue } from '../../base/json/same-value.ts';
import type { Family } from '../../kernel/address.ts';
import type { Outcome } from '../../packet/packet.ts';
import type { SenderPlace } from './places.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import type { Behaviour, BehaviourReason, Release } from '../../kube-proxy/releases.ts';
import { serviceName, type ShownPort } from '../../cluster/model.ts';
import { uniqueBy } from '../../cluster/grouping.ts';
import { externalPolicyOf, internalPolicyOf } from '../../cluster/plan-traffic.ts';
import type { KernelChange } from '../changes/kernel-change.ts';
import { ipModeReasons, programmed, type ServiceReason } from '../diff/service-reasons.ts';
import type { Scene } from '../trace/scene.ts';
import type { Stop } from '../trace/stop.ts';

export const causeIds = [
  'lost-jump',
  'one-sided',
  'service-addresses',
  'node-addresses',
  'foreign-rules',
  'kernel',
  'rules',
  'service-fields',
  'service-endpoints',
  'behaviour',
  'node-port-addresses',
  'node-port-loopback',
  'external-ips',
  'external-policy-local',
  'internal-policy-local',
  'source-ranges',
  'connection',
  'no-endpoints',
  'hairpin',
  'masquerade',
  'endpoints',
  'health-check',
  'unserved-port',
  'ping',
  'unserved-address',
  'proxy-port',
  'ungiven-endpoints',
  'not-understood',
  'other',
] as const;

export type CauseId = (typeof causeIds)[number];

export interface Situation {
  readonly place: SenderPlace;
  /** Whether kube-proxy on the new side can tell the sender from clients outside the cluster, if the sender is a Pod. */
  readonly detectsPods: boolean;
  /** Whether a health check node port shows load balancers which nodes have an endpoint. */
  readonly isChecked: boolean;
}

export type CauseReason =
  /** The modes of the two sides. A side's mode is undefined if nothing shows it. */
  | { readonly kind: 'modes'; readonly from: ModeOfSide | undefined; readonly to: ModeOfSide | undefined }
  | BehaviourReason
  | { readonly kind: 'fields'; readonly from: readonly FieldValue[]; readonly to: readonly FieldValue[] }
  | { readonly kind: 'service'; readonly service: string; readonly reason: ServiceReason }
  | { readonly kind: 'lost-jump'; readonly side: string; readonly from: string; readonly to: string | undefined }
  | { readonly kind: 'stop'; readonly side: string; readonly stop: StopOfNode }
  | { readonly kind: 'sysctl'; readonly name: string; readonly from: string; readonly to: string }
  | LostRules
  | { readonly kind: 'losses'; readonly side: string; readonly family: Family; readonly losses: readonly Losing[] };

/** Objects of kube-proxy that `side` lacks and the other side has. `lost`: the first few of these. `more`: the number of the rest. */
export interface LostRules {
  readonly kind: 'lost-rules';
  readonly side: string;
  readonly lost: readonly KernelChange[];
  readonly more: number;
}

export interface ModeOfSide {
  readonly mode: ProxyMode;
  /** The release, and its behaviours in this mode. Undefined for a dump, which does not show the release. */
  readonly by: { readonly release: Release; readonly does: readonly Behaviour[] } | undefined;
}

/** A stop by something other than kube-proxy. */
export type StopOfNode = Extract<Stop, { readonly kind: 'stranger' | 'kernel' }>;

export type Losing = Extract<Outcome, { readonly loss: unknown }>;

/** A field of a Service and its value. The value is undefined if the field is unset. */
interface FieldValue {
  readonly field: 'internalTrafficPolicy' | 'externalTrafficPolicy' | 'sessionAffinity' | 'loadBalancerSourceRanges';
  readonly value: string | number | undefined;
}

/** Returns the same key for equal reasons. Ignores the content and origin of rules, because a rule's place identifies it. */
export function keyOfReason(reason: CauseReason): string {
  if (reason.kind === 'lost-rules') return `${reason.kind} ${reason.side}`;
  return JSON.stringify(reason, (key, value: unknown) => (key === 'rule' || key === 'origin' ? undefined : value));
}

interface ServiceCause {
  readonly cause: Extract<CauseId, 'one-sided' | 'service-addresses' | 'service-fields' | 'service-endpoints'>;
  readonly because: readonly CauseReason[];
}

/**
 * Finds a difference in the Services themselves that affects a destination. Such a difference is the cause, rather than a mode, release or
 * setting. `ports`: the destination's ports on either side. Undefined if the Services are the same, or if a side does not show all of them.
 */
export function findServiceCause(
  { side: old }: Scene,
  { side: fresh }: Scene,
): (ports: readonly ShownPort[]) => ServiceCause | undefined {
  if (!old.cluster || !fresh.cluster || old.cluster === fresh.cluster || !areReadAlike(old, fresh))
    return () => undefined;
  const [ofOld, ofFresh] = [new Set(old.ports), new Set(fresh.ports)];
  const [named, namedAfter] = [old, fresh].map((side) => new Set(side.ports.map(({ label }) => label)));
  const reasonsOf = (port: ShownPort): readonly CauseReason[] => {
    const service = serviceName(port);
    const [was, is] = [old.info(service), fresh.info(service)];
    const reasons = was && is ? programmed(was.skipped, is.skipped) : [];
    return [...reasons, ...ipModeReasons(service, old, fresh)].map((reason) => ({ kind: 'service', service, reason }));
  };
  return (ports) => {
    const [before, after] = [ports.filter((port) => ofOld.has(port)), ports.filter((port) => ofFresh.has(port))];
    if (differ(before, after, ({ label }) => [label])) {
      const isOnBoth = ports.every(({ label }) => named?.has(label) && namedAfter?.has(label));
      return { cause: isOnBoth ? 'service-addresses' : 'one-sided', because: ports.flatMap(reasonsOf) };
    }
    const [was, is] = [factsOf(before), factsOf(after)];
    const [from, to] = [without(was, is, JSON.stringify), without(is, was, JSON.stringify)];
    if (from.length + to.length > 0) return { cause: 'service-fields', because: [{ kind: 'fields', from, to }] };
    return differ(before, after, endpointSummaries) ? { cause: 'service-endpoints', because: [] } : undefined;
  };
}

/** Reports whether no difference in mode, release or settings is known. A dump shows at most the mode, and no mode without rules. */
export function haveOneSetup([{ side: old }, { side: fresh }]: readonly [Scene, Scene]): boolean {
  if (old.mode !== undefined && fresh.mode !== undefined && old.mode !== fresh.mode) return false;
  return !old.settings || !fresh.settings || isSameValue(old.settings, fresh.settings);
}

/** Reports whether both sides read manifests in the same way. Different modes and releases read different fields. */
function areReadAlike({ settings: old }: Scene['side'], { settings: fresh }: Scene['side']): boolean {
  if (!old || !fresh) return false;
  const { mode, release, ignoresExternalIPs } = old;
  return mode === fresh.mode && release === fresh.release && ignoresExternalIPs === fresh.ignoresExternalIPs;
}

function factsOf(ports: readonly ShownPort[]): readonly FieldValue[] {
  return ports.flatMap((port): readonly FieldValue[] => [
    { field: 'internalTrafficPolicy', value: internalPolicyOf(port) },
    { field: 'externalTrafficPolicy', value: externalPolicyOf(port) },
    { field: 'sessionAffinity', value: port.affinitySeconds || undefined },
    { field: 'loadBalancerSourceRanges', value: port.sourceRanges?.map(({ text }) => text).join(', ') || undefined },
  ]);
}

function endpointSummaries({ endpoints = [] }: ShownPort): readonly string[] {
  return endpoints.map(({ label, status }) => {
    const { ready, serving, terminating, nodeName, zoneHints, nodeHints } = status ?? {};
    return JSON.stringify([label, ready, serving, terminating, nodeName, zoneHints, nodeHints]);
  });
}

function differ(
  before: readonly ShownPort[],
  after: readonly ShownPort[],
  keysOf: (port: ShownPort) => readonly string[],
): boolean {
  const [was, is] = [before.flatMap(keysOf), after.flatMap(keysOf)];
  return without(was, is, String).length + without(is, was, String).length > 0;
}

function without<T>(values: readonly T[], others: readonly T[], keyOf: (value: T) => string): readonly T[] {
  const known = new Set(others.map(keyOf));
  return uniqueBy(values, keyOf).filter((each) => !known.has(keyOf(each)));
}
