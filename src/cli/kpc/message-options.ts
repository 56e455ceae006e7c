import type { Command } from 'commander';
import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { Terminal } from '../shared/terminal.ts';

/** What a command says besides its result, and what it takes for a failure. */
export interface MessageOptions {
  readonly quiet?: boolean;
  readonly strict?: boolean;
  /** Where kpc.yaml gives flags. */
  readonly flagPlaces?: FlagPlaces;
}

/** Long names of flags, and where a file gives them. */
export type FlagPlaces = ReadonlyMap<string, Diagnostic['place']>;

export function addMessageOptions(command: Command): Command {
  return command
    .option('-q, --quiet', 'print the result and errors only: no warnings, notes or summaries')
    .option('--strict', 'turn warnings into errors');
}

/** The terminal, or one that leaves out what --quiet does not want to hear. */
export function quieten(terminal: Terminal, { quiet = false }: MessageOptions): Terminal {
  return quiet ? { ...terminal, quiet, interactive: false } : terminal;
}

/** The diagnostics as --strict takes them, where a warning is an error, and with the place of a flag in kpc.yaml. */
export function makeStrict(
  diagnostics: readonly Diagnostic[],
  { strict = false, flagPlaces }: MessageOptions,
): readonly Diagnostic[] {
  if (!strict && !flagPlaces) return diagnostics;
  return diagnostics.map((each) => {
    const flag = each.place === undefined ? /^--[a-z-]+/.exec(each.text)?.[0] : undefined;
    const place = flag === undefined ? undefined : flagPlaces?.get(flag);
    const severity = strict && each.severity === 'warning' ? 'error' : each.severity;
    return { ...each, severity, ...(place ? { place } : {}) };
  });
}

/** Whether --strict finds fault with what can be done otherwise. */
export function failsStrictly(diagnostics: readonly Diagnostic[], { strict = false }: MessageOptions): boolean {
  return strict && diagnostics.some(({ severity }) => severity === 'warning');
}
