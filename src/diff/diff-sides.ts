import { diffStates } from '../kernel/delta.ts';
import type { Place } from '../kernel/origin.ts';
import { alignSides, diffAskedTimeouts, diffSettings, dropUnusedFamily } from './align-sides.ts';
import { separate, type StatePair } from './belonging.ts';
import { extentOf, findGaps, type Extent, type Gap } from './gaps.ts';
import type { ChangeKind, KernelChange, OwnedChange } from '../changes/kernel-change.ts';
import { listKernelChanges } from '../changes/list-changes.ts';
import { findOwners, renameOwners } from '../changes/owners.ts';
import type { ServicePortChange, ServiceReason } from './service-changes.ts';
import { diffServices } from './service-changes.ts';
import type { Side } from './side.ts';

/** How two sides differ, as data. */
export interface SideDiff {
  /** Sorted by label. */
  readonly servicePorts: readonly ServicePortDiff[];
  /** What belongs to no Service. */
  readonly base: readonly KernelChange[];
  /** What is neither kube-proxy's nor a Service's; empty unless it was asked for. */
  readonly foreign: readonly KernelChange[];
  /** What a dump does not tell to be kube-proxy's or not. */
  readonly unaccounted: readonly KernelChange[];
  /** What was not compared, since one of the sides cannot tell it. */
  readonly gaps: readonly Gap[];
  readonly extent: Extent;
}

/** What differs of one Service port: why, where both sides have Services, and what that is in the kernel. */
export interface ServicePortDiff {
  readonly label: string;
  readonly formerLabel: string | undefined;
  readonly change: ChangeKind;
  readonly reasons: readonly ServiceReason[];
  readonly kernel: readonly KernelChange[];
  readonly place: Place | undefined;
}

/** Compares two sides by meaning: what one of them cannot tell, and what is not kube-proxy's, takes no part. */
export function diffSides(one: Side, other: Side, options: { readonly foreign: boolean }): SideDiff {
  const { from, to, untoldSysctls } = alignSides(one, other);
  const { own, foreign, untold, whole } = separate(from, to);
  const reasons = from.services && to.services ? diffServices(from.services, to.services) : [];
  const newLabels = new Map(
    reasons.flatMap(({ label, formerLabel }) => (formerLabel === undefined ? [] : [[formerLabel, label] as const])),
  );
  const owners = {
    from: renameOwners(findOwners(statesOf(from, to)), newLabels),
    to: findOwners(statesOf(to, from)),
  };
  const listPair = (pair: StatePair) =>
    listKernelChanges(diffStates(pair.from, pair.to), owners).map(({ change }) => change);
  const delta = { ...diffStates(own.from, own.to), ipvsTimeouts: diffAskedTimeouts(own) };
  const kept = dropUnusedFamily(listKernelChanges(delta, owners), from, to);
  const gaps = [...findGaps({ from, to, whole, untoldSysctls }), ...kept.gaps];
  const { servicePorts, base } = groupChanges(kept.changes, reasons, knowledgeOf(from, to));
  return {
    servicePorts,
    base: [...base, ...diffSettings(from, to)],
    foreign: options.foreign ? listPair(foreign) : [],
    unaccounted: listPair(untold),
    gaps,
    extent: extentOf(gaps, own, from, to),
  };
}

/** Whether there is nothing to tell. */
export function isSame(diff: SideDiff): boolean {
  return [diff.servicePorts, diff.base, diff.foreign, diff.unaccounted].every((found) => found.length === 0);
}

/** The states that tell what the items of `side` are there for; its own say comes first. */
function statesOf(side: Side, other: Side) {
  return [side.labels ?? [], side.state, other.labels ?? [], other.state].flat();
}

/** What the sides' Services tell of Service ports, besides why they differ. */
interface Knowledge {
  /** Labels of those that both sides have. */
  readonly kept: ReadonlySet<string>;
  /** By label, where the port is written in manifests; those of the side TO count first. */
  readonly places: ReadonlyMap<string, Place>;
}

function knowledgeOf(from: Side, to: Side): Knowledge {
  const before = from.services?.cluster.servicePorts ?? [];
  const after = to.services?.cluster.servicePorts ?? [];
  const known = new Set(before.map(({ label }) => label));
  const places = [...before, ...after].flatMap(({ label, places: at }) => (at ? [[label, at.port] as const] : []));
  return {
    kept: new Set(after.flatMap(({ label }) => (known.has(label) ? [label] : []))),
    places: new Map(places),
  };
}

function groupChanges(
  changes: readonly OwnedChange[],
  reasons: readonly ServicePortChange[],
  { kept, places }: Knowledge,
): Pick<SideDiff, 'servicePorts' | 'base'> {
  const kernel = new Map<string, KernelChange[]>();
  const base: KernelChange[] = [];
  for (const { owner, change } of changes) {
    if (owner === undefined) {
      base.push(change);
      continue;
    }
    const list = kernel.get(owner);
    if (list) list.push(change);
    else kernel.set(owner, [change]);
  }
  const explained = new Map(reasons.map((each) => [each.label, each]));
  const labels = [...new Set([...explained.keys(), ...kernel.keys()])].toSorted();
  return {
    base,
    servicePorts: labels.map((label) => {
      const list = kernel.get(label) ?? [];
      const known = explained.get(label);
      return {
        label,
        formerLabel: known?.formerLabel,
        change: known?.change ?? (kept.has(label) ? 'changed' : kindOfAll(list)),
        reasons: known?.reasons ?? [],
        kernel: list,
        place: known?.place ?? places.get(label),
      };
    }),
  };
}

/**
 * Without Services to compare, or where neither side has it among them: a Service port is new where all that it is in the
 * kernel is.
 */
function kindOfAll(changes: readonly KernelChange[]): ChangeKind {
  const kinds = new Set(changes.map(effectOf));
  const [only] = kinds;
  return kinds.size === 1 && only !== undefined ? only : 'changed';
}

/** A Service port only has rules in a chain that it shares: such a chain itself does not change its kind. */
function effectOf(change: KernelChange): ChangeKind {
  if (change.kind !== 'chain' || change.change !== 'changed') return change.change;
  if (change.rulesFrom === 0 && change.rulesTo > 0) return 'added';
  return change.rulesTo === 0 && change.rulesFrom > 0 ? 'removed' : 'changed';
}
