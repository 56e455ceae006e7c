import { quote } from '../../base/printable.ts';
import { adviseOnOddSpace } from '../../base/odd-texts.ts';
import type { FoundValue, WrongValue, fieldFindings } from '../../base/findings/fields.ts';
import { didYouMean, type Words, type WordsOf } from './rows.ts';

export function foundWords(found: FoundValue): string {
  switch (found.type) {
    case 'empty':
      return 'empty';
    case 'list':
      return 'a list';
    case 'mapping':
      return 'a mapping';
    case 'string':
      return quote(found.value);
    case 'number':
      return found.written ?? String(found.value);
    case 'boolean':
      return String(found.value);
  }
}

function describeWrong({ field, found, types = ['string'], expected, because, ignoredIn }: WrongValue): Words {
  const why = because === undefined ? '' : `: ${because}`;
  const ending = ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`;
  const wrong = `${field} cannot be ${foundWords(found)}${why}${ending}`;
  if (types.includes('string') && (found.type === 'number' || found.type === 'boolean')) {
    // A duration needs a unit, so quotes alone do not help.
    const isAnyString = expected === undefined || expected === 'a string' || found.type === 'boolean';
    return [
      `${field} is ${found.type === 'number' ? 'the number ' : ''}${foundWords(found)}, not a string`,
      isAnyString ? `put it in quotes${found.type === 'boolean' ? yesIsTrue : ''}` : `write ${expected}`,
    ];
  }
  // Other selectors have them.
  if (types.includes('string') && /\bmatch(?:Labels|Expressions)$/.test(field)) {
    return [wrong, 'write the labels themselves here: this selector takes no matchLabels and no matchExpressions'];
  }
  if (types.includes('integer')) {
    const isInQuotes = found.type === 'string' && /^\d+$/.test(found.value);
    return [wrong, isInQuotes ? `write ${found.value} without quotes` : (expected ?? 'write a whole number')];
  }
  // Without a space after the colon, YAML reads a key and its value as one string.
  const isPair = types.includes('object') && found.type === 'string' && /^[\w./-]+:[^\s/]/.test(found.value);
  return [wrong, isPair ? 'put a space after the ":"' : `write ${expected ?? types.join(' or ')}`];
}

const yesIsTrue = ' (to YAML 1.1, yes, y and on are true, no, n and off are false)';

/** Problems with single fields, whatever object they belong to. */
export const fieldWords: WordsOf<typeof fieldFindings> = {
  'bad-value': describeWrong,
  'missing-field': ({ owner, field, expected }) => [`${owner} has no ${field}`, `write ${expected}`],
  'unknown-field': ({ name, owner, reader, meant }) => [
    `${owner} has no field ${quote(name)}${reader === undefined ? '' : `: ${reader} ignores it`}`,
    adviseOnOddSpace(name) ?? didYouMean(meant),
  ],
  'odd-address': ({ field, value, address, single, isRefused }) => [
    `${field} ${quote(value)} is read as ${address}${isRefused ? '; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on' : ''}`,
    single === undefined
      ? 'write it that way, because other programs may read it differently'
      : `write ${address}, or ${single} for the one address`,
  ],
};
