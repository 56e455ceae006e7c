import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import { formatJson } from '../../report/format-json.ts';
import { exitStatus, type ExitStatus } from '../shared/exit-status.ts';
import type { Terminal } from '../shared/terminal.ts';

/** Where nothing is compiled, programs and GitHub are told why in their own words too. `format` is that of --output. */
export async function reportFailure(
  format: string | undefined,
  diagnostics: readonly Diagnostic[],
  terminal: Terminal,
): Promise<ExitStatus> {
  if (format === 'json') {
    const { diagnosticsToJson } = await import('../../report/json.ts');
    await terminal.out(formatJson({ diagnostics: diagnosticsToJson(diagnostics) }));
  }
  if (format === 'github') {
    const { checkToGithub } = await import('../../report/github.ts');
    await terminal.out(checkToGithub(undefined, diagnostics));
  }
  return exitStatus.badInput;
}
