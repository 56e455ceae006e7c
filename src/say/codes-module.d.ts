// The module #codes, which scripts/codes-module.mjs makes of fixtures/codes. A test holds the folders to the codes.
import type { FailureCode } from '../base/findings/apply.ts';
import type { FindingCode } from '../base/findings/codes.ts';

/** What a code means. */
export interface CodeText {
  readonly meaning: string;
  /** What to do, where the words of the message have no help. */
  readonly advice?: string;
  /** Of a rule of kpc lint: what it does to clients or nodes, in whole sentences. */
  readonly why?: string;
  /** Public reports and documents about it, as links. */
  readonly reports?: readonly string[];
  /** An example: its files, a command, and what that says. */
  readonly shown: string;
}

/** Files, and the words after "kpc" that make a diagnostic of them. */
export interface Example {
  readonly words: readonly string[];
  readonly files: Readonly<Record<string, string>>;
}

export const codes: Readonly<Record<FindingCode, CodeText>>;
export const examples: Readonly<Record<FindingCode, Example>>;
/** What the errors of kpc-apply mean, and what to do about them. */
export const failures: Readonly<Record<FailureCode, { readonly meaning: string; readonly advice: string }>>;
