import { about, boolean, listOf, objectOf, oneOf, wholeNumber } from '../../base/json-shape.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { finding } from './shared.ts';

const counts = {
  errors: wholeNumber(0),
  warnings: wholeNumber(0),
  notes: wholeNumber(0),
  ignored: about('findings that flags, kpc.yaml or annotations accept', wholeNumber(0)),
  files: about('that were read', wholeNumber(0)),
  nodes: about('Nodes of the input', wholeNumber(0)),
};

export const linted = objectOf({
  ...counts,
  mode: oneOf(...proxyModes),
  namesMode: about('false if neither flags nor the input name a mode', boolean),
  hasRun: about('false if errors of the input kept the rules from looking at it', boolean),
  findings: listOf(finding),
  ignoredFindings: listOf(finding),
});
