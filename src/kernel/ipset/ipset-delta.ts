import { formatAdd, formatCreate, type IpSet } from './ipset.ts';
import { entryKey, formatEntry, type SetEntry } from './set-entry.ts';
import { partition, type Split } from '../split-changes.ts';

/** One step from some sets to others. */
export type SetChange =
  | { readonly kind: 'create-set'; readonly set: IpSet }
  | {
      readonly kind: 'change-entries';
      /** The set as it is to be. */
      readonly set: IpSet;
      readonly added: readonly SetEntry[];
      readonly removed: readonly SetEntry[];
    }
  /** A set of the same name that the kernel cannot change: another type, size or range. */
  | { readonly kind: 'replace-set'; readonly from: IpSet; readonly to: IpSet }
  | { readonly kind: 'destroy-set'; readonly set: IpSet };

/**
 * The name that a set has for a moment while it replaces another. One that is there was left by an ipset that was
 * killed: no rule can use it, and it is in the way, so it goes first.
 */
export const temporarySetName = 'KPC-SWAP';

/**
 * How to get from some sets to others. The size of the hash takes no part: the kernel doubles it as a set grows. Nor
 * does the order of entries.
 */
export function diffSets(from: readonly IpSet[], to: readonly IpSet[]): readonly SetChange[] {
  const before = new Map(from.map((set) => [set.name, set]));
  const names = new Set(to.map((set) => set.name));
  const changes: SetChange[] = [];
  const leftover = before.get(temporarySetName);
  if (leftover && !names.has(temporarySetName)) changes.push({ kind: 'destroy-set', set: leftover });
  for (const set of to) {
    const old = before.get(set.name);
    if (!old) changes.push({ kind: 'create-set', set });
    else if (!isSameKind(old, set)) changes.push({ kind: 'replace-set', from: old, to: set });
    else changes.push(...diffEntries(old, set));
  }
  // A set of sets comes after those it holds, and must go before them.
  for (const set of from.toReversed()) {
    if (!names.has(set.name) && set.name !== temporarySetName) changes.push({ kind: 'destroy-set', set });
  }
  return changes;
}

function isSameKind(a: IpSet, b: IpSet): boolean {
  return (
    canSwap(a, b) &&
    a.range === b.range &&
    (a.maxElements ?? defaultMaxElements) === (b.maxElements ?? defaultMaxElements) &&
    (a.options ?? []).join(' ') === (b.options ?? []).join(' ')
  );
}

const defaultMaxElements = 65536;

/** The kernel swaps two sets of one type and family only. */
function canSwap(a: IpSet, b: IpSet): boolean {
  return a.type === b.type && (a.family ?? 'inet') === (b.family ?? 'inet');
}

function diffEntries(from: IpSet, to: IpSet): SetChange[] {
  if (from.entries === to.entries) return [];
  const before = new Map(from.entries.map((entry) => [entryMeaning(entry), entry]));
  const added: SetEntry[] = [];
  for (const entry of to.entries) if (!before.delete(entryMeaning(entry))) added.push(entry);
  const removed = [...before.values()];
  return added.length + removed.length === 0 ? [] : [{ kind: 'change-entries', set: to, added, removed }];
}

/** The same text for entries that are one to the kernel and have the same options. */
function entryMeaning(entry: SetEntry): string {
  const key = entryKey(entry);
  return entry.options === undefined ? key : [key, ...entry.options].join(' ');
}

/** What can be made while the rules that are there use the sets, and what is to go after them. */
export function splitSetsDelta(changes: readonly SetChange[]): Split<SetChange> {
  const additions: SetChange[] = [];
  const removals: SetChange[] = [];
  for (const change of changes) {
    if (change.kind === 'destroy-set') {
      (change.set.name === temporarySetName ? additions : removals).push(change);
    } else if (change.kind !== 'change-entries') additions.push(change);
    else {
      // An entry that only changes its options must go before it comes back.
      const remade = new Set(change.added.map(entryKey));
      const removed = partition(change.removed, (entry) => !remade.has(entryKey(entry)));
      if (change.added.length > 0) additions.push({ ...change, removed: removed.additions });
      if (removed.removals.length > 0) removals.push({ ...change, added: [], removed: removed.removals });
    }
  }
  return { additions, removals };
}

/**
 * The input of `ipset restore` that makes the changes. A set that only changes its size or options is made under
 * another name and swapped in, so that rules that look at it never miss it. One of another type cannot be swapped: it
 * is destroyed first, which ipset refuses while a rule uses it. '' where there are no changes.
 */
export function formatSetsDelta(changes: readonly SetChange[]): string {
  const lines: string[] = [];
  for (const change of changes) pushSetLines(lines, change);
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function pushSetLines(lines: string[], change: SetChange): void {
  switch (change.kind) {
    case 'create-set':
      pushCreation(lines, change.set);
      break;
    case 'change-entries': {
      // Deleting first leaves room for what is added.
      for (const entry of change.removed) lines.push(`del ${change.set.name} ${formatEntry(entry)}`);
      for (const entry of change.added) lines.push(formatAdd(change.set.name, entry));
      break;
    }
    case 'replace-set':
      if (canSwap(change.from, change.to)) {
        pushCreation(lines, { ...change.to, name: temporarySetName });
        lines.push(`swap ${temporarySetName} ${change.to.name}`, `destroy ${temporarySetName}`);
      } else {
        lines.push(`destroy ${change.from.name}`);
        pushCreation(lines, change.to);
      }
      break;
    case 'destroy-set':
      lines.push(`destroy ${change.set.name}`);
      break;
    default:
      change satisfies never;
  }
}

function pushCreation(lines: string[], set: IpSet): void {
  lines.push(formatCreate(set));
  for (const entry of set.entries) lines.push(formatAdd(set.name, entry));
}
