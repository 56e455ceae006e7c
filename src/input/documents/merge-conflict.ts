import { diagnose, placeAtLine, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { findConflict } from '../../base/merge-conflict.ts';

/** What is wrong with a text in which Git marks a merge conflict; undefined where it marks none. `file` is its name. */
export function describeConflict(file: string, text: string): Diagnostic | undefined {
  const line = findConflict(text);
  return line === undefined ? undefined : diagnose('merge-conflict', {}, placeAtLine(file, line));
}
