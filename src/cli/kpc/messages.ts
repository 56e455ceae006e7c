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
  readonly file?: readonly string[];
  readonly flagPlaces?: FlagPlaces;
  readonly taken?: readonly string[];
}

type FlagPlaces = ReadonlyMap<string, Finding['place']>;

export const messageFlags: readonly Flag[] = [
  flagRow('on', '-q, --quiet', 'print the result and errors only: no warnings, notes or summaries', {
    group: 'output',
  }),
  strictFlag,
];

export function quieten(terminal: Terminal, { quiet = false }: MessageOptions): Terminal {
  return quiet ? { ...terminal, quiet, interactive: false } : terminal;
}

/** Prints a note about the flags that come from a kpc.yaml. A -q on the command line silences the note; a kpc.yaml cannot. */
export async function sayTaken(taken: readonly string[], command: Command, terminal: Terminal): Promise<void> {
  const quiet = command.getOptionValueSource('quiet') === 'cli';
  for (const words of taken) await say(quieten(terminal, { quiet }), `note: ${words}\n`);
}

/** With --strict, turns warnings into errors. Adds the place in kpc.yaml to findings about flags that are set there. */
export function makeStrict(
  diagnostics: readonly Finding[],
  { strict = false, flagPlaces }: MessageOptions,
): readonly Finding[] {
  return diagnostics.map((each) => {
    const flag = flagOfCode[each.code] ?? Object.values(each.arguments).find((value) => flagPlaces?.has(String(value)));
    return { ...(strict ? asStrict(each) : each), place: each.place ?? flagPlaces?.get(String(flag)) };
  });
}

/** For codes whose findings do not name a flag in an argument: the flag that the code is about. */
const flagOfCode: { readonly [Code in Finding['code']]?: string } = {
  'bad-feature-gate': '--feature-gates',
  'bad-host-addresses': '--host-addresses',
  'bad-prune': '--prune',
  'nothing-to-check': '--check',
};

/** Formats findings for a terminal. Returns "" if wantedFindings selects none. */
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

/** Selects the findings to print. With --quiet, these are the errors and the note on what the result lacks. */
export function wantedFindings(findings: readonly Finding[], { quiet }: Terminal): readonly Finding[] {
  if (!quiet) return findings;
  return findings.filter((each) => isError(each) || (each.code === 'left-out' && each.arguments.problem === 'all'));
}

/** The milliseconds between two updates of the status line. */
const interval = 100;

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

/** Formats the errors of a call that has no answer, in a format for programs. `looked` means the same as in Call.fail. */
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
