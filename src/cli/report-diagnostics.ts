import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { Inputs } from '../input/read-inputs.ts';
import { renderDiagnostics } from './render-diagnostics.ts';
import type { Terminal } from './terminal.ts';

/** Prints diagnostics to stderr, each with the line of the file that it speaks of. */
export async function reportDiagnostics(
  diagnostics: readonly Diagnostic[],
  files: Inputs['files'],
  terminal: Terminal,
): Promise<void> {
  if (diagnostics.length === 0) return;
  const lineOf = (file: string, line: number) => files.get(file)?.lineAt(line) ?? '';
  await terminal.err(renderDiagnostics(diagnostics, lineOf, terminal.colour.err));
}
