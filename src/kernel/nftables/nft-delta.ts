import { diffByKey, pairUp, type Split } from '../diff-by-key.ts';
import { compareText } from '../compare-text.ts';
import type { Family } from '../family.ts';
import type { Element } from './element.ts';
import { elementMeaning, isSameBase, isSameKind, ruleMeaning } from './nft-meaning.ts';
import {
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

/** A step from one table to another. Its subject shows whose it is: the chain, the set, the elements. */
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
  const pairs = pairUp(from, to, ({ family, name }) => `${family} ${name}`);
  return pairs.flatMap(({ old, item: table }): readonly NftTableDelta[] => {
    if (!table) return [{ kind: 'delete-table', table: old }];
    if (!old || strangeHeads(old) !== strangeHeads(table)) return [{ kind: 'create-table', table, replaced: old }];
    const changes = diffTable(old, table);
    return changes.length === 0 ? [] : [{ kind: 'change-table', family: table.family, name: table.name, changes }];
  });
}

function strangeHeads({ strange }: NftTable): string {
  return (strange?.heads ?? []).toSorted().join('\n');
}

function diffTable(from: NftTable, to: NftTable): readonly NftChange[] {
  if (from === to) return [];
  const sets = diffSets(from, to);
  const remade = new Set(sets.flatMap((change) => (change.kind === 'replace-set' ? [change.to.name] : [])));
  return [...diffCounters(from, to), ...sets, ...diffChains(from, to, remade)];
}

function diffCounters(from: NftTable, to: NftTable): readonly NftChange[] {
  const { added, removed } = diffByKey([...from.counters.values()], [...to.counters.values()], ({ name }) => name);
  return [
    ...added.map((counter): NftChange => ({ kind: 'add-counter', counter })),
    ...removed.map((counter): NftChange => ({ kind: 'delete-counter', counter })),
  ];
}

function diffSets(from: NftTable, to: NftTable): readonly NftChange[] {
  const pairs = pairUp<NftSet | NftMap>(from.sets.values(), to.sets.values(), ({ name }) => name);
  return pairs.flatMap(({ old, item: set }): readonly NftChange[] => {
    if (!set) return [{ kind: 'delete-set', set: old }];
    if (!old) return [{ kind: 'add-set', set }];
    if (!isSameKind(old, set)) return [{ kind: 'replace-set', from: old, to: set }];
    if (isLearned(set)) return [];
    const { added, removed } = diffByKey(old.elements, set.elements, elementMeaning);
    return added.length + removed.length === 0 ? [] : [{ kind: 'change-elements', set, added, removed }];
  });
}

function diffChains(from: NftTable, to: NftTable, remade: ReadonlySet<string>): readonly NftChange[] {
  const pairs = pairUp(from.chains.values(), to.chains.values(), ({ name }) => name);
  return pairs.flatMap(({ old, item: chain }): readonly NftChange[] => {
    if (!chain) return [{ kind: 'delete-chain', chain: old }];
    if (!old) return [{ kind: 'add-chain', chain }];
    if (!isSameBase(old.base, chain.base) || !isSameRules(old.rules, chain.rules)) {
      return [{ kind: 'replace-chain', from: old, to: chain }];
    }
    return remade.size > 0 && usesAny(chain, remade) ? [{ kind: 'refill-chain', chain }] : [];
  });
}

function isSameRules(a: readonly NftRule[], b: readonly NftRule[]): boolean {
  if (a === b) return true;
  const isSame = (rule: NftRule, other: NftRule | undefined): boolean =>
    rule === other || (other !== undefined && ruleMeaning(rule) === ruleMeaning(other));
  return a.length === b.length && a.every((rule, i) => isSame(rule, b[i]));
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
  return compareText(a.family, b.family) || compareText(a.name, b.name);
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
    if (delta.kind === 'create-table') additions.push(delta);
    else if (delta.kind === 'delete-table') removals.push(delta);
    else {
      const now: NftChange[] = [];
      const later: NftChange[] = [];
      for (const change of delta.changes) {
        if (change.kind === 'delete-chain') {
          const emptied = { ...change.chain, rules: [] };
          now.push({ kind: 'replace-chain', from: change.chain, to: emptied });
          later.push({ kind: 'delete-chain', chain: emptied });
        } else (change.kind === 'delete-counter' ? later : now).push(change);
      }
      if (now.length > 0) additions.push({ ...delta, changes: now });
      if (later.length > 0) removals.push({ ...delta, changes: later });
    }
  }
  return { additions, removals };
}
