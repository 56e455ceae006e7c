// Declares the module #codes, which scripts/codes-module.mjs makes from fixtures/codes. A test checks that these folders match the codes.
import type { FailureCode } from '../base/findings/apply.ts';
import type { FindingCode } from '../base/findings/codes.ts';

export interface CodeText {
  readonly meaning: string;
  /** What to do. Unset if the message itself has help. */
  readonly advice?: string;
  /** The effect on clients or nodes, in whole sentences. Set only for rules of kpc lint. */
  readonly why?: string;
  /** Links to public reports and documents. */
  readonly reports?: readonly string[];
  /** An example, formatted: files, a command and its output. */
  readonly shown: string;
}

/** Files, and a kpc command that reports the code for them. */
export interface Example {
  readonly words: readonly string[];
  readonly files: Readonly<Record<string, string>>;
}

export const codes: Readonly<Record<FindingCode, CodeText>>;
export const examples: Readonly<Record<FindingCode, Example>>;
/** For each error of kpc-apply: what it means, and what to do about it. */
export const failures: Readonly<Record<FailureCode, { readonly meaning: string; readonly advice: string }>>;
