import { spawnSync } from 'node:child_process';
import { delimiter, basename, dirname, isAbsolute, join } from 'node:path';
import { largestFile } from '../base/read-file.ts';
import type { ProgramProblem } from '../base/unread.ts';
import { hasCode } from '../base/system-errors.ts';
import { shellWord } from '../base/printable.ts';
import { absoluteFolders } from '../base/system-paths.ts';
import type { Into } from '../base/findings/files.ts';
import { diagnose, placeAtLine, type Finding } from '../base/findings/finding.ts';
import { TextFile } from '../input/documents/text-file.ts';
import { nameOfChart } from '../input/files/list-files.ts';
import { disk } from '../input/files/file-tree.ts';

/** A program with its arguments. It is run without a shell. */
export type ProgramCall = readonly [tool: string, ...words: string[]];

export interface ProgramFailure {
  readonly problem: ProgramProblem;
  /** The program's stderr; "" if the program did not finish. */
  readonly said: string;
  readonly lines: readonly string[];
  readonly printed: string;
}

export interface Limits {
  /** The program's input. The default is "", so that a program cannot wait for an answer. */
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** The most bytes of output. At most the length of V8's longest text. */
  readonly mostBytes: number;
  /** Milliseconds until the program is killed. */
  readonly longestRun: number;
}

export const mostSaid = 500;

/** Runs a program until it ends. `said` in the result: the program's errors, up to `mostLines` lines. */
export function run(
  [tool, ...words]: ProgramCall,
  { input = '', environment = process.env, mostBytes, longestRun }: Limits,
  mostLines = 3,
): Buffer | ProgramFailure {
  const { status, stdout, stderr, error } = spawnSync(tool, words, {
    input,
    // If PATH were empty, programs would be looked up in the working folder.
    env: { ...environment, PATH: absoluteFolders(environment['PATH']).join(delimiter) || '/usr/bin' },
    maxBuffer: mostBytes,
    timeout: longestRun,
    killSignal: 'SIGKILL',
    stdio: [input === '' ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  if (!error && status === 0) return stdout;
  if (error) {
    const problem = problems.find(([code]) => hasCode(error, code))?.[1] ?? 'failed';
    // Very long output may not fit into a string.
    const printed = problem === 'too-large' ? '' : (stdout ?? '').toString();
    return { problem, said: problem === 'failed' ? error.message : '', lines: [], printed };
  }
  const lines = stderr.toString('utf8').trim().split('\n');
  const said = lines.slice(0, mostLines).join(' ').slice(0, mostSaid);
  return { problem: 'failed', said, lines, printed: stdout.toString() };
}

const problems = [
  ['ENOENT', 'no-program'],
  ['EACCES', 'no-program'],
  ['ENOBUFS', 'too-large'],
  ['ETIMEDOUT', 'too-slow'],
] as const;

/** The time limit in milliseconds for a program that the user has. Listing a large cluster takes a minute. */
export const longestRun = 5 * 60_000;
const limits = { mostBytes: largestFile, longestRun };

/** Runs a program in the user's environment, because kubectl needs the credentials in it. Returns the output. */
export function runProgram(call: ProgramCall): string | ProgramFailure {
  const printed = run(call, limits);
  return Buffer.isBuffer(printed) ? printed.toString() : printed;
}

export function callWords(call: ProgramCall): string {
  return call.map(shellWord).join(' ');
}

/**
 * Renders charts with `helm template` and kustomizations with `kubectl kustomize`. `into`: the program that reads the rendered manifests.
 * `revision`: an input in a git revision, which these programs cannot read.
 */
export function renderInputs(
  sources: readonly string[],
  values: readonly string[],
  { into, revision }: { readonly into: Into; readonly revision: string | undefined },
) {
  const files: TextFile[] = [];
  const diagnostics: Finding[] = [];
  const others: string[] = [];
  let charts = 0;
  for (const source of sources) {
    const call = findCall(source, values);
    if (!call) {
      others.push(source);
      continue;
    }
    if (call[0] === 'helm') charts++;
    const printed = runProgram(call);
    const words = callWords(call);
    if (typeof printed === 'string') files.push(new TextFile(words, printed));
    else {
      const { problem: how, said } = printed;
      const details = {
        problem: 'program',
        how,
        said,
        tool: call[0],
        pipe: 'compare' in into || into.command === undefined ? words : `${words} | ${into.command}`,
      } as const;
      diagnostics.push(diagnose('not-rendered', details, placeAtLine(source)));
    }
  }
  // If a path does not exist, that is the only fault to report.
  const isMissing = revision === undefined && others.some((source) => source !== '-' && !disk.exists(source));
  if (!isMissing && files.length + diagnostics.length === 0)
    diagnostics.push(
      diagnose(
        'not-rendered',
        revision === undefined ? { problem: 'nothing' } : { problem: 'revision', path: revision },
      ),
    );
  if (!isMissing && values.length > 0 && charts === 0)
    diagnostics.push(diagnose('not-rendered', { problem: 'idle-values' }));
  return { files, diagnostics, others };
}

function findCall(source: string, values: readonly string[]): ProgramCall | undefined {
  if (source === '-' || !disk.exists(source)) return undefined;
  const folder = disk.isFolder(source) ? source : dirname(source);
  const isMeant = (name: string): boolean =>
    disk.isFolder(source) ? disk.exists(join(source, name)) : basename(source) === name;
  // The path must look neither like an option nor like a chart in a repository. helm reads "web" as a folder only if this folder exists.
  const path = isAbsolute(folder) || folder.startsWith('.') ? folder : `./${folder}`;
  if (isMeant('Chart.yaml')) {
    const files = values.flatMap((file) => ['--values', file]);
    return ['helm', 'template', nameOfChart(folder, disk) ?? 'kpc', path, ...files];
  }
  const isKustomization = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'].some(isMeant);
  return isKustomization ? ['kubectl', 'kustomize', path] : undefined;
}
