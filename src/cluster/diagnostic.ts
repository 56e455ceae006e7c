import type { Place } from '../kernel/origin.ts';

export type Severity = 'error' | 'warning' | 'note';

/**
 * Something to tell the user about the input. Codes are stable and documented; the text says what is wrong and what
 * would be right. An error means that nothing is written.
 */
export interface Diagnostic {
  readonly severity: Severity;
  /** kebab-case, such as "bad-port". */
  readonly code: string;
  readonly text: string;
  /** Undefined for what concerns no field: a missing --node, say. */
  readonly place?: Place | undefined;
}

/** Whether nothing may be written because of it. */
export function isError({ severity }: Diagnostic): boolean {
  return severity === 'error';
}

/** The beginning of a line of a file, which counts from 1. */
export function placeAtLine(file: string, line = 1): Place {
  return { file, locate: () => ({ file, line, column: 1 }) };
}
