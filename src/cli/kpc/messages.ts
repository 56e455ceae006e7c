import type { Command } from 'commander';
import { asStrict, type Finding, isError } from '../../base/findings/finding.ts';
import { formatFindings } from '../../say/formats/text.ts';
import { formatCount } from '../../base/printable.ts';
import { sayFindings, type SaidFinding } from '../../say/words/said.ts';
import type { SaidByCommand } from '../../say/formats/json.ts';
import { repositoryPaths, type ReadFiles, type Snapshot } from '../../library/node/open.ts';
import { findingsForPeople } from '../../library/words.ts';
import { strictFlag } from '../../library/command-flags.ts';
import { flagRow, type Flag } from '../../library/options.ts';
import { noProgress, type Progress } from '../../library/node/fleet.ts';
import { say, type Terminal } from '../shared/terminal.ts';

export interface MessageOptions {
  readonly quiet?: boolean;
  readonly strict?: boolean;
  readonly output?: string;
  /** The inputs of -f, if the command has it. */
  readonly file?: readonly string[];
  readonly flagPlaces?: FlagPlaces;
  /** Names the flags from a kpc.yaml. */
  readonly taken?: readonly string[];
}

/** Long name of a flag → where a file sets it. */
type FlagPlaces = ReadonlyMap<string, Finding['place']>;

export const messageFlags: readonly Flag[] = [
  flagRow('on', '-q, --quiet', 'print the result and errors only: no warnings, notes or summaries', {
    group: 'output',
  }),
  strictFlag,
];

/** With --quiet, drops warnings, notes and summaries. */
export function quieten(terminal: Terminal, { quiet = false }: MessageOptions): Terminal {
  return quiet ? { ...terminal, quiet, interactive: false } : terminal;
}

/** No kpc.yaml can silence it: only -q on the command line does. */
export async function sayTaken(taken: readonly string[], command: Command, terminal: Terminal): Promise<void> {
  const quiet = command.getOptionValueSource('quiet') === 'cli';
  for (const words of taken) await say(quieten(terminal, { quiet }), `note: ${words}\n`);
}

/** With --strict, warnings become errors. Adds the place in kpc.yaml to diagnostics of its flags. */
export function makeStrict(
  diagnostics: readonly Finding[],
  { strict = false, flagPlaces }: MessageOptions,
): readonly Finding[] {
  return diagnostics.map((each) => {
    const flag = flagOfCode[each.code] ?? Object.values(each.arguments).find((value) => flagPlaces?.has(String(value)));
    return { ...(strict ? asStrict(each) : each), place: each.place ?? flagPlaces?.get(String(flag)) };
  });
}

/** For diagnostics that do not name their flag in an argument. */
const flagOfCode: { readonly [Code in Finding['code']]?: string } = {
  'bad-feature-gate': '--feature-gates',
  'bad-host-addresses': '--host-addresses',
  'bad-prune': '--prune',
  'nothing-to-check': '--check',
};

/** For a terminal; '' if none is wanted. */
export function renderSaid(diagnostics: readonly Finding[], files: ReadFiles, terminal: Terminal): string {
  const wanted = wantedFindings(diagnostics, terminal);
  if (wanted.length === 0) return '';
  return formatFindings(findingsForPeople(sayFindings(wanted)), lineReader(files), terminal.colour.err);
}

export function lineReader(files: ReadFiles): (file: string, line: number) => string {
  return (file, line) => files.get(file)?.lineAt(line) ?? '';
}

export function formatRefusal(finding: SaidFinding, terminal: Terminal): string {
  return formatFindings([finding], () => '', terminal.colour.err);
}

/** With --quiet, only errors and the parts of the input that the result lacks. */
export function wantedFindings(findings: readonly Finding[], { quiet }: Terminal): readonly Finding[] {
  if (!quiet) return findings;
  return findings.filter((each) => isError(each) || (each.code === 'left-out' && each.arguments.problem === 'all'));
}

/** Milliseconds between two updates of the line. */
const interval = 100;

/** Shows the progress of a long run, only on a terminal. */
export function showProgress(total: number, terminal: Terminal): Progress {
  if (!terminal.interactive) return noProgress;
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

/** Errors of an input without an answer, in --output's formats for programs. `looked`: as for `fail` of a call. */
export async function formatFailure(
  format: string | undefined,
  said: SaidByCommand,
  looked: readonly Snapshot[] = [],
): Promise<string> {
  if (format === undefined || format === 'text' || !said.findings.some(isError)) return '';
  const { answerOutputs, formatAnswer, refusalOf } = await import('../../say/formats/answer.ts');
  const output = answerOutputs.find((each) => each === format);
  return output === undefined ? '' : formatAnswer(output, refusalOf(said, looked), repositoryPaths());
}
