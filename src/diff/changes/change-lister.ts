import type { ChangeKind, KernelChange, OwnedChange } from './kernel-change.ts';
import type { SideOwners } from './owners.ts';

/** How the changes of one kind of objects are told. */
export interface ChangeLister<Delta> {
  /** One by one, each with its owner. */
  list(delta: Delta, owners: SideOwners): readonly OwnedChange[];
  /** How many there are, at no cost: of objects, of all owners. */
  count(delta: Delta): readonly ChangeCount[];
}

export interface ChangeCount {
  readonly object: ChangedObject;
  readonly change: ChangeKind;
  readonly number: number;
}

/** What things of a kernel are called, each in the words that people are told. */
export const changedObjects = [
  'virtual server',
  'set',
  'set entry',
  'set element',
  'table',
  'map',
  'counter',
  'chain',
  'link',
  'address',
  'sysctl',
  'IPVS timeouts',
  'kernel module',
  'setting',
] as const;

export type ChangedObject = (typeof changedObjects)[number];

/** The count of each object and change that is there at all, in the order in which they come. */
export function tally(changes: readonly (readonly [object: ChangedObject, change: ChangeKind])[]): ChangeCount[] {
  const counts = new Map<string, ChangeCount>();
  for (const [object, change] of changes) {
    const key = `${object} ${change}`;
    counts.set(key, { object, change, number: (counts.get(key)?.number ?? 0) + 1 });
  }
  return [...counts.values()];
}

/** A whole thing with what it holds: what belongs to no Service port is told by its number alone. */
export function withContent(
  content: readonly OwnedChange[],
  whole: (free: number) => KernelChange,
): readonly OwnedChange[] {
  const owned = content.filter(({ owner }) => owner !== undefined);
  return [{ owner: undefined, change: whole(content.length - owned.length) }, ...owned];
}
