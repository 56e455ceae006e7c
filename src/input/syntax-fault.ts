/** What is wrong with a document's syntax; `offset` counts from the start of the text that was parsed. */
export interface SyntaxFault {
  readonly offset: number;
  readonly code: string;
  readonly text: string;
}

/** Of a text that nests so deeply that a parser which calls itself for each level could not read it. */
export const tooDeep: SyntaxFault = { offset: 0, code: 'too-deep', text: 'lists and mappings nest too deeply' };

/** How deep lists and mappings may nest in a document. Kubernetes' own objects nest a dozen deep. */
export const maxDepth = 500;

/** Thrown by the parts of the YAML parser, for parseYamlValue to catch: a document is read up to its first fault. */
export class Refusal extends Error {
  readonly fault: SyntaxFault;

  constructor(fault: SyntaxFault) {
    super(fault.text);
    this.fault = fault;
  }
}

/** Stops reading a document because of what stands at the offset. */
export function refuse(offset: number, text: string): never {
  throw new Refusal({ offset, code: 'bad-yaml', text: `not valid YAML: ${text}` });
}
