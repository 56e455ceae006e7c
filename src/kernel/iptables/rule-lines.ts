import type { Family } from '../family.ts';
import type { Rule } from './iptables.ts';

/** A rule, and the chain that its line appends it to. */
interface AppendedRule {
  readonly chain: string;
  readonly rule: Rule;
}

/**
 * The rules that the lines of a text stood for, for the next text of the same tool, which has nearly the same lines in
 * the same order: a line that is met again is not read again, and its rule is the same value, which compares at no cost.
 */
export interface RuleLines {
  /** Before the first line of a text. */
  rewind(): void;
  find(line: string): AppendedRule | undefined;
  record(line: string, appended: AppendedRule): void;
}

export type RuleLinesByFamily = { readonly [F in Family]: RuleLines };

/** How many lines may have gone before the next that has stayed is looked for no further. */
const window = 512;

export function createRuleLines(): RuleLines {
  let before = { lines: [] as string[], rules: [] as AppendedRule[] };
  let now = { lines: [] as string[], rules: [] as AppendedRule[] };
  let next = 0;
  const record = (line: string, appended: AppendedRule): void => {
    now.lines.push(line);
    now.rules.push(appended);
  };
  return {
    rewind() {
      before = now;
      now = { lines: [], rules: [] };
      next = 0;
    },
    find(line) {
      const { lines, rules } = before;
      const end = Math.min(lines.length, next + window);
      for (let i = next; i < end; i++) {
        if (lines[i] !== line) continue;
        next = i + 1;
        const appended = rules[i];
        if (appended) record(line, appended);
        return appended;
      }
      return undefined;
    },
    record,
  };
}
