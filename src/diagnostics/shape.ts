import { quote } from '../base/wording.ts';
import { describeFound } from './found.ts';
import type { Found } from './found.ts';

/** Why a field does not fit the schema of its object. */
export type ShapeProblem =
  | {
      readonly problem: 'type';
      readonly field: string;
      readonly found: Found;
      /** The types of JSON that it may have. */
      readonly types: readonly string[];
      /** What it should be, if the schema says so in words. */
      readonly expected?: string | undefined;
    }
  | { readonly problem: 'word'; readonly field: string; readonly value: string; readonly expected: string }
  | { readonly problem: 'range'; readonly field: string; readonly value: number; readonly expected: string };

/** What is wrong with the field, and what would be right. */
export function describeShape(details: ShapeProblem): string {
  switch (details.problem) {
    case 'type':
      return describeType(details);
    case 'word':
      return `${details.field} is ${quote(details.value)}: write ${details.expected}`;
    case 'range':
      return `${details.field} ${details.value}: ${details.expected}`;
  }
}

function describeType({ field, found, types, expected }: ShapeProblem & { readonly problem: 'type' }): string {
  if (types.includes('string') && found.type === 'number') {
    // A duration has a unit, which quotes alone do not give it.
    const repair = expected === undefined || expected === 'a string' ? 'put it in quotes' : `write ${expected}`;
    return `${field} is the number ${found.value}, not a string: ${repair}`;
  }
  if (types.includes('string') && found.type === 'boolean') {
    return `${field} is ${found.value}, not a string: put it in quotes (to YAML, yes and on are true, no and off are false)`;
  }
  if (types.includes('integer')) {
    if (found.type === 'string' && /^\d+$/.test(found.value)) {
      return `${field} is the string ${quote(found.value)}: write ${found.value} without quotes`;
    }
    return `${field} is ${describeFound(found)}: ${expected ?? 'it must be a whole number'}`;
  }
  const text = `${field} is ${describeFound(found)}: it must be ${expected ?? types.join(' or ')}`;
  const isPair = types.includes('object') && found.type === 'string' && pairWithoutSpace.test(found.value);
  return isPair ? `${text}; a space is missing after the ":"` : text;
}

/** A key and its value with no space between them are one text to YAML. */
const pairWithoutSpace = /^[\w./-]+:[^\s/]/;
