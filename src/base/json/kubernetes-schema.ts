// Schemas of objects that Kubernetes reads. Any field may be missing, and null counts as missing.
import * as json from './schema.ts';
import type { Schema, Schemas, Shaped } from './schema.ts';

export type ValueOf<S extends Schema> = NonNullable<Shaped<S>>;

export type FieldsOf<P extends Schemas> = { readonly [K in keyof P]?: Shaped<P[K]> };

function optionalFields<P extends Schemas>(
  fields: P,
  others?: { readonly additionalProperties: false },
): Schema<FieldsOf<P>> {
  const optional = Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, json.optional(schema)]));
  return json.objectWith(optional, { expected: 'a mapping of fields', ...others });
}

const closed = { additionalProperties: false } as const;

export function object<P extends Schemas>(fields: P): Schema<FieldsOf<P> | null> {
  return json.nullable(optionalFields(fields, closed));
}

export function openObject<P extends Schemas>(fields: P): Schema<FieldsOf<P> | null> {
  return json.nullable(optionalFields(fields));
}

export function item<P extends Schemas>(fields: P): Schema<FieldsOf<P>> {
  return optionalFields(fields, closed);
}

export function openItem<P extends Schemas>(fields: P): Schema<FieldsOf<P>> {
  return optionalFields(fields);
}

export function list<T>(items: Schema<T>): Schema<readonly T[] | null> {
  return json.nullable(json.listOf(items, 'a list, each item after "- "'));
}

export function map<T>(values: Schema<T>, expected: string): Schema<Readonly<Record<string, T>> | null> {
  return json.nullable(json.mapOf(values, expected));
}

export const text = json.nullable(json.text);

export const flag = json.nullable(json.boolean);

export const texts = list(json.text);

/** A whole number. Bounds are inclusive. null counts as missing. */
export function integer(least: number, most: number, expected: string): Schema<number | null> {
  return json.nullable(json.wholeNumber(least, most, expected));
}

export const anyInteger = integer(-Infinity, Infinity, 'it must be a whole number');

export const int32 = integer(-(2 ** 31), 2 ** 31 - 1, 'a whole number of 32 bits');

export const expectedDuration = 'a duration such as 15m0s or 30s, from 0 up';

/** Go's metav1.Duration. kube-proxy refuses bare numbers, the empty string, and null, which it reads as an empty string. */
export const duration = json.textThat(expectedDuration, 'isDuration');

export const optionalDuration = json.nullable(duration);
