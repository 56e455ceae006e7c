import { placeAtLine } from '../cluster/diagnostic.ts';
import { conflictText, findConflict } from '../base/merge-conflict.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';

/** What is wrong with a text in which Git marks a merge conflict; undefined where it marks none. `file` is its name. */
export function describeConflict(file: string, text: string): Diagnostic | undefined {
  const line = findConflict(text);
  if (line === undefined) return undefined;
  return { severity: 'error', code: 'merge-conflict', text: conflictText, place: placeAtLine(file, line) };
}
