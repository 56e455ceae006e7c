import {
  isBuiltInChain,
  tableNames,
  type Chain,
  type Rule,
  type RuleArg,
  type TableName,
  type Tables,
} from './iptables.ts';
import { parseRuleWords, splitWords } from './parse-rule.ts';
import type { Family } from '../family.ts';
import { readLines, type UnreadLine } from '../unread-line.ts';

/** A chain while its lines are read. */
interface DraftChain {
  readonly name: string;
  readonly rules: Rule[];
  policy?: Chain['policy'];
}

/**
 * Reads what iptables-save or ip6tables-save prints (legacy or nft, with or without counters), and what formatTables
 * writes. Takes any text: lines it cannot read are in `unread`, and nothing else is left out but counters. If a table
 * lacks COMMIT, the last line that the tools print, the text is not `complete`. `known` speeds up reading several texts
 * in turn; `tableOf` finds the table of lines outside any table.
 */
export function parseIptablesSave(
  text: string,
  known?: RuleLines,
  tableOf?: (line: string) => TableName,
): {
  readonly tables: Tables;
  readonly unread: readonly UnreadLine[];
  readonly complete: boolean;
} {
  const tables: { [T in TableName]?: Map<string, DraftChain> } = {};
  let table: TableName | undefined;
  let complete = true;
  let open = false;
  const unread = readLines(text, ['#'], (line) => {
    if (line === 'COMMIT') {
      table = undefined;
      open = false;
      return undefined;
    }
    if (!line.startsWith('*')) {
      const own = table ?? tableOf?.(line);
      return own ? readLine(own, (tables[own] ??= new Map()), line, known) : 'outside a table';
    }
    if (open) complete = false;
    open = true;
    table = tableNames.find((name) => name === line.slice(1).trim());
    if (!table) return 'not a table that iptables has';
    tables[table] ??= new Map();
    return undefined;
  });
  return { tables, unread, complete: complete && !open };
}

/** Characters: what a tool prints of a rule has some thousands. */
const longestLine = 1 << 20;

/** Reads a line of a table. Returns why it cannot be read. */
function readLine(
  table: TableName,
  chains: Map<string, DraftChain>,
  line: string,
  lines: RuleLines | undefined,
): string | undefined {
  const known = lines?.get(line);
  if (known) {
    findChain(chains, known.chain).rules.push(known.rule);
    return undefined;
  }
  if (line.length > longestLine) return 'too long a line';
  if (line.includes('\r') || line.includes('\0')) return 'a control character in the line';
  const words = splitWords(line);
  if (!words) return 'a quote that is not closed';
  if (line.startsWith(':')) return declareChain(table, chains, words);
  // iptables-save -c puts [packets:bytes] in front of a rule.
  const at = line.startsWith('[') ? 1 : 0;
  const command = words[at];
  const name = words[at + 1];
  if (command !== '-A' && command !== '-I') return 'neither a chain nor a rule';
  if (name === undefined) return 'a rule without a chain';
  const chain = findChain(chains, name);
  if (command === '-I' && words[at + 2] !== String(chain.rules.length + 1)) {
    return 'inserted elsewhere than at the end of its chain';
  }
  const args = parseRuleWords(words, command === '-A' ? at + 2 : at + 3);
  const rule = { args: args.some(isCounter) ? args.filter((arg) => !isCounter(arg)) : args };
  chain.rules.push(rule);
  if (command === '-A') lines?.set(line, { chain: name, rule });
  return undefined;
}

/** `:NAME POLICY [packets:bytes]`. A chain that is there already is emptied, as iptables-restore does. */
function declareChain(table: TableName, chains: Map<string, DraftChain>, words: readonly string[]): string | undefined {
  const name = words[0]?.slice(1) ?? '';
  const policy = words[1];
  if (name === '' || policy === undefined || words.length > 3) return 'not the declaration of a chain';
  if (policy !== '-' && policy !== 'ACCEPT' && policy !== 'DROP') return 'not a policy that a chain can have';
  if (policy !== '-' && !isBuiltInChain(table, name)) return 'a policy, but not one of the chains of the kernel';
  const chain = findChain(chains, name);
  chain.rules.length = 0;
  if (policy !== '-') chain.policy = policy;
  return undefined;
}

function findChain(chains: Map<string, DraftChain>, name: string): DraftChain {
  const chain = chains.get(name);
  if (chain) return chain;
  const made: DraftChain = { name, rules: [] };
  chains.set(name, made);
  return made;
}

/** `-c PACKETS BYTES` inside a rule is a counter, too. */
function isCounter(arg: RuleArg): boolean {
  return arg.kind === 'other' && arg.words[0] === '-c';
}

/**
 * The tables that iptables-save says it cannot show, in the order in which it does, and in which line of the text. Where
 * iptables keeps its rules in nftables, others can write into its tables what iptables does not know: it then leaves out the
 * whole table, and reports success.
 */
export function findHiddenTables(text: string): ReadonlyMap<TableName, number> {
  const hidden = new Map<TableName, number>();
  for (const { 1: said, index } of text.matchAll(/^[ \t]*# Table `(\w+)' is incompatible/gm)) {
    const table = tableNames.find((name) => name === said);
    if (table && !hidden.has(table)) hidden.set(table, text.slice(0, index).split('\n').length);
  }
  return hidden;
}

/** A rule, and the chain that its line appends it to. */
interface AppendedRule {
  readonly chain: string;
  readonly rule: Rule;
}

/**
 * The rules read from the lines of a text, for the same tool's next text, which has nearly the same lines. A repeated
 * line is not read again, and its rule is the same object, which compares at no cost.
 */
export type RuleLines = Map<string, AppendedRule>;

export type RuleLinesByFamily = Readonly<Record<Family, RuleLines>>;
