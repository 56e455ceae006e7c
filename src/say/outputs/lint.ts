import { about, boolean, listOf, objectOf, wholeNumber } from '../../base/json/schema.ts';
import { finding } from './envelope.ts';

const counts = {
  errors: wholeNumber(0),
  warnings: wholeNumber(0),
  notes: wholeNumber(0),
  ignored: about('findings that flags, kpc.yaml or annotations accept', wholeNumber(0)),
  files: about('that were read', wholeNumber(0)),
  services: about('that were looked at', wholeNumber(0)),
  unserved: about('Services whose endpoints the input does not give: nothing of these was looked at', wholeNumber(0)),
  nodes: about('Nodes of the input', wholeNumber(0)),
};

export const linted = objectOf({
  ...counts,
  hasRun: about('false if errors of the input kept the rules from looking at it', boolean),
  ignoredFindings: listOf(finding),
});
