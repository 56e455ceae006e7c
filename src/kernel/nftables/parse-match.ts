// Reads the parts of nft's rules that look something up: verdicts, random choices, and comparisons of fields.
import { allBits, type RuleVerdict } from '../action.ts';
import { parseNumber32 } from '../ports-and-marks.ts';
import { fieldType, readSelector, readValue, type ValueType } from './fields.ts';
import type { Element, Field, Match, Right, Selector, Value } from './table.ts';
import { unquote, type Words } from './tokens.ts';

const plainVerdicts: ReadonlyMap<string, RuleVerdict> = new Map(
  (['accept', 'drop', 'return', 'continue'] as const).map((kind) => [kind, { kind }]),
);

/** Reads `accept`, `goto CHAIN` and so on. If the next words are not a verdict, consumes none and returns undefined. */
export function readVerdict(words: Words): RuleVerdict | undefined {
  const kind = words.peek() ?? '';
  const chain = words.peek(1);
  const goesOn = (kind === 'goto' || kind === 'jump') && chain !== undefined;
  const verdict: RuleVerdict | undefined = goesOn ? { kind, chain } : plainVerdicts.get(kind);
  if (verdict) words.position += goesOn ? 2 : 1;
  return verdict;
}

/** The largest number of random values of which an item may have a range. */
const mostDraws = 10_000;

/** Reads `mod N map { 0 : …, 1-2 : … }` in any order. Undefined unless each of the N draws has an item. */
export function readDraws<T>(
  words: Words,
  map: 'map' | 'vmap',
  readItem: () => T | undefined,
): readonly T[] | undefined {
  const count = readModulus(words) ?? 0;
  if (!words.take(map, '{')) return undefined;
  let drawn = 0;
  const items = new Map<number, T>();
  while (!words.take('}')) {
    const [first, last = first] = words.next().split('-').map(parseNumber32);
    const item = words.take(':') ? readItem() : undefined;
    if (first === undefined || last === undefined || item === undefined) return undefined;
    drawn += last - first + 1;
    if (last < first || drawn > count || (last > first && count > mostDraws)) return undefined;
    for (let draw = first; draw <= last; draw++) items.set(draw, item);
    if (!words.take(',') && words.peek() !== '}') return undefined;
  }
  const ordered = Array.from(items.keys(), (_, draw) => items.get(draw));
  return count === items.size && count > 0 && ordered.every((item) => item !== undefined) ? ordered : undefined;
}

export function readModulus(words: Words): number | undefined {
  const count = words.take('mod') ? parseNumber32(words.next()) : undefined;
  return words.take('offset') && words.next() !== '0' ? undefined : count;
}

export function readSetName(words: Words): string | undefined {
  return words.peek()?.startsWith('@') ? words.next().slice(1) : undefined;
}

const comparisons: ReadonlyMap<string, NonNullable<Match['operator']>> = new Map(
  (['==', '!=', '<=', '>=', '<', '>'] as const).map((each) => [each, each]),
);

/** One field, or the fields of a key, with the values to compare. `isOwn`: whether kpc can write the constants. */
export function readMatch(words: Words, isOwn: boolean) {
  const left = readSelector(words);
  const types = left?.map(fieldType);
  if (!left || !types || types.includes('content') === isOwn) return undefined;
  if (words.take('vmap')) {
    const right = readBraced(words, types);
    return right && ({ kind: 'verdict-map', left, right } as const);
  }
  const compared = comparisons.get(words.peek() ?? '');
  if (compared) words.next();
  const isPlain = compared === undefined || (compared === '==' && left[0]?.name !== 'ct status');
  const masked = left[0]?.name === 'mark' ? readMaskedPrefix(words, left[0]) : undefined;
  const right = masked?.right ?? readRight(words, types);
  if (!right) return undefined;
  const match = { kind: 'match', left: masked?.left ?? left, right } as const;
  return isPlain ? match : { ...match, operator: compared };
}

/** Reads nft's form of masks of high bits: `meta mark != 0x00000000/1` for `meta mark & 0x80000000 != 0`. */
function readMaskedPrefix(words: Words, field: Field): { left: Selector; right: Right } | undefined {
  const [, number, digits] = /^(0x[\da-f]+|\d+)\/(\d{1,2})$/i.exec(words.peek() ?? '') ?? [];
  const length = Number(digits);
  if (number === undefined || length > 32) return undefined;
  words.next();
  const mask = length === 0 ? 0 : (allBits << (32 - length)) >>> 0;
  return { left: [{ ...field, mask }], right: { elements: [{ key: [{ kind: 'number', value: Number(number) }] }] } };
}

function readRight(words: Words, types: readonly ValueType[]): Right | undefined {
  if (/^[{@]/.test(words.peek() ?? '')) return readBraced(words, types);
  const elements: Element[] = [];
  do {
    const key = readKey(words, types);
    if (!key) return undefined;
    elements.push({ key });
  } while (words.take(','));
  return { elements };
}

/** `@set`, or `{ 10.0.0.1 . 80 : accept, 10.0.0.2 . 90-99 : jump a }`, with or without verdicts. */
function readBraced(words: Words, types: readonly ValueType[]): Right | undefined {
  const set = readSetName(words);
  if (set !== undefined) return { set };
  if (!words.take('{')) return undefined;
  const elements: Element[] = [];
  while (!words.take('}')) {
    const key = readKey(words, types);
    if (!key) return undefined;
    if (words.take('counter', 'packets')) words.position += 3;
    elements.push(words.take(':') ? { key, value: readVerdict(words) } : { key });
    if (!words.take(',') && words.peek() !== '}') return undefined;
  }
  return { elements, isBraced: true };
}

function readKey(words: Words, types: readonly ValueType[]): readonly Value[] | undefined {
  const key: Value[] = [];
  for (const type of types) {
    if (key.length > 0 && !words.take('.')) return undefined;
    const text = words.next();
    const value = text === '' ? undefined : readValue(unquote(text), type);
    if (!value) return undefined;
    key.push(value);
  }
  return key;
}
