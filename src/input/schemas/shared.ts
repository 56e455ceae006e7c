import type { ShapeCode } from '../../diagnostics/fields.ts';

/**
 * A JSON schema, with two annotations of kpc's own that the messages come from: `code` is the diagnostic's code, and
 * `expected` says what would be right.
 */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly code?: ShapeCode;
  readonly expected?: string;
}

/** A field that is null is a field that is not there: Kubernetes reads both the same way. */
export function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: ['object', 'null'], properties, expected: 'a mapping of fields' };
}

export function list(items: Schema): Schema {
  return { type: ['array', 'null'], items, expected: 'a list, each item after "- "' };
}

export const text: Schema = { type: ['string', 'null'], expected: 'a string' };

export const flag: Schema = { type: ['boolean', 'null'], expected: 'true or false' };

/** A list whose items are texts, none of them null. */
export const texts: Schema = list({ type: 'string', expected: 'a string' });

export const textMap: Schema = {
  type: ['object', 'null'],
  additionalProperties: { type: ['string', 'null'], expected: 'a string' },
  expected: 'a mapping of strings',
};

export function integer(minimum: number, maximum: number, expected: string, code: ShapeCode = 'bad-number'): Schema {
  return { type: ['integer', 'null'], minimum, maximum, code, expected };
}

/** One of the words; '' counts as not set, as it does for Kubernetes. */
export function word(words: readonly string[], code: ShapeCode): Schema {
  return { type: ['string', 'null'], enum: [...words, '', null], code, expected: joinWords(words) };
}

function joinWords(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

export const port = integer(1, 65535, 'a port is a number from 1 to 65535', 'bad-port');

/** A port where 0 means that there is none. */
export const optionalPort = integer(0, 65535, 'a port is a number from 1 to 65535', 'bad-port');

export const protocol = word(['TCP', 'UDP', 'SCTP'], 'bad-protocol');

const metadataFields = {
  name: text,
  namespace: text,
  generateName: text,
  labels: textMap,
  annotations: textMap,
  deletionTimestamp: text,
};

export const metadata = object(metadataFields);

/** The metadata of Pods and of what makes Pods. */
export const ownedMetadata = object({
  ...metadataFields,
  ownerReferences: list({ ...object({ kind: text, name: text, controller: flag }), type: 'object' }),
});
