import type { Command } from 'commander';
import { type Diagnostic, diagnose, isError } from '../../diagnostics/diagnostic.ts';
import type { Inputs } from '../../input/read-inputs.ts';
import { foldDiagnostics } from '../../input/sort-diagnostics.ts';
import { formatError, renderDiagnostics } from '../../report/render-diagnostics.ts';
import { formatCount } from '../../base/format-count.ts';
import { formatJson } from '../../report/format-json.ts';
import { type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';

/** What a command prints besides its result, and what it treats as a failure. */
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

/** The terminal; with --quiet one without warnings, notes and summaries. */
export function quieten(terminal: Terminal, { quiet = false }: MessageOptions): Terminal {
  return quiet ? { ...terminal, quiet, interactive: false } : terminal;
}

/** The diagnostics as --strict takes them, where a warning is an error, and with the place of a flag in kpc.yaml. */
export function makeStrict(
  diagnostics: readonly Diagnostic[],
  { strict = false, flagPlaces }: MessageOptions,
): readonly Diagnostic[] {
  return diagnostics.map((each) => {
    const flag = each.place === undefined ? /^--[a-z-]+/.exec(each.text)?.[0] : undefined;
    const severity = strict && each.severity === 'warning' ? 'error' : each.severity;
    return { ...each, severity, place: flagPlaces?.get(flag ?? '') ?? each.place };
  });
}

/** Prints the diagnostics of an input. Returns false if one is an error, or --strict makes it one. */
export async function reportInput(
  { diagnostics, files }: Pick<Inputs, 'diagnostics' | 'files'>,
  options: MessageOptions,
  terminal: Terminal,
): Promise<boolean> {
  const said = makeStrict(diagnostics, options);
  await reportDiagnostics(said, files, terminal);
  return !said.some(isError);
}

/** How many diagnostics are shown. */
const mostShown = 200;

/** Prints diagnostics to stderr, each with the line of the file that it speaks of. */
export async function reportDiagnostics(
  diagnostics: readonly Diagnostic[],
  files: Inputs['files'],
  terminal: Terminal,
): Promise<void> {
  const wanted = terminal.quiet ? diagnostics.filter(isLoud) : diagnostics;
  if (wanted.length === 0) return;
  const lineOf = (file: string, line: number) => files.get(file)?.lineAt(line) ?? '';
  const shown = limitShown(foldDiagnostics(wanted));
  await terminal.err(renderDiagnostics(shown, lineOf, terminal.colour.err));
}

/** Prints why a command does not do what it was asked, and what to do about that. */
export async function refuse(terminal: Terminal, wrong: string, help?: string): Promise<ExitStatus> {
  await terminal.err(formatError(wrong, help));
  return exitStatus.badInput;
}

/** Whether --quiet prints it: an error, or that the result leaves out a part of the input. */
function isLoud(diagnostic: Diagnostic): boolean {
  return isError(diagnostic) || (diagnostic.code === 'left-out' && diagnostic.arguments.problem === 'all');
}

/** The first, errors before all else, in the order they came; and a line for each severity of what is not shown. */
function limitShown(all: readonly Diagnostic[]): readonly Diagnostic[] {
  if (all.length <= mostShown) return all;
  const shown = new Set([...all.filter(isError), ...all.filter((each) => !isError(each))].slice(0, mostShown));
  const others = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const { length: count } = all.filter((each) => each.severity === severity && !shown.has(each));
    return count === 0 ? [] : [diagnose('not-shown', { severity, count })];
  });
  return [...all.filter((diagnostic) => shown.has(diagnostic)), ...others];
}

/** Shows on a terminal how far a long run is; elsewhere nothing. */
export interface Progress {
  readonly step: () => Promise<void>;
  /** Clears the line. */
  readonly end: () => Promise<void>;
}

/** How often the line is written anew, in milliseconds. */
const interval = 100;

/** Counts the steps of long work on a terminal, and prints nothing elsewhere. */
export function showProgress(total: number, terminal: Terminal): Progress {
  if (!terminal.interactive) return { step: async () => {}, end: async () => {} };
  const start = Date.now();
  let shown = start;
  let done = 0;
  return {
    step: async () => {
      done++;
      const now = Date.now();
      if (now - shown < interval) return;
      shown = now;
      const left = Math.ceil(((now - start) / done) * (total - done) * 0.001);
      await terminal.status(`${formatCount(done)} of ${formatCount(total)} nodes, ${left} s left`);
    },
    end: () => terminal.status(''),
  };
}

/** If nothing is compiled, says why in the format of --output, too. */
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
    const { diagnosticsToGithub } = await import('../../report/github.ts');
    await terminal.out(diagnosticsToGithub(diagnostics));
  }
  return exitStatus.badInput;
}
