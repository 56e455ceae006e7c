import {
  isBuiltInChain,
  tableNames,
  type Chain,
  type Rule,
  type RuleArg,
  type TableName,
  type Tables,
} from './iptables.ts';
import { parseRuleWords, splitWords, savedLines } from './parse-rule.ts';
import type { Family } from '../address.ts';
import { countLines, readLines, type UnreadLine, type LineFault } from '../lines.ts';

interface DraftChain {
  readonly name: string;
  readonly rules: Rule[];
  policy?: Chain['policy'];
}

/**
 * Reads the output of iptables-save and ip6tables-save (legacy or nft, with or without counters), and rules that kpc wrote. Unreadable
 * lines go to `unread`. A text is `complete` if each table ends with COMMIT, which is printed last. `known` speeds up reading several texts
 * in turn. `tableOf` finds the table of a line that is outside every table. `isInput`: the text is input for iptables-restore, where an
 * appended rule of a built-in chain goes after other programs' rules. iptables-save prints all rules as appended.
 */
export function parseIptablesSave(
  text: string | Iterable<string>,
  {
    known,
    tableOf,
    isInput = false,
  }: {
    readonly known?: RuleLines | undefined;
    readonly tableOf?: (line: string) => TableName;
    readonly isInput?: boolean;
  } = {},
): {
  readonly tables: Tables;
  readonly unread: readonly UnreadLine[];
  readonly tablesOfUnread: readonly (TableName | undefined)[];
  readonly complete: boolean;
} {
  const tables: { [T in TableName]?: Map<string, DraftChain> } = {};
  let table: TableName | undefined;
  let complete = true;
  let open = false;
  const read = (line: string): LineFault | undefined => {
    if (line === 'COMMIT') {
      table = undefined;
      open = false;
      return undefined;
    }
    if (!line.startsWith('*')) {
      const own = table ?? tableOf?.(line);
      return own ? readLine(own, (tables[own] ??= new Map()), line, { known, isInput }) : 'no-head';
    }
    if (open) complete = false;
    open = true;
    table = tableNames.find((name) => name === line.slice(1).trim());
    if (!table) return 'other-table';
    tables[table] ??= new Map();
    return undefined;
  };
  const lines = typeof text === 'string' ? savedLines(text) : text;
  const unread = readLines(lines, ['#'], read, () => table);
  return {
    tables,
    unread: unread.map(({ place: _, ...line }) => line),
    tablesOfUnread: unread.map(({ place }) => tableNames.find((name) => name === place)),
    complete: complete && !open,
  };
}

/** Limit in characters. Tools print at most a few thousand for one rule. */
const longestLine = 1 << 20;

function readLine(
  table: TableName,
  chains: Map<string, DraftChain>,
  line: string,
  { known: lines, isInput }: { readonly known: RuleLines | undefined; readonly isInput: boolean },
): LineFault | undefined {
  const known = lines?.get(line);
  if (known) {
    findOrAddChain(chains, known.chain).rules.push(known.rule);
    return undefined;
  }
  if (line.length > longestLine) return 'long-line';
  if (line.includes('\r') || line.includes('\0')) return 'control-character';
  const words = splitWords(line);
  if (!words) return 'open-quote';
  if (line.startsWith(':')) return declareChain(table, chains, words);
  // `iptables-save -c` prints [packets:bytes] before each rule.
  const at = line.startsWith('[') ? 1 : 0;
  const command = words[at];
  const name = words[at + 1];
  if (command !== '-A' && command !== '-I') return 'other-line';
  if (name === undefined) return 'other-line';
  const chain = findOrAddChain(chains, name);
  const isNumbered = command === '-I' && /^\d{1,9}$/.test(words[at + 2] ?? '');
  const place = command === '-A' ? chain.rules.length : isNumbered ? Number(words[at + 2]) - 1 : 0;
  if (place < 0 || place > chain.rules.length) return 'past-end';
  const args = parseRuleWords(words, isNumbered ? at + 3 : at + 2);
  const isLast = isInput && command === '-A' && isBuiltInChain(table, name);
  const rule = {
    args: args.some(isCountOption) ? args.filter((arg) => !isCountOption(arg)) : args,
    ...(isLast && { isLast }),
  };
  chain.rules.splice(place, 0, rule);
  if (command === '-A') lines?.set(line, { chain: name, rule });
  return undefined;
}

/** Reads `:NAME POLICY [packets:bytes]`. Empties an existing chain, as iptables-restore does. */
function declareChain(
  table: TableName,
  chains: Map<string, DraftChain>,
  words: readonly string[],
): LineFault | undefined {
  const name = words[0]?.slice(1) ?? '';
  const policy = words[1];
  if (name === '' || policy === undefined || words.length > 3) return 'other-line';
  if (policy !== '-' && policy !== 'ACCEPT' && policy !== 'DROP') return 'other-policy';
  if (policy !== '-' && !isBuiltInChain(table, name)) return 'own-policy';
  const chain = findOrAddChain(chains, name);
  chain.rules.length = 0;
  if (policy !== '-') chain.policy = policy;
  return undefined;
}

function findOrAddChain(chains: Map<string, DraftChain>, name: string): DraftChain {
  const chain = chains.get(name);
  if (chain) return chain;
  const made: DraftChain = { name, rules: [] };
  chains.set(name, made);
  return made;
}

function isCountOption(arg: RuleArg): boolean {
  return arg.kind === 'other' && arg.words[0] === '-c';
}

/**
 * Returns tables that iptables-save shows only in part, without an error, because other programs changed them with nft. Also returns the
 * line that says so. `isPart`: only base chains at hooks or priorities that iptables does not use are missing.
 */
export function findHiddenTables(
  text: string,
): ReadonlyMap<TableName, { readonly line: number; readonly isPart: boolean }> {
  const hidden = new Map<TableName, { readonly line: number; readonly isPart: boolean }>();
  let line = 1;
  for (const each of savedLines(text)) {
    const [, said, how] = /^[ \t]*# Table `(\w+)' (is|contains) incompatible/.exec(each) ?? [];
    const table = tableNames.find((name) => name === said);
    if (table && !hidden.has(table)) hidden.set(table, { line, isPart: how === 'contains' });
    line += countLines(each);
  }
  return hidden;
}

/** Rules by line, kept for reading the tool's next output. A repeated line gives the same object, which is quick to compare. */
export type RuleLines = Map<
  string,
  {
    readonly chain: string;
    readonly rule: Rule;
  }
>;

export type RuleLinesByFamily = Readonly<Record<Family, RuleLines>>;
