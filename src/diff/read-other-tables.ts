import { families } from '../kernel/family.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import { parseNftJson } from '../kernel/nftables/parse-json.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import type { NftTable } from '../kernel/nftables/table.ts';

/**
 * Another program's table, "inet firewalld", as packets meet it: one of the family inet sees those of both families. What
 * kpc does not read of a rule is an unknown expression. Undefined for a table of which more than that could not be read.
 */
export function readOtherTable(table: string, text: string, isJson: boolean): readonly NftTable[] | undefined {
  const [family = '', name = ''] = table.split(' ');
  const seenAs = family === 'inet' ? families : families.filter((each) => nftFamily[each] === family);
  const read = seenAs.map((each) => {
    const wants = (_: unknown, own: string): boolean => own === name;
    const one = isJson ? jsonOfTable(text, family, name, nftFamily[each]) : textOfTable(text, nftFamily[each]);
    return isJson ? parseNftJson(one, wants) : parseNftText(one, wants);
  });
  if (read.some(({ unread }) => unread.some(({ text: line, reason }) => !isHarmless(line, reason)))) return undefined;
  return read.flatMap(({ tables }) => tables);
}

/** Objects that only rules use, which are unknown then, and properties that change no lookup. */
function isHarmless(line: string, reason: string): boolean {
  if (reason === 'a property that is not known') return /^\s*(?:auto-merge|gc-interval|policy|counter)\b/.test(line);
  if (reason === 'neither a chain, a set, a map nor a counter') return true;
  return reason === 'not a part of a table' && /^\s*flags (?:owner|persist)/.test(line);
}

/** Without counters and logging, which let packets be, and with lists of states in the form of sets. */
function textOfTable(text: string, family: string): string {
  return text
    .replace(/^(\s*table )\S+/, `$1${family}`)
    .replaceAll(/[ \t]counter packets \d+ bytes \d+/g, '')
    .replaceAll(/[ \t]log(?: (?:prefix "[^"]*"|level \w+|flags [\w ,]+?|group \d+|snaplen \d+))*(?= |$)/gm, '')
    .replaceAll(/[ \t]ct state (!= )?(\w+(?:,\w+)+)/g, (_, not: string | undefined, states: string) => {
      return ` ct state ${not ?? ''}{ ${states.replaceAll(',', ', ')} }`;
    });
}

interface Item {
  readonly family?: string;
  readonly name?: string;
  readonly table?: string;
  readonly expr?: readonly Readonly<Record<string, unknown>>[];
}

function jsonOfTable(text: string, family: string, name: string, as: string): string {
  const { nftables } = JSON.parse(text) as { readonly nftables: readonly Readonly<Record<string, Item>>[] };
  const own = nftables.flatMap((entry) => {
    const [[kind, item] = ['', {}]] = Object.entries(entry);
    if (item.family !== family || (kind === 'table' ? item.name : item.table) !== name) return [];
    const expr = item.expr?.filter((each) => !('counter' in each) && !('log' in each)).map(withSet);
    return [{ [kind]: { ...item, family: as, ...(expr ? { expr } : {}) } }];
  });
  return JSON.stringify({ nftables: own });
}

/** `"op": "in"` with a list of states, which is any of them. */
function withSet(expression: Readonly<Record<string, unknown>>): unknown {
  const match = expression['match'] as { readonly op?: string; readonly right?: unknown } | undefined;
  if (match?.op !== 'in' || !Array.isArray(match.right)) return expression;
  return { match: { ...match, op: '==', right: { set: match.right } } };
}
