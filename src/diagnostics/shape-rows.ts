import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Example } from './examples.ts';
import { describeFound, type Found } from './value-in-words.ts';
import type { Severity, Words } from './diagnostic-rows.ts';

/** A field that does not have the type, the range or one of the words that it must have. */
type WrongField = {
  readonly field: string;
  readonly found: Found;
  /** The types of JSON that it may have; undefined for one of a few strings. */
  readonly types?: readonly string[] | undefined;
  /** What it should be, if the schema says so in words. */
  readonly expected?: string | undefined;
  /** Whether kube-proxy takes it, and leaves it out. */
  readonly isLeftOut?: boolean;
  /** The mode to compile for, if only another one reads the field. */
  readonly ignoredIn?: ProxyMode | undefined;
};

/** The row of a field that may have another value than it should. */
export function shapeRow(meaning: string, example: () => Example) {
  return {
    severity: { among: ['error', 'warning'], weigh: weighField } as const,
    meaning,
    example,
    words: describeField,
  };
}

/** As shapeRow, for a field that takes one of a few words. */
export function wordRow(field: string, example: () => Example) {
  return shapeRow(`${field} is not one of its allowed values`, example);
}

function weighField({ isLeftOut, ignoredIn }: WrongField): Severity {
  return isLeftOut === true || ignoredIn !== undefined ? 'warning' : 'error';
}

function describeField({ field, found, types = ['string'], expected, isLeftOut, ignoredIn }: WrongField): Words {
  const leftOut = isLeftOut ? ', and kube-proxy leaves it out' : '';
  const wrong = `${field} cannot be ${describeFound(found)}${leftOut}${ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`}`;
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
