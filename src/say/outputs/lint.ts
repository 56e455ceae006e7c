import { about, boolean, listOf, named, objectOf, oneOf, optional, text, wholeNumber } from '../../base/json-shape.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { verdicts } from '../../packet/packet.ts';
import { diagnosticFields } from './shared.ts';

const trace = objectOf({
  command: about('prints the way of a packet that shows it', text),
  verdict: about('how that packet ends', oneOf(...verdicts)),
});

const finding = named(
  'finding',
  objectOf({
    ...diagnosticFields,
    service: optional(
      about('"namespace/name" of the Service that it is about; absent if it is about none, or several', text),
    ),
    trace: optional(trace),
    page: optional(about('where the rule is explained; "kpc explain CODE" says the same', text)),
    fingerprint: about('the same as long as the finding is about the same, wherever its lines are', text),
  }),
);

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
