import { groupBy } from '../cluster/group-by.ts';
import { subtract } from './changes/kernel-change.ts';
import { labelInComment } from './changes/owners.ts';
import { diffStates, type KernelDelta } from '../kernel/delta.ts';
import { families, type Family } from '../kernel/family.ts';
import type { Rule, Tables } from '../kernel/iptables/iptables.ts';
import { ruleMeaning } from '../kernel/iptables/iptables-meaning.ts';
import type { StatePair } from './foreign-items.ts';

/**
 * Compares two states by what their rules do, whatever the rules say of themselves; `comments` is how many rules differ in
 * nothing but that.
 */
export function alignComments({ from, to }: StatePair): { readonly delta: KernelDelta; readonly comments: number } {
  const delta = diffStates(from, to);
  const iptables: { [F in Family]?: Tables } = { ...from.iptables };
  let comments = 0;
  for (const family of families) {
    for (const { table, changes } of delta.iptables[family] ?? []) {
      const [before, after] = [from.iptables[family]?.[table], to.iptables[family]?.[table]];
      const chains = new Map(before);
      for (const name of new Set(changes.map(({ chain }) => (typeof chain === 'string' ? chain : chain.name)))) {
        const [old, fresh] = [before?.get(name), after?.get(name)];
        const pairs = old && fresh && pairRules(old.rules, fresh.rules);
        if (!pairs || pairs.size === 0) continue;
        comments += pairs.size;
        chains.set(name, { ...old, rules: old.rules.map((rule) => pairs.get(rule) ?? rule) });
      }
      iptables[family] = { ...iptables[family], [table]: chains };
    }
  }
  return comments === 0 ? { delta, comments } : { delta: diffStates({ ...from, iptables }, to), comments };
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
