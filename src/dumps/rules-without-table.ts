import type { TableName } from '../kernel/iptables/iptables.ts';
import { classifyChain } from '../kube-proxy/chains.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';

/** Rules that were printed without the line that names their table, put into tables. */
export interface PlacedRules {
  /** For each table a text of as many lines as were given, in the form of iptables-save; lines of other tables are empty. */
  readonly tables: ReadonlyMap<TableName, string>;
  /** Whether the policies of a table's own chains stand there, as iptables -S prints them: then all of it does. */
  readonly isWhole: boolean;
}

/**
 * Finds the table of each rule where none is named: by its target, by the chain it is in, which only one table of kube-proxy's
 * has, or by the chain it goes to; else the table of the other rules. `named` is the table of the command above, if any.
 */
export function placeRules(text: string, named: TableName | undefined): PlacedRules {
  const lines = text.split('\n').map(toSaved);
  const policies = new Set(lines.flatMap((line) => builtInWithPolicy.exec(line)?.[1] ?? []));
  const printed = named ?? tableOfPolicies(policies);
  const sure = lines.map((line) => printed ?? tableOfLine(line));
  const rest = mostly(sure) ?? 'nat';
  const byName = new Map<string, TableName>();
  for (const [i, line] of lines.entries()) {
    const chain = chainOf(line);
    const table = sure[i];
    if (chain !== undefined && table !== undefined && !byName.has(chain)) byName.set(chain, table);
  }
  const tables = new Map<TableName, string[]>();
  const begun = new Set<string>();
  for (const [i, line] of lines.entries()) {
    if (line === '') continue;
    const table = sure[i] ?? byName.get(chainOf(line) ?? '') ?? rest;
    // grep finds the line that declares a chain of each table, and the second would empty the chain of the first.
    const key = `${table} ${chainOf(line)}`;
    if (line.startsWith(':') && begun.has(key)) continue;
    begun.add(key);
    const own = tables.get(table) ?? [];
    while (own.length < i) own.push('');
    own.push(line);
    tables.set(table, own);
  }
  return { tables: new Map([...tables].map(([table, own]) => [table, own.join('\n')])), isWhole: policies.size > 0 };
}

const builtInWithPolicy = /^:(PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING) (?:ACCEPT|DROP)/;

/** The table that has these of the kernel's own chains, which iptables -S prints all of. */
function tableOfPolicies(chains: ReadonlySet<string>): TableName | undefined {
  if (chains.has('FORWARD')) return chains.has('POSTROUTING') ? 'mangle' : 'filter';
  return chains.has('POSTROUTING') ? 'nat' : undefined;
}

/** A line of iptables -S as iptables-save has it. */
function toSaved(line: string): string {
  const policy = /^-P (\S+) (\S+)(?: -c \d+ \d+)?$/.exec(line);
  if (policy) return `:${policy[1]} ${policy[2]} [0:0]`;
  const made = /^-N (\S+)$/.exec(line)?.[1];
  return made === undefined ? line : `:${made} - [0:0]`;
}

const inLine = /^(?:(?:\[\d+:\d+\] )?-[AI] |:)(\S+)/;

function chainOf(line: string): string | undefined {
  return inLine.exec(line)?.[1];
}

const natTargets: ReadonlySet<string> = new Set('DNAT SNAT MASQUERADE REDIRECT NETMAP'.split(' '));

/** The table that a line can only be of, seen by itself. */
function tableOfLine(line: string): TableName | undefined {
  const chain = chainOf(line);
  if (chain === undefined) return undefined;
  if (chain === 'POSTROUTING') return 'nat';
  const target = / -[jg] (\S+)/.exec(line)?.[1];
  if (target === undefined) return tableOfChain(chain);
  if (natTargets.has(target)) return 'nat';
  if (target === 'REJECT' || target === 'DROP') return 'filter';
  const own = tableOfChain(chain) ?? tableOfChain(target);
  if (own) return own;
  // Both tables have a jump to KUBE-SERVICES in OUTPUT; that of filter is for new connections only.
  if (chain === 'PREROUTING') return 'nat';
  if (chain === 'INPUT' || chain === 'FORWARD' || / --ctstate NEW( |$)/.test(line)) return 'filter';
  return chain === 'OUTPUT' && target === baseChains.services ? 'nat' : undefined;
}

/** The table that alone has a chain of this name, of those that kube-proxy makes. */
function tableOfChain(chain: string): TableName | undefined {
  const isNat = isOwn('nat', chain);
  const isFilter = isOwn('filter', chain);
  if (isNat === isFilter) return undefined;
  return isNat ? 'nat' : 'filter';
}

function isOwn(table: TableName, chain: string): boolean {
  const kind = classifyChain(table, chain);
  return kind === 'service' || kind === 'fixed';
}

/** The table that most of the rules are of. */
function mostly(tables: readonly (TableName | undefined)[]): TableName | undefined {
  let nat = 0;
  let filter = 0;
  for (const table of tables) {
    if (table === 'nat') nat++;
    else if (table === 'filter') filter++;
  }
  if (nat === 0 && filter === 0) return undefined;
  return nat >= filter ? 'nat' : 'filter';
}
