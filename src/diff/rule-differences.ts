import type { Rule } from '../kernel/iptables.ts';
import { ruleMeaning } from '../kernel/iptables-meaning.ts';
import { labelInComment } from './owners.ts';

/** Whether rules do the same one by one, whatever they say of themselves. */
export function standsAsBefore(from: readonly Rule[], to: readonly Rule[]): boolean {
  return from.every((rule, i) => bareMeaning(rule) === bareMeaning(to[i] ?? { args: [] }));
}

/** What a rule does, without what it says of itself. */
export function bareMeaning(rule: Rule): string {
  return ruleMeaning({ args: rule.args.filter(({ kind }) => kind !== 'comment') });
}

/** What one list of rules has more than the other, whatever their order; rules that differ in comments alone are counted. */
export function diffRules(
  from: readonly Rule[],
  to: readonly Rule[],
): { readonly added: readonly Rule[]; readonly removed: readonly Rule[]; readonly comments: number } {
  const removed = subtractRules(from, to, ruleMeaning);
  const added = subtractRules(to, from, ruleMeaning);
  if (removed.length === 0 || added.length === 0) return { added, removed, comments: 0 };
  const left = { added: [...added], removed: [...removed] };
  // What names another Service port is another rule; what names none may be of any.
  for (const isPair of [isSameLabel, isMissingLabel]) {
    const byMeaning = new Map<string, Rule[]>();
    for (const rule of left.added) {
      const meaning = bareMeaning(rule);
      const known = byMeaning.get(meaning);
      if (known) known.push(rule);
      else byMeaning.set(meaning, [rule]);
    }
    const paired = new Set<Rule>();
    left.removed = left.removed.filter((rule) => {
      const others = byMeaning.get(bareMeaning(rule)) ?? [];
      const at = others.findIndex((other) => isPair(labelInComment(rule), labelInComment(other)));
      const [pair] = at < 0 ? [] : others.splice(at, 1);
      if (pair) paired.add(pair);
      return !pair;
    });
    left.added = left.added.filter((rule) => !paired.has(rule));
  }
  return { ...left, comments: removed.length - left.removed.length };
}

function isSameLabel(one: string | undefined, other: string | undefined): boolean {
  return one === other;
}

function isMissingLabel(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined;
}

/** The rules of one list that are not in the other, each as often as it is there. */
function subtractRules(
  rules: readonly Rule[],
  others: readonly Rule[],
  meaningOf: (rule: Rule) => string,
): readonly Rule[] {
  const left = new Map<string, number>();
  for (const rule of others) {
    const meaning = meaningOf(rule);
    left.set(meaning, (left.get(meaning) ?? 0) + 1);
  }
  return rules.filter((rule) => !take(left, meaningOf(rule)));
}

function take(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0;
  if (count === 0) return false;
  counts.set(key, count - 1);
  return true;
}
