import { joinWords } from '../../base/join-words.ts';
import type { ShapeCode } from '../../diagnostics/fields.ts';
import { flag, integer, item, list, map, object, text } from '../../diagnostics/json-schema.ts';
import type { Schema } from '../../diagnostics/json-schema.ts';

export const textMap = map({ type: ['string', 'null'], expected: 'a string' }, 'a mapping of strings');

/** One of the words; '' counts as not set, as it does for Kubernetes. */
export function word(words: readonly string[], code: ShapeCode): Schema {
  return { type: ['string', 'null'], enum: [...words, '', null], code, expected: joinWords(words, 'or') };
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
  ownerReferences: list(item({ kind: text, name: text, controller: flag })),
});
