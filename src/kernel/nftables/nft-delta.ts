import { diffByKey, itemOf, pairUp, type Pair, type Split } from '../diff-by-key.ts';
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

/** The change of one table in one transaction: see formatNftDelta. */
export type NftTableDelta =
  /** Creates or deletes a table, or replaces one that the kernel cannot change. */
  | ({ readonly kind: 'table' } & Pair<NftTable>)
  | {
      readonly kind: 'change-table';
      readonly family: Family;
      readonly name: string;
      readonly changes: readonly NftChange[];
    };

/** A step from one table to another. */
export type NftChange =
  /**
   * A changed chain is emptied and refilled; with another hook it is deleted and created again. A chain that looks up a replaced
   * set is rewritten unchanged.
   */
  | ({ readonly kind: 'chain' } & Pair<NftChain>)
  | ({ readonly kind: 'counter' } & Pair<NftCounter>)
  /** A changed set is replaced, because the kernel cannot change its type, timeout or size. */
  | ({ readonly kind: 'set' } & Pair<NftSet | NftMap>)
  | {
      readonly kind: 'elements';
      /** The set after the change. */
      readonly set: NftSet | NftMap;
      /** An element with a new value is both removed and added. */
      readonly added: readonly Element[];
      readonly removed: readonly Element[];
    };

/** How to get from some tables to others in meaning: NftTable says what counts. Sets that rules write to keep their elements. */
export function diffNftTables(from: readonly NftTable[], to: readonly NftTable[]): readonly NftTableDelta[] {
  const pairs = pairUp(from, to, ({ family, name }) => `${family} ${name}`);
  return pairs.flatMap((pair): readonly NftTableDelta[] => {
    const { from: old, to: table } = pair;
    if (!old || !table || strangeHeads(old) !== strangeHeads(table)) return [{ kind: 'table', ...pair }];
    const changes = diffTable(old, table);
    return changes.length === 0 ? [] : [{ kind: 'change-table', family: table.family, name: table.name, changes }];
  });
}

export function familyOf(delta: NftTableDelta): Family {
  return delta.kind === 'table' ? itemOf(delta).family : delta.family;
}

function strangeHeads({ strange }: NftTable): string {
  return (strange?.heads ?? []).toSorted().join('\n');
}

function diffTable(from: NftTable, to: NftTable): readonly NftChange[] {
  if (from === to) return [];
  const sets = diffSets(from, to);
  return [...diffCounters(from, to), ...sets, ...diffChains(from, to, remadeSets(sets))];
}

/** Names of the sets to replace: rules that look them up are written afterwards. */
export function remadeSets(changes: readonly NftChange[]): ReadonlySet<string> {
  return new Set(
    changes.flatMap((change) => (change.kind === 'set' && change.from && change.to ? [change.to.name] : [])),
  );
}

function diffCounters(from: NftTable, to: NftTable): readonly NftChange[] {
  return pairUp(from.counters.values(), to.counters.values(), ({ name }) => name)
    .filter((pair) => !pair.from || !pair.to)
    .map((pair) => ({ kind: 'counter', ...pair }));
}

function diffSets(from: NftTable, to: NftTable): readonly NftChange[] {
  const pairs = pairUp<NftSet | NftMap>(from.sets.values(), to.sets.values(), ({ name }) => name);
  return pairs.flatMap((pair): readonly NftChange[] => {
    const { from: old, to: set } = pair;
    if (!old || !set || !isSameKind(old, set)) return [{ kind: 'set', ...pair }];
    if (isLearned(set)) return [];
    const { added, removed } = diffByKey(old.elements, set.elements, elementMeaning);
    return added.length + removed.length === 0 ? [] : [{ kind: 'elements', set, added, removed }];
  });
}

function diffChains(from: NftTable, to: NftTable, remade: ReadonlySet<string>): readonly NftChange[] {
  const pairs = pairUp(from.chains.values(), to.chains.values(), ({ name }) => name);
  return pairs.flatMap((pair): readonly NftChange[] => {
    const { from: old, to: chain } = pair;
    if (!old || !chain || !isSameBase(old.base, chain.base) || !isSameRules(old.rules, chain.rules)) {
      return [{ kind: 'chain', ...pair }];
    }
    return remade.size > 0 && usesAny(chain, remade) ? [{ kind: 'chain', from: chain, to: chain }] : [];
  });
}

function isSameRules(a: readonly NftRule[], b: readonly NftRule[]): boolean {
  if (a === b) return true;
  const isSame = (rule: NftRule, other: NftRule | undefined): boolean =>
    rule === other || (other !== undefined && ruleMeaning(rule) === ruleMeaning(other));
  return a.length === b.length && a.every((rule, i) => isSame(rule, b[i]));
}

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
 * Splits changes into what to make now and what to make later. Kernels before 6.2 cannot delete a chain that an element referred to a
 * moment ago: it is emptied first, as in kube-proxy, and deleted after the rest. Counters are deleted with the chains that used them.
 */
export function splitNftDelta(deltas: readonly NftTableDelta[]): Split<NftTableDelta> {
  const additions: NftTableDelta[] = [];
  const removals: NftTableDelta[] = [];
  for (const delta of deltas) {
    if (delta.kind === 'table') {
      (delta.to ? additions : removals).push(delta);
      continue;
    }
    const now: NftChange[] = [];
    const later: NftChange[] = [];
    for (const change of delta.changes) {
      if (change.kind === 'chain' && !change.to) {
        const emptied = { ...change.from, rules: [] };
        now.push({ kind: 'chain', from: change.from, to: emptied });
        later.push({ kind: 'chain', from: emptied, to: undefined });
      } else (change.kind === 'counter' && !change.to ? later : now).push(change);
    }
    if (now.length > 0) additions.push({ ...delta, changes: now });
    if (later.length > 0) removals.push({ ...delta, changes: later });
  }
  return { additions, removals };
}
