import { joinWords } from '../../../base/printable.ts';
import {
  anything,
  anyOf,
  nullable,
  oneOf,
  text as string,
  wholeNumber,
  worded,
  type Schema,
} from '../../../base/json/schema.ts';
import {
  anyInteger,
  flag,
  integer,
  item,
  list,
  map,
  object,
  openItem,
  text,
  texts,
  type ValueOf,
} from '../../../base/json/kubernetes-schema.ts';

export const textMap = map(text, 'a mapping of strings');

/** '' counts as unset, as in Kubernetes. */
export function word<const Word extends string>(words: readonly Word[]): Schema<Word | '' | null> {
  return nullable(worded(joinWords(words, 'or'), oneOf(...words, '')));
}

export const port = integer(1, 65535, 'a port is a number from 1 to 65535');

/** 0 means none. */
export const optionalPort = integer(0, 65535, 'a port is a number from 1 to 65535');

/** Kubernetes' IntOrString. null means no value. */
export function intOrString(expected: string): Schema<number | string | null> {
  return nullable(anyOf(expected, wholeNumber(-Infinity, Infinity), string));
}

export const protocol = word(['TCP', 'UDP', 'SCTP']);

/** Fields that kpc does not read. Only their types are checked. */
export function unreadFields(shape: Schema, ...names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, shape]));
}

export const metadata = object({
  name: text,
  namespace: text,
  generateName: text,
  labels: textMap,
  annotations: textMap,
  creationTimestamp: text,
  deletionTimestamp: text,
  finalizers: texts,
  ownerReferences: list(
    item({
      kind: text,
      name: text,
      controller: flag,
      blockOwnerDeletion: flag,
      ...unreadFields(text, 'apiVersion', 'uid'),
    }),
  ),
  ...unreadFields(text, 'selfLink', 'uid', 'resourceVersion'),
  ...unreadFields(anyInteger, 'generation', 'deletionGracePeriodSeconds'),
  ...unreadFields(anything, 'managedFields', 'clusterName', 'initializers'),
});

export type RawMetadata = ValueOf<typeof metadata>;

export const typed = { apiVersion: anything, kind: anything };

const condition = openItem({ type: text, status: text });

export const conditions = list(condition);

export type RawCondition = ValueOf<typeof condition>;

/** The conditions of an object. kpc does not use them. */
export const objectConditions = list(
  item({
    observedGeneration: anyInteger,
    ...unreadFields(text, 'type', 'status', 'lastTransitionTime', 'reason', 'message'),
  }),
);

/** The object behind an endpoint, usually a Pod. kpc does not use it. */
export const targetRef = object({
  ...unreadFields(text, 'kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'),
});
