import type { Fault } from '../../base/findings/finding.ts';
import type { Bounded } from '../../base/bounds.ts';
import type { SyntaxCode } from '../../base/findings/files.ts';

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
