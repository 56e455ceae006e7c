import type { ProxyMode } from '../kube-proxy/modes.ts';
import {
  behaviourChanges,
  behaviours,
  concernsMode,
  type Behaviour,
  type BehaviourChange,
  type Behaviours,
  type Release,
} from '../kube-proxy/releases.ts';
import { diffSides, type SideDiff } from './diff-sides.ts';
import type { ServiceReason } from './service-reasons.ts';
import type { Side } from './compared-side.ts';

/** A release of Kubernetes, and what its kube-proxy does. */
export interface ReleaseSide {
  readonly release: Release;
  readonly behaviours: Behaviours;
  readonly side: Side;
}

/** What a kube-proxy that behaves so makes of the same manifests on the same node. */
export type CompileWith = (behaviours: Behaviours) => Side;

/** The same difference, each Service port with the behaviours of kube-proxy that it comes from as its first reasons. */
export function explainByRelease(
  diff: SideDiff,
  from: ReleaseSide,
  to: ReleaseSide,
  /** In what they differ: see differingBehaviours. */
  differing: readonly Behaviour[],
  compileWith: CompileWith,
): SideDiff {
  if (diff.servicePorts.length === 0) return diff;
  const causes = findCauses(diff, from, to, differing, compileWith);
  return {
    ...diff,
    servicePorts: diff.servicePorts.map((port) => ({
      ...port,
      reasons: [...(causes.get(port.label) ?? []).map((behaviour) => reasonOf(behaviour, from, to)), ...port.reasons],
    })),
  };
}

/** What one of two kube-proxies does in a mode and the other does not, in the order of the table. */
export function differingBehaviours(from: Behaviours, to: Behaviours, mode: ProxyMode): readonly Behaviour[] {
  return behaviours.filter((behaviour) => from.has(behaviour) !== to.has(behaviour) && concernsMode(behaviour, mode));
}

/** Why kube-proxies of two releases differ, of one behaviour. */
function reasonOf(behaviour: Behaviour, from: ReleaseSide, to: ReleaseSide): ServiceReason {
  const { before, after, pullRequests, samePackets }: BehaviourChange = behaviourChanges[behaviour];
  const [old, wanted] = from.behaviours.has(behaviour) ? [after, before] : [before, after];
  const pulls = pullRequests.map((number) => `kubernetes/kubernetes#${number}`).join(', ');
  // The rules differ and what becomes of packets does not.
  const effect = samePackets ? '; packets meet the same' : '';
  return {
    kind: 'behaviour',
    text: `kube-proxy ${from.release} ${old}; ${to.release} ${wanted}${effect} (${pulls})`,
    fields: {
      behaviour,
      from: { release: from.release, does: old },
      to: { release: to.release, does: wanted },
      pullRequests,
      ...(samePackets ? { samePackets } : {}),
    },
  };
}

/**
 * Changes one behaviour at a time, of what FROM does and of what TO does: what such a step changes comes from that
 * behaviour. Where none does alone, it is the way from FROM to TO that tells, one behaviour after the other.
 */
function findCauses(
  diff: SideDiff,
  from: ReleaseSide,
  to: ReleaseSide,
  differing: readonly Behaviour[],
  compileWith: CompileWith,
): ReadonlyMap<string, readonly Behaviour[]> {
  const causes = new Map(diff.servicePorts.map(({ label }): [string, Set<Behaviour>] => [label, new Set()]));
  const note = (behaviour: Behaviour, one: Side, other: Side, among?: ReadonlySet<string>): void => {
    for (const { label } of diffSides(one, other, { foreign: false }).servicePorts) {
      if (!among || among.has(label)) causes.get(label)?.add(behaviour);
    }
  };
  for (const behaviour of differing) {
    note(behaviour, from.side, compileWith(toggle(from.behaviours, behaviour)));
    note(behaviour, compileWith(toggle(to.behaviours, behaviour)), to.side);
  }
  const unexplained = new Set([...causes].flatMap(([label, found]) => (found.size === 0 ? [label] : [])));
  if (unexplained.size > 0) {
    let before = from;
    for (const behaviour of differing) {
      const has = toggle(before.behaviours, behaviour);
      const after = { ...from, behaviours: has, side: compileWith(has) };
      note(behaviour, before.side, after.side, unexplained);
      before = after;
    }
  }
  return new Map([...causes].map(([label, found]) => [label, differing.filter((behaviour) => found.has(behaviour))]));
}

function toggle(has: Behaviours, behaviour: Behaviour): Behaviours {
  const toggled = new Set(has);
  if (!toggled.delete(behaviour)) toggled.add(behaviour);
  return toggled;
}
