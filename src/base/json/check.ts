import { parseJson, TooLong, type Exceeded } from '../bounds.ts';
import { quotePrintable } from '../printable.ts';
import { findRepeatedKeys, locateInJson } from './locate.ts';

type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'null';

type PathStep = string | number;

declare const described: unique symbol;

/** The check of a schema or a part of it. scripts/checks-module.mjs makes all checks, for the module #checks. */
export interface Check<T = unknown> {
  readonly accepts: (value: unknown) => boolean;
  readonly expected: string;
  /** Replaces `expected` for a value of the right type that the predicate refuses. */
  readonly toPass?: string;
  readonly types: readonly JsonType[];
  readonly values?: readonly unknown[];
  readonly fields?: Readonly<Record<string, Check>>;
  readonly required?: readonly string[];
  readonly isClosed?: true;
  readonly others?: Check;
  readonly items?: Check;
  readonly tag?: string;
  readonly variants?: Readonly<Record<string, Check>>;
  readonly [described]?: () => T;
}

export interface ValueFault {
  readonly problem: 'wrong' | 'missing' | 'unknown';
  /** The path of the fault; for an unknown field, the path of its object. */
  readonly path: readonly PathStep[];
  readonly check: Check;
  readonly expected: string;
  readonly isOptional: boolean;
  readonly value: unknown;
  readonly name: string;
}

interface Faults {
  readonly found: ValueFault[];
  readonly most: number;
  readonly path: PathStep[];
}

/** Returns at most `most` faults of a value. An unknown field is a fault only in a closed object. */
export function findFaults(check: Check, value: unknown, most: number = Infinity): readonly ValueFault[] {
  const faults: Faults = { found: [], most, path: [] };
  if (!check.accepts(value)) explainValue(check, value, faults, false);
  return faults.found;
}

/**
 * A fault in a JSON file. Never quotes a text that is not JSON, because the text may be from an unrelated file. `at` is like
 * "settings.ipvs.excludeCIDRs[0]", '' for the whole.
 */
export type JsonFault =
  | { readonly problem: 'wrong'; readonly at: string; readonly expected: string }
  | { readonly problem: 'missing'; readonly at: string }
  | { readonly problem: 'unknown'; readonly at: string; readonly name: string }
  | { readonly problem: 'repeated-key' | 'no-json' }
  | ({ readonly problem: 'too-long' } & Exceeded);

export type CheckedValue<T> = { readonly value: T } | { readonly wrong: JsonFault };

export function readChecked<T>(check: Check<T>, value: unknown, root = ''): CheckedValue<T> {
  const [fault] = findFaults(check, value, 1);
  return fault === undefined ? { value: value as T } : { wrong: faultAt(fault, root) };
}

export function parseChecked<T>(check: Check<T>, content: string, root = ''): CheckedValue<T> {
  const parsed = parseText(content);
  return 'wrong' in parsed ? parsed : readChecked(check, parsed.value, root);
}

function parseText(text: string): CheckedValue<unknown> {
  try {
    return { value: parseJson(text) };
  } catch (error) {
    return { wrong: error instanceof TooLong ? { problem: 'too-long', ...error.exceeded } : { problem: 'no-json' } };
  }
}

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
  // Do not call a function for each item, because a list may be long and most items are right.
  for (let i = 0; i < list.length && faults.found.length < faults.most; i++) {
    if (!items.accepts(list[i])) explainBelow(items, list[i], faults, i, false);
  }
}

function explainFields(check: Check, object: JsonObject, faults: Faults): void {
  const { fields = {}, required = [], others, isClosed, tag } = variantFor(check, object);
  // A plain `for in` is enough, because values from JSON and YAML inherit no fields.
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

function faultAt({ problem, path, expected, name }: ValueFault, root = ''): JsonFault {
  const at = writePath(path, root);
  if (problem === 'missing') return { problem, at };
  return problem === 'unknown' ? { problem, at, name } : { problem, at, expected };
}

/** Quotes a key that is not a plain word, because a key from the input could end the line or look like a path. */
function writePath(path: readonly PathStep[], root: string): string {
  let out = root;
  for (const step of path) {
    if (typeof step === 'number') out += `[${step}]`;
    else out += `${out === '' ? '' : '.'}${/^[\w.-]{1,100}$/.test(step) ? step : quotePrintable(step)}`;
  }
  return out;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Reports whether a value is an object, which a list and null are not. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export type LocateValue = (path: readonly PathStep[]) => {
  readonly file: string;
  readonly line: number;
  readonly column: number;
};

type FaultInFile = JsonFault & Partial<ReturnType<LocateValue>>;

export function parseFile<T>(
  check: Check<T>,
  file: string,
  text: string,
): { readonly value: T } | { readonly problems: readonly FaultInFile[] } {
  const parsed = parseText(text);
  if ('wrong' in parsed) return { problems: [{ file, ...parsed.wrong }] };
  const repeated = findRepeatedKeys(text, 0, text.length).map(({ second: offset }) => {
    return { offset, fault: { problem: 'repeated-key' } as const };
  });
  const found = [...repeated, ...locateFaults(check, parsed.value, text)].sort((a, b) => a.offset - b.offset);
  if (found.length === 0) return { value: parsed.value as T };
  return { problems: found.map(({ offset, fault }) => ({ ...placeIn(file, text, offset), ...fault })) };
}

function locateFaults(check: Check, value: unknown, text: string) {
  const faults = findFaults(check, value);
  if (faults.length === 0) return [];
  const locate = locateInJson(text, 0);
  return faults.map((fault) => {
    const { path, name, problem } = fault;
    const offset = problem === 'unknown' ? locate([...path, name], 'key') : locate(path, 'value');
    return { offset, fault: faultAt(fault) };
  });
}

export function locatorIn(file: string, text: string): LocateValue {
  const locate = locateInJson(text, 0);
  return (path) => placeIn(file, text, locate(path, 'value'));
}

function placeIn(file: string, text: string, offset: number) {
  const before = text.slice(0, offset);
  return { file, line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}
