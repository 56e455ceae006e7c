// Declares the module #codes, which scripts/codes-module.mjs makes from fixtures/codes. A test checks that these folders match the codes.
import type { FailureCode } from '../base/findings/apply.ts';
import type { FindingCode } from '../base/findings/codes.ts';

export interface CodeText {
  readonly meaning: string;
  /** What to do, unless the message itself has help. */
  readonly advice?: string;
  /** Only for a rule of kpc lint: the effect on clients or nodes, in whole sentences. */
  readonly why?: string;
  /** Links to public reports and documents. */
  readonly reports?: readonly string[];
  /** An example: files, a command and its output. */
  readonly shown: string;
}

/** Files, and a kpc command that reports the code for them. */
export interface Example {
  readonly words: readonly string[];
  readonly files: Readonly<Record<string, string>>;
}

export const codes: Readonly<Record<FindingCode, CodeText>>;
export const examples: Readonly<Record<FindingCode, Example>>;
/** What kpc-apply's errors mean, and what to do about them. */
export const failures: Readonly<Record<FailureCode, { readonly meaning: string; readonly advice: string }>>;
