import { groupBy } from '../cluster/group-by.ts';
import { subtract } from './changes/compare-rules.ts';
import { labelInComment } from './changes/owners.ts';
import { diffStates, type KernelDelta } from '../kernel/delta.ts';
import { families, type Family } from '../kernel/family.ts';
import type { Chain, Rule, TableName, Tables } from '../kernel/iptables/iptables.ts';
import { ruleMeaning } from '../kernel/iptables/iptables-meaning.ts';
import type { StatePair } from './foreign-items.ts';

/** How two states differ in what they do to packets. */
export interface SilentDelta {
  readonly delta: KernelDelta;
  /** How many rules differ in nothing but their comments. */
  readonly comments: number;
}

/** Compares two states by what their rules do, whatever the rules say of themselves. */
export function alignComments({ from, to }: StatePair): SilentDelta {
  const delta = diffStates(from, to);
  const iptables: { [F in Family]?: Tables } = { ...from.iptables };
  let comments = 0;
  for (const family of families) {
    for (const { table, changes } of delta.iptables[family] ?? []) {
      const names = new Set(
        changes.map((change) => (typeof change.chain === 'string' ? change.chain : change.chain.name)),
      );
      const aligned = alignChains(from.iptables[family]?.[table], to.iptables[family]?.[table], names);
      comments += aligned.comments;
      iptables[family] = { ...iptables[family], [table]: aligned.chains } satisfies Partial<
        Record<TableName, ReadonlyMap<string, Chain>>
      >;
    }
  }
  return comments === 0 ? { delta, comments } : { delta: diffStates({ ...from, iptables }, to), comments };
}

/** The chains of one side, with the comments of the other where that is all that a rule differs in. */
function alignChains(
  from: ReadonlyMap<string, Chain> = new Map(),
  to: ReadonlyMap<string, Chain> = new Map(),
  names: ReadonlySet<string>,
): { readonly chains: ReadonlyMap<string, Chain>; readonly comments: number } {
  const chains = new Map(from);
  let comments = 0;
  for (const name of names) {
    const [before, after] = [from.get(name), to.get(name)];
    if (!before || !after) continue;
    const pairs = pairRules(before.rules, after.rules);
    comments += pairs.size;
    if (pairs.size > 0) chains.set(name, { ...before, rules: before.rules.map((rule) => pairs.get(rule) ?? rule) });
  }
  return { chains, comments };
}

/**
 * Rules that are not on the other side, each with one there that differs in its comment alone. What names another Service port
 * is another rule; what names none may be of any.
 */
function pairRules(from: readonly Rule[], to: readonly Rule[]): ReadonlyMap<Rule, Rule> {
  const pairs = new Map<Rule, Rule>();
  const taken = new Set<Rule>();
  const pair = (gone: readonly Rule[], made: readonly Rule[], keyOf: (rule: Rule) => string): void => {
    const byKey = groupBy(
      made.filter((each) => !taken.has(each)),
      keyOf,
    );
    for (const rule of gone.filter((each) => !pairs.has(each))) {
      const other = byKey.get(keyOf(rule))?.pop();
      if (!other) continue;
      pairs.set(rule, other);
      taken.add(other);
    }
  };
  const gone = subtract(from, to, ruleMeaning);
  const made = subtract(to, from, ruleMeaning);
  const isSilent = (rule: Rule): boolean => labelInComment(rule) === undefined;
  pair(gone, made, (rule) => `${labelInComment(rule) ?? ''} ${bareMeaning(rule)}`);
  pair(gone.filter(isSilent), made, bareMeaning);
  pair(gone, made.filter(isSilent), bareMeaning);
  return pairs;
}

/** What a rule does, without what it says of itself. */
function bareMeaning(rule: Rule): string {
  return ruleMeaning({ args: rule.args.filter(({ kind }) => kind !== 'comment') });
}
