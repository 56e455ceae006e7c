import { isObject } from '../base/shape.ts';
import { families } from '../kernel/family.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import { parseNftJson } from '../kernel/nftables/parse-json.ts';
import { parseNftText, type ParsedTables } from '../kernel/nftables/parse-text.ts';
import type { NftTable } from '../kernel/nftables/table.ts';

/**
 * Other programs' tables in one output of nft, such as "inet firewalld", as packets meet them: one of the family inet sees
 * those of both families. What kpc does not read of a rule is an unknown expression. Undefined for a table of which more
 * than that could not be read.
 */
export function readOtherTables(
  names: readonly string[],
  text: string,
  isJson: boolean,
): ReadonlyMap<string, readonly NftTable[] | undefined> {
  const items = isJson && names.length > 0 ? itemsOfTables(text) : undefined;
  return new Map(
    names.map((table) => {
      const own = items?.get(table) ?? [];
      return [
        table,
        readOtherTable(table, (as) => (isJson ? parseNftJson(jsonOf(own, as)) : parseNftText(textAs(text, as)))),
      ];
    }),
  );
}

function readOtherTable(table: string, parse: (as: string) => ParsedTables): readonly NftTable[] | undefined {
  const family = table.split(' ', 1)[0];
  const seenAs = family === 'inet' ? families : families.filter((each) => nftFamily[each] === family);
  const read = seenAs.map((each) => parse(nftFamily[each]));
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
function textAs(text: string, family: string): string {
  const [head = '', ...lines] = text.trimStart().split('\n');
  return [head.replace(/^(\s*table )\S+/, `$1${family}`), ...lines.map(plainLine)].join('\n');
}

function plainLine(line: string): string {
  const plain = line
    .replaceAll(/[ \t]counter packets \d+ bytes \d+/g, '')
    .replaceAll(logging, '')
    .replaceAll(/[ \t]ct state (!= )?([a-z]+(?:,[a-z]+)+)/g, (_, not: string | undefined, states: string) => {
      return ` ct state ${not ?? ''}{ ${states.replaceAll(',', ', ')} }`;
    });
  // A rule that does nothing else counts all the same.
  return plain.trim() === '' && line.trim() !== '' ? 'continue' : plain;
}

const logging =
  /(?<!jump|goto|chain)[ \t]log(?![\w-])(?: (?:prefix "[^"]*"|level [a-z]+|flags [a-z]+|tcp [a-z,]+|ip options|group \d+|snaplen \d+))*/g;

type Item = Readonly<Record<string, unknown>>;

/** "inet firewalld" → what the JSON says of it: kind and body of each object. */
function itemsOfTables(text: string): ReadonlyMap<string, readonly (readonly [kind: string, body: Item])[]> {
  const tables = new Map<string, (readonly [string, Item])[]>();
  for (const entry of listItems(text)) {
    const [[kind, body] = []] = isObject(entry) ? Object.entries(entry) : [];
    if (kind === undefined || !isObject(body)) continue;
    const table = `${String(body['family'])} ${String(body[kind === 'table' ? 'name' : 'table'])}`;
    const known = tables.get(table);
    if (known) known.push([kind, body]);
    else tables.set(table, [[kind, body]]);
  }
  return tables;
}

function listItems(text: string): readonly unknown[] {
  try {
    const json: unknown = JSON.parse(text);
    const items = isObject(json) ? json['nftables'] : undefined;
    return Array.isArray(items) ? items : [];
  } catch {
    return [];
  }
}

function jsonOf(items: readonly (readonly [kind: string, body: Item])[], family: string): string {
  const nftables = items.map(([kind, body]) => {
    const { expr } = body;
    const parts: readonly unknown[] = Array.isArray(expr) ? expr : [];
    const kept = parts.filter((each) => !isObject(each) || !('counter' in each || 'log' in each)).map(withSet);
    return { [kind]: { ...body, family, ...(kind === 'rule' ? { expr: kept } : {}) } };
  });
  return JSON.stringify({ nftables });
}

/** `"op": "in"` with a list of states, which is any of them. */
function withSet(expression: unknown): unknown {
  const match = isObject(expression) ? expression['match'] : undefined;
  if (!isObject(match) || match['op'] !== 'in' || !Array.isArray(match['right'])) return expression;
  return { match: { ...match, op: '==', right: { set: match['right'] as readonly unknown[] } } };
}
