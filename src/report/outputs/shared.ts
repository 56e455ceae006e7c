import {
  about,
  anyObject,
  named,
  objectOf,
  oneOf,
  openOf,
  optional,
  text,
  wholeNumber,
} from '../../base/json-shape.ts';
import { changeKinds, kernelObjectKinds } from '../../changes/kernel-change.ts';
import type { Location } from '../../kernel/place.ts';

export const placeFields = {
  file: about('as it was named', text),
  line: about('from 1', wholeNumber(1)),
  column: about('from 1, in UTF-16 units, as editors count', wholeNumber(1)),
};

export const place = named('place', objectOf<Location>(placeFields));

export const diagnosticFields = {
  severity: about('an error means that nothing was written', oneOf('error', 'warning', 'note')),
  code: about('stable: "kpc explain CODE" says more', text),
  text: about('what is wrong', text),
  help: optional(about('what to do about it, if kpc knows', text)),
  arguments: about('what the text was made of, for programs', anyObject),
  file: optional(about('absent if it is about no file', text)),
  line: optional(about('from 1; absent if it is about a whole file', wholeNumber(1))),
  column: optional(placeFields.column),
};

export const diagnostic = named('diagnostic', objectOf(diagnosticFields));

export const change = oneOf(...changeKinds);

export const kernelChange = named(
  'kernelChange',
  openOf({
    kind: about('which object it is; it decides which other fields there are', oneOf(...kernelObjectKinds)),
    change,
  }),
);
