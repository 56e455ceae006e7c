declare const described: unique symbol;

/**
 * A JSON schema of a T, with an annotation of kpc's own that the messages come from: `expected` says what would be right.
 */
export interface Schema<T = unknown> {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly expected?: string;
  /** Never there: it holds the type alone. */
  readonly [described]?: () => T;
}

/** The type of the values that a schema takes. */
type Described<S> = S extends Schema<infer T> ? T : never;

type Properties = Readonly<Record<string, Schema>>;

/** The same without null. */
export type DescribedValue<S> = NonNullable<Described<S>>;

/** An object of these properties, as its schema takes it: each may be missing. */
export type DescribedFields<P> = { readonly [K in keyof P]?: Described<P[K]> };

/**
 * An object of these fields alone: others are reported. A field that is null is a field that is not there: Kubernetes reads both
 * the same way.
 */
export function object<P extends Properties>(properties: P): Schema<DescribedFields<P> | null> {
  return { type: ['object', 'null'], properties, additionalProperties: false, expected: 'a mapping of fields' };
}

/** An object of which kpc knows a few fields only: nothing is said of others. */
export function openObject<P extends Properties>(properties: P): Schema<DescribedFields<P> | null> {
  return { ...object(properties), additionalProperties: true };
}

/** An object in a list, where null is not allowed. */
export function item<P extends Properties>(properties: P): Schema<DescribedFields<P>> {
  return { ...object(properties), type: 'object' } as Schema<DescribedFields<P>>;
}

/** The same, of which kpc knows a few fields only. */
export function openItem<P extends Properties>(properties: P): Schema<DescribedFields<P>> {
  return { ...item(properties), additionalProperties: true };
}

/** A list, or null for none. */
export function list<T>(items: Schema<T>): Schema<readonly T[] | null> {
  return { type: ['array', 'null'], items, expected: 'a list, each item after "- "' };
}

/** An object whose keys are not known beforehand. */
export function map<T>(values: Schema<T>, expected: string): Schema<Readonly<Record<string, T>> | null> {
  return { type: ['object', 'null'], additionalProperties: values, expected };
}

/** A field that Kubernetes knows, and kpc does not read. */
export const anything: Schema = {};

/** A text, or null for none. */
export const text: Schema<string | null> = { type: ['string', 'null'], expected: 'a string' };

/** On or off, or null for neither. */
export const flag: Schema<boolean | null> = { type: ['boolean', 'null'], expected: 'true or false' };

/** A list whose items are texts, none of them null. */
export const texts: Schema<readonly string[] | null> = list<string>({ type: 'string', expected: 'a string' });

/** A whole number from the one to the other, or null for none. */
export function integer(minimum: number, maximum: number, expected: string): Schema<number | null> {
  return { type: ['integer', 'null'], minimum, maximum, expected };
}

/** A whole number whose bounds something else checks, or null for none. */
export const anyInteger: Schema<number | null> = { type: ['integer', 'null'], expected: 'it must be a whole number' };

/** How a duration is written. */
export const expectedDuration = 'a duration such as 15m0s or 30s, from 0 up';

/** A duration as Go writes it, or null for none (*metav1.Duration). kube-proxy takes neither bare numbers nor an empty text. */
export const optionalDuration: Schema<string | null> = {
  ...text,
  pattern: '^[-+]?(?:0|(?:(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$',
  expected: expectedDuration,
};

/** A duration as Go writes it (metav1.Duration): of null, kube-proxy reads an empty text, which is none. */
export const duration: Schema<string | null> = { ...optionalDuration, type: ['string'] };
