/** How much a diagnostic weighs: an error means that nothing is written. */
export type Severity = 'error' | 'warning' | 'note';

/** A severity that depends on the arguments. */
export interface Weighing<Details = never> {
  /** The severities that are possible, the worst first. */
  readonly among: readonly Severity[];
  readonly weigh: (details: Details) => Severity;
}

/** The row of a code. The functions take the arguments of a diagnostic with that code. */
interface Entry {
  readonly severity: Severity | Weighing;
  /** What the code stands for, for the table in docs/diagnostics.md. */
  readonly meaning: string;
  /** What is wrong, and what would be right. */
  readonly words: (details: never) => string;
}

/** The diagnostics of one domain, by their codes. */
export type DiagnosticTable = Readonly<Record<string, Entry>>;
