import { parseJson, TooLong } from '../bounds.ts';
import { quotePrintable } from '../printable.ts';
import { findRepeatedKeys, locateInJson } from './locate.ts';

type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'null';

type PathStep = string | number;

declare const described: unique symbol;

/** The check of a schema or a part of it. scripts/checks-module.mjs makes them for the module #checks. */
export interface Check<T = unknown> {
  /** Made by ajv. */
  readonly accepts: (value: unknown) => boolean;
  readonly expected: string;
  /** Like `expected`, for a value of the right type that its predicate refuses. */
  readonly toPass?: string;
  readonly types: readonly JsonType[];
  /** The strings, numbers or booleans allowed, if few. */
  readonly values?: readonly unknown[];
  readonly fields?: Readonly<Record<string, Check>>;
  readonly required?: readonly string[];
  /** No other fields are allowed. */
  readonly isClosed?: true;
  readonly others?: Check;
  readonly items?: Check;
  readonly tag?: string;
  readonly variants?: Readonly<Record<string, Check>>;
  readonly [described]?: () => T;
}

export interface ValueFault {
  readonly problem: 'wrong' | 'missing' | 'unknown';
  /** For an unknown field, its object's path. */
  readonly path: readonly PathStep[];
  readonly check: Check;
  readonly expected: string;
  /** Whether its object may lack the value. */
  readonly isOptional: boolean;
  readonly value: unknown;
  readonly name: string;
}

/** Collects faults up to a limit: a hostile file may have millions. */
interface Faults {
  readonly found: ValueFault[];
  readonly most: number;
  readonly path: PathStep[];
}

/** The faults of a value, at most `most`. Unknown fields are faults only in closed objects. */
export function findFaults(check: Check, value: unknown, most: number = Infinity): readonly ValueFault[] {
  const faults: Faults = { found: [], most, path: [] };
  if (!check.accepts(value)) explainValue(check, value, faults, false);
  return faults.found;
}

export type CheckedValue<T> = { readonly value: T } | { readonly wrong: string };

/** `wrong` is the first fault with its path: "settings.ipvs.excludeCIDRs[0] must be a CIDR". */
export function readChecked<T>(check: Check<T>, value: unknown): CheckedValue<T> {
  const [fault] = findFaults(check, value, 1);
  return fault === undefined ? { value: value as T } : { wrong: describeFault(fault) };
}

/** `wrong` never quotes text that is not JSON: it may be an unrelated file. */
export function parseChecked<T>(check: Check<T>, content: string): CheckedValue<T> {
  let value: unknown;
  try {
    value = parseJson(content);
  } catch (error) {
    return { wrong: `it is ${error instanceof TooLong ? error.message : 'not JSON'}` };
  }
  return readChecked(check, value);
}

/** Adds a refused value's faults by checking each part again. */
function explainValue(check: Check, value: unknown, faults: Faults, isOptional: boolean): void {
  const { found, most } = faults;
  const before = found.length;
  if (Array.isArray(value)) explainItems(check, value, faults);
  else if (isObject(value)) explainFields(check, value, faults);
  if (found.length > before || found.length >= most) return;
  const expected = isOfType(check, value) ? (check.toPass ?? check.expected) : check.expected;
  note(faults, { problem: 'wrong', check, expected, isOptional, value });
}

function explainItems({ items }: Check, list: readonly unknown[], faults: Faults): void {
  if (items === undefined) return;
  // No callback for each item: a list may be long and mostly right.
  for (let i = 0; i < list.length && faults.found.length < faults.most; i++) {
    if (!items.accepts(list[i])) explainBelow(items, list[i], faults, i, false);
  }
}

function explainFields(check: Check, object: JsonObject, faults: Faults): void {
  const { fields = {}, required = [], others, isClosed, tag } = variantFor(check, object);
  // Values from JSON and YAML inherit no fields.
  for (const name in object) {
    if (faults.found.length >= faults.most) return;
    const { [name]: value } = object;
    const inner = Object.hasOwn(fields, name) ? fields[name] : others;
    if (inner === undefined) {
      if (isClosed) note(faults, { problem: 'unknown', check, expected: '', isOptional: true, value: object, name });
    } else if (value !== undefined && !inner.accepts(value)) {
      explainBelow(inner, value, faults, name, Object.hasOwn(fields, name) && !required.includes(name));
    }
  }
  for (const name of required) {
    const { [name]: inner } = fields;
    if (inner === undefined || (Object.hasOwn(object, name) && object[name] !== undefined)) continue;
    faults.path.push(name);
    const problem = name === tag ? 'wrong' : 'missing';
    note(faults, { problem, check: inner, expected: inner.expected, isOptional: false, value: undefined });
    faults.path.pop();
  }
}

function variantFor(check: Check, object: JsonObject): Check {
  const { tag, variants } = check;
  if (tag === undefined || variants === undefined) return check;
  const { [tag]: name } = object;
  return (typeof name === 'string' && Object.hasOwn(variants, name) ? variants[name] : undefined) ?? check;
}

function explainBelow(check: Check, value: unknown, faults: Faults, step: PathStep, isOptional: boolean): void {
  faults.path.push(step);
  explainValue(check, value, faults, isOptional);
  faults.path.pop();
}

function note(
  { found, most, path }: Faults,
  fault: Omit<ValueFault, 'path' | 'name'> & { readonly name?: string },
): void {
  if (found.length < most) found.push({ name: '', ...fault, path: [...path] });
}

function isOfType({ types }: Check, value: unknown): boolean {
  if (types.length === 0) return true;
  if (Array.isArray(value)) return types.includes('array');
  if (value === null) return types.includes('null');
  return types.some((type) => type === typeof value || (type === 'integer' && Number.isInteger(value)));
}

function describeFault({ problem, path, check, expected, value, name }: ValueFault): string {
  const at = writePath(path);
  if (problem === 'missing') return `${at} is missing`;
  if (problem === 'unknown') return `${at === '' ? 'it' : at} has an unknown field ${quotePrintable(name)}`;
  if (at === '' && check.types[0] === 'object' && !isObject(value)) return 'it is not a JSON object';
  return `${at === '' ? 'it' : at} must be ${expected}`;
}

/** Quotes a key that is not a plain word: it is input, and could end the line or look like a path. */
function writePath(path: readonly PathStep[]): string {
  let out = '';
  for (const step of path) {
    if (typeof step === 'number') out += `[${step}]`;
    else out += `${out === '' ? '' : '.'}${/^[\w.-]{1,100}$/.test(step) ? step : quotePrintable(step)}`;
  }
  return out;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Excludes lists and null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The most faults to report for one file. */
const mostFaults = 50;

/** `problems`: "manifest.json:3:14: node must be an object"; quotes no text that is not JSON. */
export function parseFile<T>(
  check: Check<T>,
  file: string,
  text: string,
): { readonly value: T } | { readonly problems: readonly string[] } {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return { problems: [`${file}: it is ${error instanceof TooLong ? error.message : 'not JSON'}`] };
  }
  const lineOf = sayAtLine(file, text);
  const found = [
    ...findRepeatedKeys(text, 0, text.length).map(({ second }) => ({
      offset: second,
      text: 'this key is in the same object twice',
    })),
    ...describeFaults(check, value, text),
  ].sort((a, b) => a.offset - b.offset);
  if (found.length === 0) return { value: value as T };
  const more = found.length > mostFaults ? [`${file}: and ${found.length - mostFaults} more of this kind`] : [];
  return { problems: [...found.slice(0, mostFaults).map((each) => lineOf(each.offset, each.text)), ...more] };
}

function describeFaults(check: Check, value: unknown, text: string) {
  const faults = findFaults(check, value);
  if (faults.length === 0) return [];
  const locate = locateInJson(text, 0);
  return faults.map((fault) => {
    const { path, name, problem } = fault;
    const offset = problem === 'unknown' ? locate([...path, name], 'key') : locate(path, 'value');
    return { offset, text: describeFault(fault) };
  });
}

/** "manifest.json:3:14: families must be …". */
export type LocatedLines = (path: readonly (string | number)[], said: string) => string;

export function createLocatedLines(file: string, text: string): LocatedLines {
  const lineOf = sayAtLine(file, text);
  const locate = locateInJson(text, 0);
  return (path, said) => lineOf(locate(path, 'value'), said);
}

function sayAtLine(file: string, text: string): (offset: number, said: string) => string {
  return (offset, said) => {
    const before = text.slice(0, offset);
    return `${file}:${before.split('\n').length}:${offset - before.lastIndexOf('\n')}: ${said}`;
  };
}
