import type { Rule } from '../../src/kernel/iptables/iptables.ts';
import { parseRuleWords, splitWords } from '../../src/kernel/iptables/parse-rule.ts';

/** Reads the arguments of a rule, without `-A CHAIN`; undefined if a quote is not closed. */
export function parseRule(text: string): Rule | undefined {
  const words = splitWords(text);
  return words && { args: parseRuleWords(words, 0) };
}
