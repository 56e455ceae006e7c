// Schemas of what Kubernetes reads. A field that is null counts as missing, and each field may be missing.
import * as json from './schema.ts';
import type { Schema, Schemas, Shaped } from './schema.ts';

/** The type of a schema's values, without null. */
export type ValueOf<S extends Schema> = NonNullable<Shaped<S>>;

/** An object of these fields, each of which may be missing. */
export type FieldsOf<P extends Schemas> = { readonly [K in keyof P]?: Shaped<P[K]> };

function fieldsOf<P extends Schemas>(
  fields: P,
  others?: { readonly additionalProperties: false },
): Schema<FieldsOf<P>> {
  const optional = Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, json.optional(schema)]));
  return json.objectWith(optional, { expected: 'a mapping of fields', ...others });
}

const closed = { additionalProperties: false } as const;

/** An object, or null. Fields besides these are faults. */
export function object<P extends Schemas>(fields: P): Schema<FieldsOf<P> | null> {
  return json.nullable(fieldsOf(fields, closed));
}

/** An object, or null, of which kpc knows a few fields only: others are no faults. */
export function openObject<P extends Schemas>(fields: P): Schema<FieldsOf<P> | null> {
  return json.nullable(fieldsOf(fields));
}

/** An object in a list, where null is not allowed. */
export function item<P extends Schemas>(fields: P): Schema<FieldsOf<P>> {
  return fieldsOf(fields, closed);
}

/** An object in a list, of which kpc knows a few fields only. */
export function openItem<P extends Schemas>(fields: P): Schema<FieldsOf<P>> {
  return fieldsOf(fields);
}

/** A list, or null for none. */
export function list<T>(items: Schema<T>): Schema<readonly T[] | null> {
  return json.nullable(json.listOf(items, 'a list, each item after "- "'));
}

/** An object whose keys are not known beforehand, or null. */
export function map<T>(values: Schema<T>, expected: string): Schema<Readonly<Record<string, T>> | null> {
  return json.nullable(json.mapOf(values, expected));
}

/** A string, or null for none. */
export const text = json.nullable(json.text);

/** On or off, or null for neither. */
export const flag = json.nullable(json.boolean);

/** A list of strings, none of them null. */
export const texts = list(json.text);

/** A whole number between bounds, which it includes, or null for none. */
export function integer(least: number, most: number, expected: string): Schema<number | null> {
  return json.nullable(json.wholeNumber(least, most, expected));
}

/** A whole number with bounds that something else checks, or null for none. */
export const anyInteger = integer(-Infinity, Infinity, 'it must be a whole number');

/** What a field of Go's int32 holds. */
export const int32 = integer(-(2 ** 31), 2 ** 31 - 1, 'a whole number of 32 bits');

/** How a duration is written. */
export const expectedDuration = 'a duration such as 15m0s or 30s, from 0 up';

/** A duration as Go writes it (metav1.Duration). kube-proxy reads null as an empty string, and takes neither that nor bare numbers. */
export const duration = json.textThat(expectedDuration, 'isDuration');

/** A duration, or null for none (*metav1.Duration). */
export const optionalDuration = json.nullable(duration);
