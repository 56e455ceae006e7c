// What is wrong with the syntax of a document, and how much one may hold.
import type { Fault } from '../../base/findings/finding.ts';
import { mostItems, mostLines, mostWords, type Bounded } from '../../base/bounds.ts';
import type { SyntaxCode } from '../../base/findings/files.ts';
import { heapLimit } from '#heap';

/** What is wrong with a document's syntax; `offset` counts from the start of the text that was parsed. */
export type SyntaxFault = Fault<SyntaxCode> & { readonly offset: number };

/** Of a text that nests so deeply that a parser which calls itself for each level could not read it. */
export const tooDeep: SyntaxFault = { offset: 0, code: 'too-deep', arguments: {} };

/** Of a text with more than the bound. */
export function tooLong(of: Bounded, most: number, offset = 0): SyntaxFault {
  return { offset, code: 'too-long', arguments: { of, most } };
}

/** How deep lists and mappings may nest in a document. Kubernetes' own objects nest a dozen deep. */
export const maxDepth = 500;

/** Thrown by the parts of the YAML parser, for parseYamlValue to catch: a document is read up to its first fault. */
export class Refusal extends Error {
  readonly fault: SyntaxFault;

  constructor(fault: SyntaxFault) {
    super(fault.code);
    this.fault = fault;
  }
}

/** What is at the offset, which kubectl does not read, or not as other programs do. */
export function oddYaml(offset: number, what: string): SyntaxFault {
  return { offset, code: 'bad-yaml', arguments: { reason: `kubectl does not read ${what} as other programs do` } };
}

/** Stops reading a document because of what is at the offset. */
export function refuse(offset: number, what: string): never {
  throw new Refusal(oddYaml(offset, what));
}

/** Stops reading a document because of a tab where only spaces can be. */
export function refuseTab(offset: number): never {
  throw new Refusal({ offset, code: 'yaml-tab', arguments: {} });
}

/** What the program itself takes. */
const bytesOfProgram = 32_000_000;
/** One text's values may take half of the rest: a mapping that grows takes twice its room, and more is made of them later. */
const room = Math.max(0, heapLimit() - bytesOfProgram) / 2;

/** What a value of JSON or YAML takes at most: a key of a long mapping, with what it holds. */
const bytesOfValue = 150;
/** The same with where it is written. */
const bytesOfPlacedValue = 300;
/** What the package takes for a word of YAML: nodes and tokens. */
const bytesOfWord = 150;

function fitting(most: number, bytes: number): number {
  return Math.min(most, Math.floor(room / bytes / 1000) * 1000);
}

export const mostJsonValues = fitting(mostItems, bytesOfValue);
/** A line of YAML holds one value or two, as an item and its first field do. */
export const mostYamlValues = fitting(3 * mostLines, bytesOfValue);
export const mostPlacedValues = fitting(3 * mostLines, bytesOfPlacedValue);
export const mostYamlWords = fitting(mostWords, bytesOfWord);
