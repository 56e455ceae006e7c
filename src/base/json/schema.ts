// Declares the shape of JSON as a JSON Schema with a TypeScript type. The build makes ajv checks from these schemas
// (scripts/checks-module.mjs).

declare const accepted: unique symbol;

/**
 * A JSON Schema and the type it accepts. kpc's own keywords are `expected`, which completes "must be …" in an error; `passes`, a predicate
 * in src/checks/predicates.ts; and `toPass`, which completes "must be …" for the predicate.
 */
export interface Schema<T = unknown> {
  readonly [accepted]?: T;
  readonly [keyword: string]: unknown;
}

export type Shaped<S extends Schema> = S extends Schema<infer T> ? T : never;

export type Flat<T> = { readonly [K in keyof T]: T[K] };

export type Schemas = Readonly<Record<string, Schema>>;

export function worded<T>(expected: string, schema: Schema<T>): Schema<T> {
  return { ...schema, expected, description: expected };
}

export function about<T>(description: string, schema: Schema<T>): Schema<T> {
  return { ...schema, description };
}

export function named<T>($id: string, schema: Schema<T>): Schema<T> {
  return { ...schema, $id };
}

export const text: Schema<string> = { type: 'string', expected: 'a string' };

export function textThat<T extends string = string>(expected: string, format: string): Schema<T> {
  return { type: 'string', expected, description: expected, format };
}

export function matching(expected: string, pattern: RegExp): Schema<string> {
  return { type: 'string', expected, description: expected, pattern: pattern.source };
}

export const boolean: Schema<boolean> = { type: 'boolean', expected: 'true or false' };

export function number(expected: string, least = -Infinity, most = Infinity): Schema<number> {
  return { type: 'number', expected, ...boundsOf(least, most) };
}

export const amount = number('a number from 0 on', 0);

export function wholeNumber(
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
  expected = `a whole number from ${most === Number.MAX_SAFE_INTEGER ? `${least} on` : `${least} to ${most}`}`,
): Schema<number> {
  return { type: 'integer', expected, ...boundsOf(least, most) };
}

function boundsOf(minimum: number, maximum: number): object {
  return { ...(Number.isFinite(minimum) && { minimum }), ...(Number.isFinite(maximum) && { maximum }) };
}

export function oneOf<const V extends readonly (string | number | boolean)[]>(...values: V): Schema<V[number]> {
  const types = [...new Set(values.map((value) => typeof value))];
  return {
    type: types.length === 1 ? types[0] : types,
    expected: values.map((value) => JSON.stringify(value)).join(' or '),
    enum: values,
  };
}

export const anything: Schema = { expected: 'anything' };

export const anyObject: Schema<object> = { type: 'object', expected: 'an object' };

export function nullable<T>(inner: Schema<T>): Schema<T | null> {
  const { description, ...bare } = inner;
  const none = { type: 'null' };
  if (inner['$id'] !== undefined) {
    const { expected } = inner;
    return { anyOf: [bare, none], expected, ...(description !== undefined && { description }) };
  }
  const { anyOf: forms, type, enum: values } = inner as Readonly<Record<string, readonly unknown[] | undefined>>;
  return {
    ...inner,
    ...(forms && { anyOf: [...forms, none] }),
    ...(type && { type: [type, 'null'].flat() }),
    ...(values && { enum: [...values, null] }),
  };
}

/** Marks a field's schema if the object may lack the field. */
const mayLack = Symbol('may lack');

export function optional<T>(inner: Schema<T>): Schema<T | undefined> {
  return { ...(inner as Schema<T | undefined>), [mayLack]: true };
}

/** Adds a predicate in src/checks/predicates.ts. `toPass` completes "must be …". */
export function narrowed<T>(inner: Schema<T>, toPass: string, passes: string): Schema<T> {
  return { ...inner, passes, toPass };
}

export function listOf<T>(items: Schema<T>, expected = 'a list'): Schema<readonly T[]> {
  return { type: 'array', expected, items };
}

export function mapOf<T, K extends string = string>(
  values: Schema<T>,
  expected = 'an object',
): Schema<string extends K ? Readonly<Record<string, T>> : { readonly [Key in K]?: T }> {
  return { type: 'object', expected, additionalProperties: values };
}

type ObjectOf<F extends Schemas> = Flat<
  { readonly [K in keyof F as undefined extends Shaped<F[K]> ? never : K]: Shaped<F[K]> } & {
    readonly [K in keyof F as undefined extends Shaped<F[K]> ? K : never]?: Shaped<F[K]>;
  }
>;

/** An object with a schema for each field. The check allows other fields, but the published schema does not. */
export function objectOf<F extends Schemas>(fields: F): Schema<ObjectOf<F>>;
export function objectOf<T>(fields: { readonly [K in keyof T]-?: Schema<T[K]> }): Schema<T>;
export function objectOf(fields: Schemas): Schema {
  return objectWith(fields, { expected: 'an object' });
}

export function closed<T>(schema: Schema<T>): Schema<T> {
  return closeAll(schema) as Schema<T>;
}

function closeAll(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closeAll);
  if (typeof part !== 'object' || part === null) return part;
  const copy = Object.fromEntries(
    Object.entries(part).map(([name, each]: [string, unknown]) => [name, closeAll(each)]),
  );
  return 'properties' in copy && !('additionalProperties' in copy) ? { ...copy, additionalProperties: false } : copy;
}

/** An object with further fields, which depend on another field. */
export function openOf<F extends Schemas>(fields: F): Schema<ObjectOf<F> & { readonly [field: string]: unknown }> {
  return objectWith(fields, { expected: 'an object', additionalProperties: true });
}

/** An object with a schema for each field. With `additionalProperties: false`, the check allows no other fields. */
export function objectWith<T>(
  fields: Schemas,
  options: { readonly expected: string; readonly additionalProperties?: boolean },
): Schema<T> {
  const required = Object.keys(fields).filter((name) => !(mayLack in (fields[name] ?? {})));
  return { type: 'object', ...(required.length > 0 && { required }), properties: { ...fields }, ...options };
}

/** A discriminated union, in which the field `tag` selects the variant. */
export function variantOf<Tag extends string, V extends Schemas>(
  tag: Tag,
  variants: V,
): Schema<{ [K in keyof V]: Flat<Readonly<Record<Tag, K>> & Shaped<V[K]>> }[keyof V]> {
  const forms = Object.entries(variants).map(([name, { properties }]) =>
    objectWith({ [tag]: oneOf(name), ...(properties as Schemas) }, { expected: 'an object' }),
  );
  return { anyOf: forms, expected: 'an object', discriminator: { propertyName: tag } };
}

/** A union. Its alternatives must differ in JSON type, because only the type selects the alternative to check. */
export function anyOf<V extends readonly Schema[]>(expected: string, ...schemas: V): Schema<Shaped<V[number]>> {
  return { anyOf: schemas, expected, description: expected };
}
