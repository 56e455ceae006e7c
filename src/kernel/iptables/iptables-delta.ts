import { itemOf, pairUp, type Pair } from '../diff-by-key.ts';
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
import { families, type Family } from '../family.ts';

/** One step from some chains to others. */
export type ChainChange =
  /** Writes the whole chain, or deletes it. */
  | ({ readonly kind: 'chain' } & Pair<Chain>)
  /**
   * In one of the kernel's own chains: inserts a rule at a position, which counts from 1; without one, the first rule that
   * means the same goes.
   */
  | { readonly kind: 'rule'; readonly chain: string; readonly rule: Rule; readonly position?: number };

/** The name of the chain that changes. */
export function changedChain(change: ChainChange): string {
  return change.kind === 'chain' ? itemOf(change).name : change.chain;
}

/** The changes of one table, in the order in which they can be made. iptables-restore makes them all at once. */
export interface TableDelta {
  readonly table: TableName;
  readonly changes: readonly ChainChange[];
}

/**
 * How to get from some tables to others. Chains that mean the same are left alone, others are rewritten as a whole. In
 * the kernel's own chains, rules are deleted and inserted one by one, so that rules which neither side has stay: what
 * is new is at the head. Policies are ignored: they are the node's own.
 */
export function diffTables(from: Tables, to: Tables): readonly TableDelta[] {
  const deltas: TableDelta[] = [];
  for (const table of tableNames) {
    const changes = diffTable(table, from[table] ?? noChains, to[table] ?? noChains);
    if (changes.length > 0) deltas.push({ table, changes });
  }
  return deltas;
}

const noChains: ReadonlyMap<string, Chain> = new Map();

function diffTable(
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
      for (const jump of diffBuiltIn(name, old?.rules ?? [], chain?.rules ?? [])) jumps.push(jump);
    } else if (!old || !chain || !equalRules(old.rules, chain.rules)) {
      (chain ? writes : deletes).push({ kind: 'chain', ...pair });
    }
  }
  return [...writes, ...jumps, ...deletes];
}

/** Whether two lists of rules mean the same, in the same order. */
export function equalRules(a: readonly Rule[], b: readonly Rule[]): boolean {
  if (a === b) return true;
  const before = actingRules(a);
  const after = actingRules(b);
  return before.length === after.length && before.every((rule, i) => sameRule(rule, after[i]));
}

function sameRule(a: Rule, b: Rule | undefined): boolean {
  return a === b || (b !== undefined && ruleMeaning(a) === ruleMeaning(b));
}

/**
 * What is new at the head of the chain is inserted there, and what is gone is deleted. Where that does not give the
 * order wanted, all rules are deleted and inserted anew: the positions of other programs' rules are not known, so that
 * nothing can be put between two rules.
 */
function diffBuiltIn(chain: string, from: readonly Rule[], to: readonly Rule[]): ChainChange[] {
  const after = to.map(ruleMeaning);
  const gone: Rule[] = [];
  let inserted = after.length;
  for (const rule of from.toReversed()) {
    if (inserted > 0 && ruleMeaning(rule) === after[inserted - 1]) inserted--;
    else gone.push(rule);
  }
  // iptables deletes the first of two equal rules, which may be the one to keep.
  const kept = new Set(after.slice(inserted));
  const isRemade = gone.some((rule) => kept.has(ruleMeaning(rule)));
  const deleted = isRemade ? from : gone.reverse();
  return [
    ...deleted.map((rule): ChainChange => ({ kind: 'rule', chain, rule })),
    ...to.slice(0, isRemade ? to.length : inserted).map((rule, i): ChainChange => {
      return { kind: 'rule', chain, rule, position: i + 1 };
    }),
  ];
}

/** The input of `iptables-restore --noflush` that makes the changes of each table at once. '' if there are none. */
export function formatTablesDelta(deltas: readonly TableDelta[]): string {
  return deltas
    .map(({ table, changes }) => {
      // A chain is declared before any rule that jumps to it; declaring one that is there empties it. By name, because the
      // nft variant of iptables-restore keeps its chains sorted, and looks for the place of each from one end.
      const declared = changes.flatMap((change) => (change.kind === 'chain' ? [changedChain(change)] : [])).sort();
      const declarations = declared.map((name) => `${formatDeclaration(name)}\n`).join('');
      return `*${table}\n${declarations}${changes.map(formatChange).join('')}COMMIT\n`;
    })
    .join('');
}

function formatChange(change: ChainChange): string {
  if (change.kind === 'chain') return change.to ? formatAppends(change.to) : `-X ${formatWord(change.from.name)}\n`;
  const { chain, rule, position } = change;
  return `${position === undefined ? formatDelete(chain, rule) : formatInsert(chain, position, rule)}\n`;
}

/** The tables of iptables of each family; a family without any is one that was not compiled, or not dumped. */
export type FamilyTables = { readonly [F in Family]?: Tables };

/** What changes in them; families without changes are absent. */
export type FamilyTablesDelta = { readonly [F in Family]?: readonly TableDelta[] };

/** A family without tables counts as one without chains. */
export function diffFamilyTables(from: FamilyTables, to: FamilyTables): FamilyTablesDelta {
  const delta: { [F in Family]?: readonly TableDelta[] } = {};
  for (const family of families) {
    const tables = diffTables(from[family] ?? {}, to[family] ?? {});
    if (tables.length > 0) delta[family] = tables;
  }
  return delta;
}
