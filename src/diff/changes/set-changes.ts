import { formatCreate } from '../../kernel/ipset.ts';
import type { SetChange } from '../../kernel/ipset-delta.ts';
import { entryKey, formatEntry } from '../../kernel/set-entry.ts';
import type { ChangeCount, ChangeLister } from './change-lister.ts';
import type { ChangeKind, OwnedChange } from './kernel-change.ts';
import type { Owners, SideOwners } from './owners.ts';

export const setChanges: ChangeLister<readonly SetChange[]> = {
  list: (changes, owners) => changes.flatMap((change) => changesOf(change, owners)),
  count: (changes) => {
    const sets = { added: 0, changed: 0, removed: 0 };
    const entries = { added: 0, removed: 0 };
    for (const change of changes) {
      switch (change.kind) {
        case 'create-set':
          sets.added++;
          entries.added += change.set.entries.length;
          break;
        case 'destroy-set':
          sets.removed++;
          entries.removed += change.set.entries.length;
          break;
        case 'replace-set':
          sets.changed++;
          break;
        case 'change-entries':
          entries.added += change.added.length;
          entries.removed += change.removed.length;
          break;
        default:
          change satisfies never;
      }
    }
    const counts: readonly ChangeCount[] = [
      { object: 'set', change: 'added', number: sets.added },
      { object: 'set', change: 'changed', number: sets.changed },
      { object: 'set', change: 'removed', number: sets.removed },
      { object: 'set entry', change: 'added', number: entries.added },
      { object: 'set entry', change: 'removed', number: entries.removed },
    ];
    return counts.filter(({ number }) => number > 0);
  },
};

function changesOf(change: SetChange, owners: SideOwners): readonly OwnedChange[] {
  switch (change.kind) {
    case 'create-set': {
      const entries = entryChanges(change.set, 'added', owners.to);
      const line = formatCreate(change.set);
      return [wholeSet('added', change.set.name, entries, { to: line }), ...ownedOnly(entries)];
    }
    case 'destroy-set': {
      const entries = entryChanges(change.set, 'removed', owners.from);
      const line = formatCreate(change.set);
      return [wholeSet('removed', change.set.name, entries, { from: line }), ...ownedOnly(entries)];
    }
    case 'replace-set': {
      const before = new Set(change.from.entries.map(entryKey));
      const after = new Set(change.to.entries.map(entryKey));
      const entries = [
        ...entryChanges(withEntries(change.from, after), 'removed', owners.from),
        ...entryChanges(withEntries(change.to, before), 'added', owners.to),
      ];
      const lines = { from: formatCreate(change.from), to: formatCreate(change.to) };
      return [wholeSet('changed', change.to.name, entries, lines), ...ownedOnly(entries)];
    }
    case 'change-entries':
      return [
        ...entryChanges({ ...change.set, entries: change.removed }, 'removed', owners.from),
        ...entryChanges({ ...change.set, entries: change.added }, 'added', owners.to),
      ];
  }
}

type ChangedSet = Extract<SetChange, { kind: 'create-set' }>['set'];

function withEntries(set: ChangedSet, except: ReadonlySet<string>): ChangedSet {
  return { ...set, entries: set.entries.filter((entry) => !except.has(entryKey(entry))) };
}

function entryChanges(set: ChangedSet, change: 'added' | 'removed', owners: Owners): readonly OwnedChange[] {
  return set.entries.map((entry) => ({
    owner: owners.ofEntry(set, entry),
    change: { kind: 'set-entry', change, set: set.name, value: formatEntry(entry) },
  }));
}

function wholeSet(
  change: ChangeKind,
  set: string,
  entries: readonly OwnedChange[],
  lines: { readonly from?: string; readonly to?: string },
): OwnedChange {
  const free = entries.filter(({ owner }) => owner === undefined).length;
  return { owner: undefined, change: { kind: 'set', change, set, entries: free, ...lines } };
}

function ownedOnly(changes: readonly OwnedChange[]): readonly OwnedChange[] {
  return changes.filter(({ owner }) => owner !== undefined);
}
