import { about, anyOf, boolean, listOf, mapOf, objectOf, optional, text, wholeNumber } from '../../base/json/schema.ts';
import { manifestSchema } from '../../bundle/schemas.ts';
import { difference } from './diff.ts';

export const compiled = objectOf({
  manifest: manifestSchema,
  files: optional(about('file name to content, without -o', mapOf(text))),
  folder: optional(about('what -o or --golden named', text)),
});

export const compiledFleet = objectOf({
  folder: text,
  nodes: wholeNumber(0),
  written: about('folders of nodes', wholeNumber(0)),
  unchanged: wholeNumber(0),
});

const accept = optional(
  about('the command that writes the folder again; absent if none can, or if it is the same', text),
);

const comparison = {
  files: about('those with other bytes', listOf(text)),
  problems: about('why there is no comparison', listOf(text)),
  diff: optional(difference),
};

export const checked = objectOf({ folder: text, same: boolean, accept, ...comparison });

const nodeChanges = listOf(objectOf({ node: text, what: text }));

export const checkedFleet = objectOf({
  folder: text,
  same: boolean,
  accept,
  nodes: wholeNumber(0),
  changed: nodeChanges,
  stale: about('folders of nodes that the input does not have', nodeChanges),
  example: optional(about('one node that changes', objectOf({ folder: text, ...comparison }))),
});

export const compile = anyOf('one node, or several', compiled, compiledFleet);

export const check = anyOf('one node, or several', checked, checkedFleet);
