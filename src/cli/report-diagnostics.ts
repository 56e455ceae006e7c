import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { Terminal } from './terminal.ts';

/** Prints diagnostics to stderr. */
export async function reportDiagnostics(diagnostics: readonly Diagnostic[], terminal: Terminal): Promise<void> {
  for (const { severity, code, text, place } of diagnostics) {
    const at = place?.locate();
    await terminal.err(`${at ? `${at.file}:${at.line}:${at.column}` : 'kpc'}: ${severity}: ${text} [${code}]\n`);
  }
}
