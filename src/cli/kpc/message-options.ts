import type { Command } from 'commander';
import type { Diagnostic } from '../../cluster/diagnostic.ts';
import type { Terminal } from '../shared/terminal.ts';

/** What a command says besides its result, and what it takes for a failure. */
export interface MessageOptions {
  readonly quiet?: boolean;
  readonly strict?: boolean;
}

export function addMessageOptions(command: Command): Command {
  return command
    .option('-q, --quiet', 'print the result and errors only: no warnings, notes or summaries')
    .option('--strict', 'take warnings for errors');
}

/** The terminal, or one that leaves out what --quiet does not want to hear. */
export function quieten(terminal: Terminal, { quiet = false }: MessageOptions): Terminal {
  return quiet ? { ...terminal, quiet, interactive: false } : terminal;
}

/** The diagnostics as --strict takes them: a warning is an error. */
export function makeStrict(
  diagnostics: readonly Diagnostic[],
  { strict = false }: MessageOptions,
): readonly Diagnostic[] {
  if (!strict) return diagnostics;
  return diagnostics.map((each) => (each.severity === 'warning' ? { ...each, severity: 'error' } : each));
}

/** Whether --strict finds fault with what can be done otherwise. */
export function failsStrictly(diagnostics: readonly Diagnostic[], { strict = false }: MessageOptions): boolean {
  return strict && diagnostics.some(({ severity }) => severity === 'warning');
}
