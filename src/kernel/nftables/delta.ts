import type { Family } from '../family.ts';
import type { Split } from '../changes.ts';
import type { Element } from './element.ts';
import { elementMeaning, isSameBase, isSameKind, ruleMeaning } from './meaning.ts';
import {
  findTable,
  isLearned,
  type NftChain,
  type NftCounter,
  type NftMap,
  type NftRule,
  type NftSet,
  type NftTable,
} from './table.ts';

/** How to change one table. All of it is one transaction: see formatNftDelta. */
export type NftTableDelta =
  /** Replaces a table of that name, if there is one that the kernel cannot change. */
  | { readonly kind: 'create-table'; readonly table: NftTable; readonly replaced?: NftTable | undefined }
  | { readonly kind: 'delete-table'; readonly table: NftTable }
  | {
      readonly kind: 'change-table';
      readonly family: Family;
      readonly name: string;
      readonly changes: readonly NftChange[];
    };

/** A step from one table to another. What a step is about tells whose it is: the chain, the set, the elements. */
export type NftChange =
  | { readonly kind: 'add-chain'; readonly chain: NftChain }
  | { readonly kind: 'delete-chain'; readonly chain: NftChain }
  /** Empties the chain and fills it again. If its hook differs, deletes the chain and makes it again. */
  | { readonly kind: 'replace-chain'; readonly from: NftChain; readonly to: NftChain }
  /** Writes the same rules again, because a set that they look up is replaced. */
  | { readonly kind: 'refill-chain'; readonly chain: NftChain }
  | { readonly kind: 'add-counter'; readonly counter: NftCounter }
  | { readonly kind: 'delete-counter'; readonly counter: NftCounter }
  | { readonly kind: 'add-set'; readonly set: NftSet | NftMap }
  | { readonly kind: 'delete-set'; readonly set: NftSet | NftMap }
  /** Replaces a set that the kernel cannot change: its type, timeout or size differs. */
  | { readonly kind: 'replace-set'; readonly from: NftSet | NftMap; readonly to: NftSet | NftMap }
  | {
      readonly kind: 'change-elements';
      /** The set to make. */
      readonly set: NftSet | NftMap;
      /** An element with a new value or comment is both removed and added. */
      readonly added: readonly Element[];
      readonly removed: readonly Element[];
    };

/**
 * How to get from some tables to others, by meaning: see NftTable for what takes part. Sets that rules write to keep
 * their elements.
 */
export function diffNftTables(from: readonly NftTable[], to: readonly NftTable[]): readonly NftTableDelta[] {
  const deltas: NftTableDelta[] = [];
  for (const table of to) {
    const old = findTable(from, table.family, table.name);
    if (!old || !isSameStrangeParts(old, table)) deltas.push({ kind: 'create-table', table, replaced: old });
    else {
      const changes = diffTable(old, table);
      if (changes.length > 0) deltas.push({ kind: 'change-table', family: table.family, name: table.name, changes });
    }
  }
  for (const table of from) {
    if (!findTable(to, table.family, table.name)) deltas.push({ kind: 'delete-table', table });
  }
  return deltas;
}

function isSameStrangeParts({ strange: a }: NftTable, { strange: b }: NftTable): boolean {
  return (a?.heads ?? []).toSorted().join('\n') === (b?.heads ?? []).toSorted().join('\n');
}

function diffTable(from: NftTable, to: NftTable): readonly NftChange[] {
  if (from === to) return [];
  const sets = diffSets(from, to);
  const remade = new Set(sets.flatMap((change) => (change.kind === 'replace-set' ? [change.to.name] : [])));
  return [...diffCounters(from, to), ...sets, ...diffChains(from, to, remade)];
}

function diffCounters(from: NftTable, to: NftTable): readonly NftChange[] {
  const missingIn = (table: NftTable) => (counter: NftCounter) => !table.counters.has(counter.name);
  const added = [...to.counters.values()].filter(missingIn(from));
  const deleted = [...from.counters.values()].filter(missingIn(to));
  return [
    ...added.map((counter): NftChange => ({ kind: 'add-counter', counter })),
    ...deleted.map((counter): NftChange => ({ kind: 'delete-counter', counter })),
  ];
}

function diffSets(from: NftTable, to: NftTable): readonly NftChange[] {
  const changes: NftChange[] = [];
  for (const set of to.sets.values()) {
    const old = from.sets.get(set.name);
    if (!old) changes.push({ kind: 'add-set', set });
    else if (!isSameKind(old, set)) changes.push({ kind: 'replace-set', from: old, to: set });
    else if (!isLearned(set)) changes.push(...diffElements(old, set));
  }
  for (const set of from.sets.values()) if (!to.sets.has(set.name)) changes.push({ kind: 'delete-set', set });
  return changes;
}

function diffElements(from: NftSet | NftMap, to: NftSet | NftMap): readonly NftChange[] {
  if (from.elements === to.elements) return [];
  const before = new Map(from.elements.map((element) => [elementMeaning(element), element]));
  const added = to.elements.filter((element) => !before.delete(elementMeaning(element)));
  const removed = [...before.values()];
  return added.length + removed.length === 0 ? [] : [{ kind: 'change-elements', set: to, added, removed }];
}

function diffChains(from: NftTable, to: NftTable, remade: ReadonlySet<string>): readonly NftChange[] {
  const changes: NftChange[] = [];
  for (const chain of to.chains.values()) {
    const old = from.chains.get(chain.name);
    if (!old) changes.push({ kind: 'add-chain', chain });
    else if (!isSameChain(old, chain)) changes.push({ kind: 'replace-chain', from: old, to: chain });
    else if (remade.size > 0 && usesAny(chain, remade)) changes.push({ kind: 'refill-chain', chain });
  }
  for (const chain of from.chains.values())
    if (!to.chains.has(chain.name)) changes.push({ kind: 'delete-chain', chain });
  return changes;
}

function isSameChain(a: NftChain, b: NftChain): boolean {
  return isSameBase(a.base, b.base) && isSameRules(a.rules, b.rules);
}

function isSameRules(a: readonly NftRule[], b: readonly NftRule[]): boolean {
  if (a === b) return true;
  return (
    a.length === b.length &&
    a.every((rule, i) => {
      const other = b[i];
      return other !== undefined && (rule === other || ruleMeaning(rule) === ruleMeaning(other));
    })
  );
}

/** Whether a chain has rules that look up or write one of these sets. */
export function usesAny(chain: NftChain, sets: ReadonlySet<string>): boolean {
  return chain.rules.some((rule) =>
    rule.expressions.some((expression) => {
      switch (expression.kind) {
        case 'match':
          return expression.right.kind === 'set' && sets.has(expression.right.set);
        case 'verdict-map':
          return sets.has(expression.map);
        case 'write-set':
          return sets.has(expression.set);
        default:
          return false;
      }
    }),
  );
}

/** IPv4 before IPv6, then by name. */
export function compareTables(a: NftTable, b: NftTable): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}

/**
 * The changes in two: what can be made at once, and what goes later. A chain that an element led to a moment ago cannot be
 * deleted by kernels before 6.2, so it is emptied first, as kube-proxy does, and deleted when the rest is done. Counters
 * go with the chains that counted in them.
 */
export function splitNftDelta(deltas: readonly NftTableDelta[]): Split<NftTableDelta> {
  const additions: NftTableDelta[] = [];
  const removals: NftTableDelta[] = [];
  for (const delta of deltas) {
    switch (delta.kind) {
      case 'create-table':
        additions.push(delta);
        break;
      case 'delete-table':
        removals.push(delta);
        break;
      case 'change-table': {
        const now = delta.changes.flatMap(emptyInstead);
        const later = delta.changes.flatMap(deleteEmptied);
        if (now.length > 0) additions.push({ ...delta, changes: now });
        if (later.length > 0) removals.push({ ...delta, changes: later });
        break;
      }
      default:
        delta satisfies never;
    }
  }
  return { additions, removals };
}

function emptyInstead(change: NftChange): readonly NftChange[] {
  switch (change.kind) {
    case 'delete-chain':
      return [{ kind: 'replace-chain', from: change.chain, to: { ...change.chain, rules: [] } }];
    case 'delete-counter':
      return [];
    default:
      return [change];
  }
}

function deleteEmptied(change: NftChange): readonly NftChange[] {
  switch (change.kind) {
    case 'delete-chain':
      return [{ ...change, chain: { ...change.chain, rules: [] } }];
    case 'delete-counter':
      return [change];
    default:
      return [];
  }
}
