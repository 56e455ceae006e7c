import { about, listOf, objectOf, text, wholeNumber } from '../../base/json/schema.ts';
import { effectFields, findingWith } from '../../ask/equivalence/findings.ts';

/** An Effect, as it is printed. */
export const printedEffectFields = {
  ...effectFields,
  senders: listOf(text),
  trace: about('the command that shows the example', text),
};

const divergence = findingWith(objectOf(printedEffectFields));

/** What `kpc equivalence` and `kpc migrate` print. */
export const equivalence = objectOf({
  from: text,
  to: text,
  nodes: about('how many there are', wholeNumber(0)),
  standIns: about('how many of them were asked in place of all', wholeNumber(0)),
  represented: about(
    'of several nodes, for each, those that were asked in its place: itself, if everything was asked of it',
    listOf(objectOf({ node: text, by: listOf(text) })),
  ),
  classes: about('of packets that were sent', wholeNumber(0)),
  unknown: about('classes that neither side knows', wholeNumber(0)),
  reasons: about('why, and what would settle it', listOf(text)),
  notCompared: about('what was not looked at', listOf(text)),
  summary: text,
  causes: about('why packets fare differently, each with how', listOf(divergence)),
});
