import type { Family } from './family.ts';
import { ruleMeaning } from './iptables-meaning.ts';
import type { Rule, Tables } from './iptables.ts';

/** A rule, and the chain that its line appends it to. */
export interface AppendedRule {
  readonly chain: string;
  readonly rule: Rule;
}

/** What lines of iptables-save stand for, so that a line that is met again is not read again. */
export interface RuleMemo {
  find(line: string): AppendedRule | undefined;
  /** Gives the rule to go by: one that is wanted and means the same, so that the two compare at no cost. */
  remember(line: string, appended: AppendedRule): Rule;
}

export type RuleMemos = { readonly [F in Family]: RuleMemo };

/** A memo for one family, whose tables are to become the wanted ones. */
export function createRuleMemo(wanted: Tables | undefined): RuleMemo {
  const byLine = new Map<string, AppendedRule>();
  const byMeaning = new Map<string, Rule>();
  for (const chains of Object.values(wanted ?? {})) {
    for (const chain of chains.values()) for (const rule of chain.rules) byMeaning.set(ruleMeaning(rule), rule);
  }
  return {
    find: (line) => byLine.get(line),
    remember(line, { chain, rule }) {
      const known = byMeaning.get(ruleMeaning(rule)) ?? rule;
      byLine.set(line, { chain, rule: known });
      return known;
    },
  };
}
