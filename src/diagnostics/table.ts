/** How much a diagnostic weighs: an error means that nothing is written. */
export type Severity = 'error' | 'warning' | 'note';

/** A severity that the arguments decide on. */
export interface Weighing<Details = never> {
  /** Those that it can be, the worst first. */
  readonly among: readonly Severity[];
  readonly weigh: (details: Details) => Severity;
}

/** What kpc knows of a code. The functions' argument is what a diagnostic of that code carries as data. */
interface Entry {
  readonly severity: Severity | Weighing;
  /** What the code stands for, for the table in docs/diagnostics.md. */
  readonly meaning: string;
  /** What is wrong, and what would be right. */
  readonly words: (details: never) => string;
}

/** The diagnostics of one domain, by their codes. */
export type DiagnosticTable = Readonly<Record<string, Entry>>;
