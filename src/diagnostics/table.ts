/** How much a diagnostic weighs: an error means that nothing is written. */
export type Severity = 'error' | 'warning' | 'note';

/** What kpc knows of a code. The functions' argument is what a diagnostic of that code carries as data. */
interface Entry {
  /** One for all, or what the arguments make it. */
  readonly severity: Severity | ((details: never) => Severity);
  /** What the code stands for, for the table in docs/diagnostics.md. */
  readonly meaning: string;
  /** What is wrong, and what would be right. */
  readonly words: (details: never) => string;
}

/** The diagnostics of one domain, by their codes. */
export type DiagnosticTable = Readonly<Record<string, Entry>>;
