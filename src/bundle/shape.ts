import { quotePrintable } from '../base/printable.ts';

/**
 * What a value from outside must be like. Gives the first thing that is wrong with it, with the path
 * of the field ("settings.ipvs.excludeCIDRs[0] must be a CIDR"); undefined where it is as it must be.
 */
export type Shape = (value: unknown, path: string) => string | undefined;

/** Paths are made only where something is wrong: lists may have items by the million. */
function lookInside(inner: Shape, value: unknown, path: () => string): string | undefined {
  return inner(value, '') === undefined ? undefined : inner(value, path());
}

/** One value that a test tells right from wrong; `name` follows "must be". */
export function shape(name: string, isRight: (value: unknown) => boolean): Shape {
  return (value, path) => (isRight(value) ? undefined : `${path} must be ${name}`);
}

export const text = shape('a string', (value) => typeof value === 'string');
export const boolean = shape('true or false', (value) => typeof value === 'boolean');
export const amount = shape('a number from 0 on', (value) => Number.isFinite(value) && Number(value) >= 0);

export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER): Shape {
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} on` : `${least} to ${most}`;
  return shape(
    `a whole number from ${range}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most,
  );
}

export function oneOf(...values: readonly unknown[]): Shape {
  return shape(values.map((value) => JSON.stringify(value)).join(' or '), (value) => values.includes(value));
}

export function nullable(inner: Shape): Shape {
  return (value, path) => (value === null ? undefined : inner(value, path));
}

/** A field that may be left out. */
export function optional(inner: Shape): Shape {
  return (value, path) => (value === undefined ? undefined : inner(value, path));
}

export function listOf(inner: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path} must be a list`;
    for (let i = 0; i < value.length; i++) {
      const wrong = lookInside(inner, value[i], () => `${path}[${i}]`);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
}

/** An object whose keys are not known beforehand. */
export function mapOf(inner: Shape): Shape {
  return (value, path) => {
    if (!isObject(value)) return `${path} must be an object`;
    return findFirst(Object.entries(value), ([key, item]) => lookInside(inner, item, () => join(path, key)));
  };
}

/** An object of type T. Fields besides those of T do no harm. */
export function objectOf<T>(fields: { readonly [K in keyof T]-?: Shape }): Shape {
  const entries = Object.entries<Shape>(fields);
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
export function variantOf(tag: string, variants: { readonly [name: string]: Shape }): Shape {
  const tagShape = oneOf(...Object.keys(variants));
  return (value, path) => {
    if (!isObject(value)) return `${path} must be an object`;
    const wrong = tagShape(value[tag], join(path, tag));
    return wrong ?? variants[String(value[tag])]?.(value, path);
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
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
