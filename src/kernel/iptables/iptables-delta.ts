import { isSameList, itemOf, pairUp, type Pair } from '../compare.ts';
import {
  formatAppends,
  formatDeclaration,
  formatDelete,
  formatInsert,
  isBuiltInChain,
  tableNames,
  type Chain,
  type Rule,
  type TableName,
  type Tables,
} from './iptables.ts';
import { formatWord } from './rule-args.ts';
import { actingRules, ruleMeaning } from './iptables-meaning.ts';
import { placeRules } from './place-rules.ts';
import type { Family } from '../address.ts';

export type ChainChange =
  | ({ readonly kind: 'chain' } & Pair<Chain>)
  /** Changes one rule of a built-in chain: inserts it at `position` (from 1); without it, deletes the first rule like it. */
  | { readonly kind: 'rule'; readonly chain: string; readonly rule: Rule; readonly position?: number };

export function changedChain(change: ChainChange): string {
  return change.kind === 'chain' ? itemOf(change).name : change.chain;
}

export interface TableDelta {
  readonly table: TableName;
  readonly changes: readonly ChainChange[];
}

/**
 * Finds the changes between two lists of tables. A chain with a new meaning is rewritten whole; in built-in chains, owned rules change one
 * by one (placeRules). Ignores policies, which belong to the node.
 */
export function diffTables(from: Tables, to: Tables): readonly TableDelta[] {
  const deltas: TableDelta[] = [];
  for (const table of tableNames) {
    const changes = diffIptablesTable(table, from[table] ?? noChains, to[table] ?? noChains);
    if (changes.length > 0) deltas.push({ table, changes });
  }
  return deltas;
}

const noChains: ReadonlyMap<string, Chain> = new Map();

function diffIptablesTable(
  table: TableName,
  from: ReadonlyMap<string, Chain>,
  to: ReadonlyMap<string, Chain>,
): readonly ChainChange[] {
  const writes: ChainChange[] = [];
  const jumps: ChainChange[] = [];
  const deletes: ChainChange[] = [];
  for (const pair of pairUp(from.values(), to.values(), ({ name }) => name)) {
    const { from: old, to: chain } = pair;
    const { name } = itemOf(pair);
    if (isBuiltInChain(table, name)) {
      for (const change of diffBuiltIn(name, old, chain)) jumps.push(change);
    } else if (!old || !chain || !equalRules(old.rules, chain.rules)) {
      (chain ? writes : deletes).push({ kind: 'chain', ...pair });
    }
  }
  return [...writes, ...jumps, ...deletes];
}

export function equalRules(a: readonly Rule[], b: readonly Rule[]): boolean {
  return a === b || isSameList(actingRules(a), actingRules(b), ruleMeaning);
}

function diffBuiltIn(name: string, from: Chain | undefined, to: Chain | undefined): readonly ChainChange[] {
  const { deleted, inserted } = placeRules(from, to);
  return [
    ...deleted.map((rule): ChainChange => ({ kind: 'rule', chain: name, rule })),
    ...inserted.map((each): ChainChange => ({ kind: 'rule', chain: name, ...each })),
  ];
}

/** Returns the tables after a change to `to`. Built-in chains keep other programs' rules from `from`. */
export function settleTables(from: FamilyTables, to: FamilyTables): FamilyTables {
  const settle = (place: RulesPlace, table: TableName, chain: Chain): Chain =>
    isBuiltInChain(table, chain.name)
      ? { ...chain, whole: placeRules(from[place]?.[table]?.get(chain.name), chain).whole }
      : chain;
  return Object.fromEntries(
    rulesPlaces.flatMap((place) => {
      const tables = tableNames.flatMap((table) => {
        const chains = to[place]?.[table];
        return chains
          ? [[table, new Map([...chains].map(([name, chain]) => [name, settle(place, table, chain)]))]]
          : [];
      });
      return to[place] ? [[place, Object.fromEntries(tables)]] : [];
    }),
  );
}

/** Reports whether the tables have a rule, or a chain that is not built in. */
export function hasRules(tables: Tables): boolean {
  return tableNames.some((table) =>
    [...(tables[table]?.values() ?? [])].some(({ name, rules }) => !isBuiltInChain(table, name) || rules.length > 0),
  );
}

/** Formats the input of `iptables-restore --noflush`, which makes each table's changes at once; '' for no changes. */
export function formatTablesDelta(deltas: readonly TableDelta[]): string {
  return deltas
    .map(({ table, changes }) => {
      // Declare each chain before the rules that jump to it. Sort the names, because iptables-nft-restore searches its list from one end.
      const declared = changes.flatMap((change) => (change.kind === 'chain' ? [changedChain(change)] : [])).sort();
      const declarations = declared.map((name) => `${formatDeclaration(name)}\n`).join('');
      return `*${table}\n${declarations}${changes.map(formatChainChange).join('')}COMMIT\n`;
    })
    .join('');
}

function formatChainChange(change: ChainChange): string {
  if (change.kind === 'chain') return change.to ? formatAppends(change.to) : `-X ${formatWord(change.from.name)}\n`;
  const { chain, rule, position } = change;
  return `${position === undefined ? formatDelete(chain, rule) : formatInsert(chain, position, rule)}\n`;
}

/** The rules of each family in the iptables variant in use, and in the other variant. The kernel applies both; only a node shows both. */
export const rulesPlaces = ['ipv4', 'ipv6', 'other ipv4', 'other ipv6'] as const;

export type RulesPlace = (typeof rulesPlaces)[number];

export function familyOfPlace(place: RulesPlace): Family {
  return place === 'ipv4' || place === 'other ipv4' ? 'ipv4' : 'ipv6';
}

/** The iptables tables in each place. A place is absent if it was not compiled, or not dumped. */
export type FamilyTables = { readonly [P in RulesPlace]?: Tables };

export type FamilyTablesDelta = { readonly [P in RulesPlace]?: readonly TableDelta[] };

export function diffFamilyTables(from: FamilyTables, to: FamilyTables): FamilyTablesDelta {
  const delta: { [P in RulesPlace]?: readonly TableDelta[] } = {};
  for (const place of rulesPlaces) {
    const tables = diffTables(from[place] ?? {}, to[place] ?? {});
    if (tables.length > 0) delta[place] = tables;
  }
  return delta;
}
