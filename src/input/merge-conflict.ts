import { conflictText, findConflict } from '../base/merge-conflict.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';

/** What is wrong with a text in which Git marks a merge conflict; undefined where it marks none. `file` is its name. */
export function describeConflict(file: string, text: string): Diagnostic | undefined {
  const line = findConflict(text);
  if (line === undefined) return undefined;
  const place = { file, locate: () => ({ file, line, column: 1 }) };
  return { severity: 'error', code: 'merge-conflict', text: conflictText, place };
}
