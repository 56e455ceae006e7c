import { quotePrintable } from './printable.ts';

declare const described: unique symbol;

/**
 * What a value from outside must be like to be a T. Gives the first thing that is wrong with it, with the path
 * of the field ("settings.ipvs.excludeCIDRs[0] must be a CIDR"); undefined if it is as it must be.
 */
export interface Shape<T> {
  (value: unknown, path: string): string | undefined;
  /** Never there: it holds the type alone. */
  readonly [described]?: () => T;
}

/** The type of the values that a shape takes. */
export type Shaped<S> = S extends Shape<infer T> ? T : never;

/** One object type of an intersection of them. */
type Flat<T> = { readonly [K in keyof T]: T[K] };

type Shapes = Readonly<Record<string, Shape<unknown>>>;

/** A value from outside as what a shape takes, or what is wrong with it. */
export type ShapeReading<T> = { readonly value: T } | { readonly wrong: string };

/** Tries a value against a shape. */
export function readShape<T>(asked: Shape<T>, value: unknown): ShapeReading<T> {
  const wrong = asked(value, '');
  return wrong === undefined ? { value: value as T } : { wrong };
}

/** Tries the value of a JSON text. What is wrong quotes nothing of a text that is not JSON: it may be of another file altogether. */
export function parseShape<T>(asked: Shape<T>, content: string): ShapeReading<T> {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    return { wrong: 'it is not JSON' };
  }
  return readShape(asked, value);
}

/** Paths are made only where something is wrong: lists may have items by the million. */
function lookInside(inner: Shape<unknown>, value: unknown, path: () => string): string | undefined {
  return inner(value, '') === undefined ? undefined : inner(value, path());
}

/** One value that a predicate accepts; `name` completes "must be …" in the error. */
export function shape<T>(name: string, isRight: (value: unknown) => boolean): Shape<T> {
  return (value, path) => (isRight(value) ? undefined : `${path} must be ${name}`);
}

/** A string that a predicate accepts. */
export function textThat(name: string, isRight: (text: string) => boolean): Shape<string> {
  return shape(name, (value) => typeof value === 'string' && isRight(value));
}

export const text = shape<string>('a string', (value) => typeof value === 'string');
/** `true` or `false` itself, not a text. */
export const boolean = shape<boolean>('true or false', (value) => typeof value === 'boolean');
/** A number that is no less than zero, with a fraction or without. */
export const amount = shape<number>('a number from 0 on', (value) => Number.isFinite(value) && Number(value) >= 0);

/** A number without a fraction, both bounds included. */
export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER): Shape<number> {
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} on` : `${least} to ${most}`;
  return shape(
    `a whole number from ${range}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most,
  );
}

/** One of these values, and of their types. */
export function oneOf<const V extends readonly (string | number | boolean)[]>(...values: V): Shape<V[number]> {
  const known: readonly unknown[] = values;
  return shape(values.map((value) => JSON.stringify(value)).join(' or '), (value) => known.includes(value));
}

/** Null, or what the shape takes. */
export function nullable<T>(inner: Shape<T>): Shape<T | null> {
  return (value, path) => (value === null ? undefined : inner(value, path));
}

/** A field that may be left out. */
export function optional<T>(inner: Shape<T>): Shape<T | undefined> {
  return (value, path) => (value === undefined ? undefined : inner(value, path));
}

/** A list, each item of which the shape takes. */
export function listOf<T>(inner: Shape<T>): Shape<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path} must be a list`;
    for (let i = 0; i < value.length; i++) {
      const wrong = lookInside(inner, value[i], () => `${path}[${i}]`);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
}

/** An object whose keys are not known beforehand; those that are read are of type K. */
export function mapOf<T, K extends string = string>(
  inner: Shape<T>,
): Shape<string extends K ? Readonly<Record<string, T>> : { readonly [Key in K]?: T }> {
  return (value, path) => {
    if (!isObject(value)) return `${path} must be an object`;
    return findFirst(Object.entries(value), ([key, item]) => lookInside(inner, item, () => join(path, key)));
  };
}

/** The object that fields describe: one that may be undefined may be left out. */
type ObjectOf<F extends Shapes> = Flat<
  { readonly [K in keyof F as undefined extends Shaped<F[K]> ? never : K]: Shaped<F[K]> } & {
    readonly [K in keyof F as undefined extends Shaped<F[K]> ? K : never]?: Shaped<F[K]>;
  }
>;

/** An object with a shape for each of its fields, which give its type unless T does. Other fields do no harm. */
export function objectOf<F extends Shapes>(fields: F): Shape<ObjectOf<F>>;
export function objectOf<T>(fields: { readonly [K in keyof T]-?: Shape<T[K]> }): Shape<T>;
export function objectOf(fields: Shapes): Shape<unknown> {
  const entries = Object.entries(fields);
  return (value, path) => {
    if (!isObject(value)) return path === '' ? 'it is not a JSON object' : `${path} must be an object`;
    return findFirst(entries, ([key, inner]) => {
      const item = Object.hasOwn(value, key) ? value[key] : undefined;
      const wrong = lookInside(inner, item, () => join(path, key));
      return wrong !== undefined && item === undefined ? `${join(path, key)} is missing` : wrong;
    });
  };
}

/** An object whose field `tag` says which of these it is. */
export function variantOf<Tag extends string, V extends Shapes>(
  tag: Tag,
  variants: V,
): Shape<{ [K in keyof V]: Flat<Readonly<Record<Tag, K>> & Shaped<V[K]>> }[keyof V]> {
  const tagShape = oneOf(...Object.keys(variants));
  return (value, path) => {
    if (!isObject(value)) return `${path} must be an object`;
    const wrong = tagShape(value[tag], join(path, tag));
    return wrong ?? variants[String(value[tag])]?.(value, path);
  };
}

/** An object with fields: no list, and not null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A key that is no plain word is not kpc's: it is quoted, so that it can neither end the line nor pass for a path. */
function join(path: string, key: string): string {
  const shown = /^[\w.-]{1,100}$/.test(key) ? key : quotePrintable(key);
  return path === '' ? shown : `${path}.${shown}`;
}

function findFirst<T>(items: Iterable<T>, look: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = look(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
