import { formatCreate, type IpSet, type SetChange } from '../../kernel/ipset/ipset.ts';
import { entryKey, formatEntry, type SetEntry } from '../../kernel/ipset/set-entry.ts';
import { withContent, type ChangeCount, type ChangeLister } from './change-lister.ts';
import { subtract } from './compare-rules.ts';
import type { ChangeKind, OwnedChange } from './kernel-change.ts';
import type { Owners } from './owners.ts';

export const setChanges: ChangeLister<readonly SetChange[]> = {
  list: (changes, owners) =>
    changes.flatMap((change) => {
      const { set, whole, lines, removed, added } = stepOf(change);
      const entries = [
        ...entryChanges(set, removed, 'removed', owners.from),
        ...entryChanges(set, added, 'added', owners.to),
      ];
      if (!whole) return entries;
      return withContent(entries, (free) => ({ kind: 'set', change: whole, set: set.name, entries: free, ...lines }));
    }),
  count: (changes) => {
    const steps = changes.map(stepOf);
    const countSets = (change: ChangeKind): ChangeCount => {
      return { object: 'set', change, number: steps.filter(({ whole }) => whole === change).length };
    };
    const countEntries = (change: 'added' | 'removed'): ChangeCount => {
      const lists = steps.map((step) => (step.whole === 'changed' ? [] : step[change]));
      return { object: 'set entry', change, number: lists.reduce((sum, { length }) => sum + length, 0) };
    };
    const sets = (['added', 'changed', 'removed'] as const).map(countSets);
    return [...sets, countEntries('added'), countEntries('removed')].filter(({ number }) => number > 0);
  },
};

/** What becomes of a set as a whole, and of its entries. */
interface SetStep {
  readonly set: IpSet;
  readonly whole?: ChangeKind;
  /** The line that makes it, on each side. */
  readonly lines?: { readonly from?: string; readonly to?: string };
  readonly removed: readonly SetEntry[];
  readonly added: readonly SetEntry[];
}

function stepOf(change: SetChange): SetStep {
  switch (change.kind) {
    case 'create-set': {
      const { set } = change;
      return { set, whole: 'added', lines: { to: formatCreate(set) }, removed: [], added: set.entries };
    }
    case 'destroy-set': {
      const { set } = change;
      return { set, whole: 'removed', lines: { from: formatCreate(set) }, removed: set.entries, added: [] };
    }
    case 'replace-set': {
      const { from, to } = change;
      const lines = { from: formatCreate(from), to: formatCreate(to) };
      const removed = subtract(from.entries, to.entries, entryKey);
      return { set: to, whole: 'changed', lines, removed, added: subtract(to.entries, from.entries, entryKey) };
    }
    case 'change-entries':
      return change;
  }
}

function entryChanges(
  set: IpSet,
  entries: readonly SetEntry[],
  change: 'added' | 'removed',
  owners: Owners,
): readonly OwnedChange[] {
  return entries.map((entry) => ({
    owner: owners.ofEntry(set, entry),
    change: { kind: 'set-entry', change, set: set.name, value: formatEntry(entry) },
  }));
}
