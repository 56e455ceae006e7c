import { families, type Family } from '../address.ts';
import { parseNumber32 } from '../ports-and-marks.ts';
import { lineOf, UnreadLines, type UnreadLine, type LineFault } from '../lines.ts';
import type {
  Element,
  ElementValue,
  Value,
  BaseChain,
  NftChain,
  NftCounter,
  NftMap,
  NftRule,
  NftSet,
  NftTable,
} from './table.ts';
import { nftFamily } from './format.ts';
import { dataTypeOf, readSelector, readValue, valueTypeOf, readVerdict } from './parse-match.ts';
import { readRule } from './parse-rule-text.ts';
import { cutItems, isQuoted, unquote, Words, type Item } from './tokens.ts';

interface ParsedTables {
  readonly tables: readonly NftTable[];
  readonly unread: readonly UnreadLine[];
}

type Note = (line: number, reason: LineFault) => void;

interface DraftTable extends NftTable {
  comment?: string | undefined;
  readonly counters: Map<string, NftCounter>;
  readonly chains: Map<string, NftChain>;
  readonly sets: Map<string, NftSet | NftMap>;
}

/** Reads `nft list ruleset` and `nft list table` (1.0.1 to 1.1) for the families ip and ip6. Unreadable lines go to `unread`. */
export function parseNftText(
  text: string,
  wants: (family: Family, name: string) => boolean = () => true,
): ParsedTables {
  const tables = new Map<string, DraftTable>();
  const unread = new UnreadLines();
  const note: Note = (line, reason) => unread.add(line, () => lineOf(text, line), reason);
  const { items, open, unclosed } = cutItems(text);
  for (const { line, words, items: parts = [] } of items) {
    const deletes = words[0] === 'delete';
    const [kind, printed, name, ...rest] = deletes ? words.slice(1) : words;
    const family = families.find((candidate) => nftFamily[candidate] === printed);
    if (kind !== 'table' || name === undefined || rest.length > 0) note(line, 'other-line');
    else if (family && wants(family, name)) {
      const key = `${family} ${name}`;
      const empty = { family, name, counters: new Map(), chains: new Map(), sets: new Map() };
      const table: DraftTable = tables.get(key) ?? empty;
      if (deletes) tables.delete(key);
      else tables.set(key, table);
      for (const part of parts) readTablePart(table, part, open.includes(part.line), note);
    }
  }
  for (const line of open) note(line, 'open-brace');
  for (const line of unclosed) note(line, 'open-quote');
  return { tables: [...tables.values()], unread: unread.all };
}

/** Leaves out a chain that is not fully shown, because the effect of such a chain on packets is unknown. */
function readTablePart(table: DraftTable, { line, words, items = [] }: Item, isOpen: boolean, note: Note): void {
  const [kind, name = '', ...rest] = words;
  if (kind === 'comment' && isQuoted(name)) table.comment = unquote(name);
  else if (!isOfNft(kind)) note(line, 'elided');
  else if (kind === 'ct' && rest.length === 1) note(line, 'other-object');
  else if (name === '' || rest.length > 0) note(line, 'other-part');
  else if (kind === 'chain') {
    const isWhole = !isOpen && items.every((item) => isOfNft(item.words[0]));
    const chain = readChain(name, table.family, items, note);
    if (isWhole) table.chains.set(name, chain);
  } else if (kind === 'set' || kind === 'map') {
    const set = readSet(kind, name, items, note);
    table.sets.set(name, isOpen ? { ...set, isPart: true } : set);
  } else if (kind === 'counter') table.counters.set(name, { name, comment: findComment(items) });
  else note(line, 'other-object');
}

function isOfNft(word = ''): boolean {
  return /^[a-z@]/.test(word);
}

function isComment({ words: [first, text, ...rest] }: Item): boolean {
  return first === 'comment' && isQuoted(text) && rest.length === 0;
}

function findComment(items: readonly Item[]): string | undefined {
  const comment = items.findLast(isComment)?.words[1];
  return comment === undefined ? undefined : unquote(comment);
}

function readChain(name: string, family: Family, items: readonly Item[], note: Note): NftChain {
  const rules: NftRule[] = [];
  let base: BaseChain | undefined;
  let policy: BaseChain['policy'];
  for (const item of items) {
    const [first, second, third] = item.words;
    if (first === 'type' && third === 'hook') {
      base = readBaseChain(item.words);
      if (!base) note(item.line, 'other-hook');
    } else if (first === 'policy') policy = second === 'drop' ? 'drop' : undefined;
    else if (!isOfNft(first)) note(item.line, 'elided');
    else if (!isComment(item)) rules.push(readRule(new Words(item.words), family));
  }
  return { name, base: base && { ...base, policy }, comment: findComment(items), rules };
}

function readSet(kind: 'set' | 'map', name: string, items: readonly Item[], note: Note): NftSet | NftMap {
  let [keyType, valueType]: readonly (readonly string[])[] = [];
  let flags: readonly string[] = [];
  let timeoutSeconds: number | undefined;
  let size: number | undefined;
  let comment: string | undefined;
  let elements: readonly Element[] = [];
  let isPart = items.some((item) => !isOfNft(item.words[0]));
  for (const item of items) {
    const words = new Words(item.words);
    const property = words.next();
    if (property === 'type') [keyType, valueType] = readTypes(words);
    else if (property === 'typeof') {
      const key = readTypesOf(words);
      [keyType, valueType] = [key, words.take(':') ? readTypesOf(words) : undefined];
      if (!key || !words.done) note(item.line, 'other-property');
    } else if (property === 'flags') flags = words.takeRest().filter((word) => word !== ',');
    else if (property === 'comment') comment = unquote(words.next());
    else if (property === 'size') size = parseNumber32(words.next()) ?? 0;
    else if (property === 'timeout') timeoutSeconds = parseTimeout(words.next()) ?? 0;
    else if (property === 'elements' && words.take('=', '{')) {
      const read = readElements(words, keyType ?? [], valueType ?? []);
      elements = read.filter((element) => isWholeElement(element, kind, keyType ?? []));
      if (elements.length === read.length) continue;
      note(item.line, 'elided');
      isPart = true;
    } else note(item.line, isOfNft(property) ? 'other-property' : 'elided');
  }
  const types = { keyType: keyType ?? [], flags: flags.toSorted() };
  const read = { name, ...types, timeoutSeconds, size, comment, elements, ...(isPart ? { isPart } : {}) };
  return kind === 'map' ? { kind, ...read, valueType: valueType ?? [] } : { kind, ...read };
}

function readTypes(words: Words): readonly string[][] {
  const types: string[][] = [[], []];
  let at = 0;
  for (const word of words.takeRest()) {
    if (word === ':') at = 1;
    else if (word !== '.') types[at]?.push(word);
  }
  return types;
}

/** Reads `ip saddr . tcp dport`, the fields whose types a set has. */
function readTypesOf(words: Words): readonly string[] | undefined {
  return words.take('verdict') ? ['verdict'] : readSelector(words)?.map(dataTypeOf);
}

function readElements(words: Words, keyType: readonly string[], valueType: readonly string[]): readonly Element[] {
  const elements: Element[] = [];
  while (!words.done && !words.take('}')) {
    elements.push(readElement(words, keyType, valueType));
    words.take(',');
  }
  return elements;
}

/** Reports whether an element has its value and all parts of its key. nft may print anything for a type that kpc does not know. */
function isWholeElement({ key, value }: Element, kind: 'set' | 'map', keyType: readonly string[]): boolean {
  const [first] = key;
  // The key `*` stands for all other keys, whatever their type.
  if (key.length === 1 && first?.kind === 'word' && first.text === '*') return kind === 'set' || value !== undefined;
  if ((kind === 'map' && value === undefined) || (keyType.length > 0 && key.length !== keyType.length)) return false;
  return key.every((part, at) => {
    const type = valueTypeOf(keyType[at] ?? '');
    return part.kind !== 'word' || type === 'word' || (type !== 'address' && /^[a-z\d]/i.test(part.text));
  });
}

function readElement(words: Words, keyType: readonly string[], valueType: readonly string[]): Element {
  const key = readConcatenation(words, keyType);
  let comment: string | undefined;
  let value: ElementValue | undefined;
  for (let word = words.peek(); word !== undefined && word !== ',' && word !== '}'; word = words.peek()) {
    words.next();
    if (word === 'comment') comment = unquote(words.next());
    else if (word === ':') value = readVerdict(words) ?? { kind: 'data', values: readConcatenation(words, valueType) };
    // Skip the time left and the counts of an element that a rule added.
  }
  return { key, value, comment };
}

function readConcatenation(words: Words, types: readonly string[]): readonly Value[] {
  const values: Value[] = [];
  do {
    const text = unquote(words.next());
    const read = types.length === 0 ? readUntyped(text) : readValue(text, valueTypeOf(types[values.length] ?? ''));
    values.push(read ?? { kind: 'word', text });
  } while (words.take('.'));
  return values;
}

function readUntyped(text: string): Value | undefined {
  return readValue(text, 'address') ?? readValue(text, 'number');
}

const priorities: ReadonlyMap<string, number> = new Map([
  ['raw', -300],
  ['mangle', -150],
  ['dstnat', -100],
  ['filter', 0],
  ['security', 50],
  ['srcnat', 100],
]);

/** Reads the line of a base chain that has its hook, as nft lists it; undefined for any other line. */
export function parseBaseChain(line: string): BaseChain | undefined {
  const [item] = cutItems(line).items;
  return item && readBaseChain(item.words);
}

/** Reads `type T hook H priority P`, or `type T hook ingress device "D" priority P`; undefined for anything else. */
function readBaseChain(words: readonly string[]): BaseChain | undefined {
  const [, type, hookWord, hook, ...rest] = words;
  const at = rest.indexOf('priority');
  const [kind, ...names] = rest.slice(0, Math.max(at, 0));
  const isAtDevices = hook === 'ingress' && (kind === 'device' || kind === 'devices');
  if (type === undefined || hook === undefined || hookWord !== 'hook' || at < 0) return undefined;
  if (kind !== undefined && !isAtDevices) return undefined;
  const priority = readPriority(rest.slice(at + 1));
  const devices = isAtDevices ? names.filter((name) => !/^[={},]+$/.test(name)).map(nameOfDevice) : undefined;
  return priority === undefined ? undefined : { type, hook, priority, ...(devices && { devices }) };
}

function nameOfDevice(word: string): string {
  return unquote(word.replace(/,$/, ''));
}

function readPriority(words: readonly string[]): number | undefined {
  const [, name, offset] = /^([a-z]+)?([+-]?\d{1,9})?$/.exec(words.join('')) ?? [];
  const base = name === undefined ? 0 : priorities.get(name);
  return base === undefined || (name === undefined && offset === undefined) ? undefined : base + Number(offset ?? 0);
}

/** Returns the seconds in a time as nft prints it: `3h`, `1d2h3m4s`, `10800s`, `10800`. Drops milliseconds; undefined for other text. */
function parseTimeout(text: string): number | undefined {
  const [all, days, hours, minutes, seconds] =
    /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,10})s?)?(?:\d{1,9}ms)?$/.exec(text) ?? [];
  if (all === undefined || all === '') return undefined;
  return Number(days ?? 0) * 86400 + Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60 + Number(seconds ?? 0);
}
