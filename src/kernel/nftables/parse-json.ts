import { families } from '../family.ts';
import type { UnreadLine } from '../unread-line.ts';
import type { Element, ElementValue, Value } from './element.ts';
import { nftFamily } from './format.ts';
import {
  asObject,
  onlyEntry,
  readConstant,
  readExpression,
  readVerdict,
  strings,
  type JsonObject,
} from './parse-rule-json.ts';
import type { ParsedTables, WantsTable } from './parse-text.ts';
import { valueTypeOf } from './read-value.ts';
import type { NftChain, NftCounter, NftMap, NftRule, NftSet, NftTable } from './table.ts';

/**
 * Reads what `nft -j list ruleset` and `nft -j list table` print (versions 1.0.1 to 1.1). It makes the same tables as
 * the text does, but for what JSON leaves out: comments of tables and chains, and in some versions the flag dynamic.
 * Since JSON has no lines, all that cannot be read is said to stand on the first.
 */
export function parseNftJson(text: string, wants: WantsTable = () => true): ParsedTables {
  const unread: UnreadLine[] = [];
  const items = readItems(text);
  if (!items) return { tables: [], unread: [{ line: 1, text: '', reason: 'not the JSON that nft prints' }] };
  const tables = new Map<string, DraftTable>();
  for (const item of items) {
    const reason = readItem(item, tables, wants);
    if (reason !== undefined) unread.push({ line: 1, text: JSON.stringify(item), reason });
  }
  return { tables: [...tables.values()], unread };
}

interface DraftTable extends NftTable {
  readonly counters: Map<string, NftCounter>;
  readonly chains: Map<string, DraftChain>;
  readonly sets: Map<string, NftSet | NftMap>;
}

interface DraftChain extends NftChain {
  readonly rules: NftRule[];
}

function readItems(text: string): readonly unknown[] | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  const items = asObject(json)?.['nftables'];
  return Array.isArray(items) ? (items as readonly unknown[]) : undefined;
}

/** Puts an item into its table. Returns why it cannot be read. */
function readItem(item: unknown, tables: Map<string, DraftTable>, wants: WantsTable): string | undefined {
  const [kind, json] = onlyEntry(item) ?? [];
  const body = asObject(json);
  if (kind === undefined || !body) return 'not an object of a table';
  if (kind === 'metainfo') return undefined;
  const family = families.find((candidate) => nftFamily[candidate] === body['family']);
  const tableName = kind === 'table' ? body['name'] : body['table'];
  if (!family || typeof tableName !== 'string' || !wants(family, tableName)) return undefined;
  const key = `${family} ${tableName}`;
  if (kind === 'table') {
    const comment = commentOf(body);
    tables.set(key, { family, name: tableName, ...comment, counters: new Map(), chains: new Map(), sets: new Map() });
    return undefined;
  }
  const table = tables.get(key);
  if (!table) return 'an object of a table that is not there';
  const name = body['name'];
  if (kind === 'rule') return readRule(body, table);
  if (typeof name !== 'string') return 'an object without a name';
  if (kind === 'chain') table.chains.set(name, readChain(name, body));
  else if (kind === 'set' || kind === 'map') table.sets.set(name, readSet(kind, name, body));
  else if (kind === 'counter') table.counters.set(name, { name, ...commentOf(body) });
  else return 'neither a chain, a set, a map nor a counter';
  return undefined;
}

function readChain(name: string, body: JsonObject): DraftChain {
  const { type, hook, prio, policy } = body;
  const base =
    typeof type === 'string' && typeof hook === 'string' && typeof prio === 'number'
      ? { base: { type, hook, priority: prio, ...(policy === 'drop' ? { policy: 'drop' as const } : {}) } }
      : {};
  return { name, ...base, ...commentOf(body), rules: [] };
}

function readRule(body: JsonObject, table: DraftTable): string | undefined {
  const chain = typeof body['chain'] === 'string' ? table.chains.get(body['chain']) : undefined;
  const parts = body['expr'];
  if (!chain || !Array.isArray(parts)) return 'a rule of a chain that is not there';
  const expressions = (parts as readonly unknown[]).map((part) => readExpression(part, table.family));
  chain.rules.push({ expressions, ...commentOf(body) });
  return undefined;
}

function readSet(kind: 'set' | 'map', name: string, body: JsonObject): NftSet | NftMap {
  const keyType = strings(body['type']);
  const valueType = strings(body['map']);
  const elements = Array.isArray(body['elem']) ? (body['elem'] as readonly unknown[]) : [];
  const set = {
    name,
    keyType,
    flags: strings(body['flags']).toSorted(),
    ...(typeof body['timeout'] === 'number' ? { timeoutSeconds: body['timeout'] } : {}),
    ...(typeof body['size'] === 'number' ? { size: body['size'] } : {}),
    ...commentOf(body),
  };
  if (kind === 'set') return { kind, ...set, elements: elements.map((json) => readKey(json, keyType)) };
  return { kind, ...set, valueType, elements: elements.map((json) => readPair(json, keyType, valueType)) };
}

function readPair(json: unknown, keyType: readonly string[], valueType: readonly string[]): Element {
  const [key, value] = Array.isArray(json) ? (json as readonly unknown[]) : [json];
  return { ...readKey(key, keyType), value: readMapValue(value, valueType) };
}

function readMapValue(json: unknown, valueType: readonly string[]): ElementValue {
  return readVerdict(json) ?? { kind: 'data', values: readConcatenation(json, valueType) };
}

/** A key, alone or with what is said of it: `{ "elem": { "val": KEY, "comment": "…" } }`. */
function readKey(json: unknown, keyType: readonly string[]): Element {
  const element = asObject(asObject(json)?.['elem']);
  if (!element) return { key: readConcatenation(json, keyType) };
  return { key: readConcatenation(element['val'], keyType), ...commentOf(element) };
}

function readConcatenation(json: unknown, types: readonly string[]): readonly Value[] {
  const parts = asObject(json)?.['concat'];
  const items: readonly unknown[] = Array.isArray(parts) ? parts : [json];
  return items.map(
    (item, i) =>
      readConstant(item, valueTypeOf(types[i] ?? '')) ?? {
        kind: 'word',
        text: typeof item === 'string' ? item : JSON.stringify(item),
      },
  );
}

function commentOf(body: JsonObject): { readonly comment?: string } {
  return typeof body['comment'] === 'string' ? { comment: body['comment'] } : {};
}
