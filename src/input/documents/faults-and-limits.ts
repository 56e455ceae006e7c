import type { Fault } from '../../base/findings/finding.ts';
import { mostItems, mostLines, mostWords, type Bounded } from '../../base/bounds.ts';
import type { OddYaml, SyntaxCode } from '../../base/findings/files.ts';
import { heapLimit } from '#heap';

export type SyntaxFault = Fault<SyntaxCode> & { readonly offset: number };

/** The value is nested so deeply that a recursive parser would overflow the stack. */
export const tooDeep: SyntaxFault = { offset: 0, code: 'too-deep', arguments: {} };

export function tooLong(of: Bounded, most: number, offset = 0): SyntaxFault {
  return { offset, code: 'too-long', arguments: { of, most } };
}

/** Objects of Kubernetes are nested about a dozen levels deep. */
export const maxDepth = 500;

/** Ends parsing at the first fault. Parts of the YAML parser throw it, and parseYamlValue catches it. */
export class Refusal extends Error {
  readonly fault: SyntaxFault;

  constructor(fault: SyntaxFault) {
    super(fault.code);
    this.fault = fault;
  }
}

export function refuseYaml(offset: number, odd: OddYaml): never {
  throw new Refusal({ offset, code: 'bad-yaml', arguments: { odd } });
}

export function refuseTab(offset: number): never {
  throw new Refusal({ offset, code: 'yaml-tab', arguments: {} });
}

const bytesOfProgram = 32_000_000;
/**
 * The values of one text may take half of the free heap, because a growing mapping takes twice its size and later steps need memory too.
 */
const room = Math.max(0, heapLimit() - bytesOfProgram) / 2;

/** Upper bound for one JSON or YAML value in memory, such as a key of a long mapping with its value. */
const bytesOfValue = 150;
/** Upper bound for one such value as a YAML node with its position. */
const bytesOfPlacedValue = 300;
/** Upper bound for a word in the yaml package: nodes and tokens. */
const bytesOfWord = 150;

function fitting(most: number, bytes: number): number {
  return Math.min(most, Math.floor(room / bytes / 1000) * 1000);
}

export const mostJsonValues = fitting(mostItems, bytesOfValue);
/** A YAML line holds one or two values, such as an item and its first field. */
export const mostYamlValues = fitting(3 * mostLines, bytesOfValue);
export const mostPlacedValues = fitting(3 * mostLines, bytesOfPlacedValue);
export const mostYamlWords = fitting(mostWords, bytesOfWord);
