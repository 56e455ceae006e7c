import { quote } from '../base/wording.ts';
import { describeFound, type Found } from './found.ts';
import type { Wordings, Words } from './table.ts';

type WrongType = {
  readonly field: string;
  readonly found: Found;
  /** The types of JSON that it may have. */
  readonly types: readonly string[];
  /** What it should be, if the schema says so in words. */
  readonly expected?: string | undefined;
};

/** The words for a field that does not fit the schema of its object, by `problem`. */
export const shapeWords = {
  type: describeType,
  word: ({ field, value, expected }: { readonly field: string; readonly value: string; readonly expected: string }) => [
    `${field} cannot be ${quote(value)}`,
    `write ${expected}`,
  ],
  range: ({
    field,
    value,
    expected,
  }: {
    readonly field: string;
    readonly value: number;
    readonly expected: string;
  }) => [`${field} cannot be ${value}`, expected],
} as const satisfies Wordings;

function describeType({ field, found, types, expected }: WrongType): Words {
  const wrong = `${field} cannot be ${describeFound(found)}`;
  if (types.includes('string') && found.type === 'number') {
    // A duration has a unit, which quotes alone do not give it.
    const isAnyString = expected === undefined || expected === 'a string';
    return [
      `${field} is the number ${found.value}, not a string`,
      isAnyString ? 'put it in quotes' : `write ${expected}`,
    ];
  }
  if (types.includes('string') && found.type === 'boolean') {
    const help = 'put it in quotes (to YAML, yes and on are true, no and off are false)';
    return [`${field} is ${found.value}, not a string`, help];
  }
  if (types.includes('integer')) {
    const isInQuotes = found.type === 'string' && /^\d+$/.test(found.value);
    return [wrong, isInQuotes ? `write ${found.value} without quotes` : (expected ?? 'write a whole number')];
  }
  const isPair = types.includes('object') && found.type === 'string' && pairWithoutSpace.test(found.value);
  return [wrong, isPair ? 'put a space after the ":"' : `write ${expected ?? types.join(' or ')}`];
}

/** A key and its value with no space between them are one text to YAML. */
const pairWithoutSpace = /^[\w./-]+:[^\s/]/;
