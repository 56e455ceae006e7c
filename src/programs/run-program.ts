import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';
import { largestFile } from '../base/read-file.ts';
import { hasCode } from '../base/system-errors.ts';
import { shellWord } from '../base/printable.ts';
import { absoluteFolders } from '../base/system-paths.ts';

/** No shell is involved. */
export type ProgramCall = readonly [tool: string, ...words: string[]];

export type ProgramProblem = 'no-program' | 'too-large' | 'too-slow' | 'failed';

export interface ProgramFailure {
  readonly problem: ProgramProblem;
  /** The program's stderr; '' if it did not finish. */
  readonly said: string;
  readonly lines: readonly string[];
  /** Its output before it failed. */
  readonly printed: string;
}

export interface Limits {
  /** '' by default: a program cannot wait for an answer. */
  readonly input?: string;
  /** By default the user's own. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Most bytes it may print, at most V8's longest text. */
  readonly mostBytes: number;
  /** Milliseconds after which it is killed. */
  readonly longestRun: number;
}

export const mostSaid = 500;

/** Runs a program to its end. `said` has its errors, up to `mostLines` lines. */
export function run(
  [tool, ...words]: ProgramCall,
  { input = '', environment = process.env, mostBytes, longestRun }: Limits,
  mostLines = 3,
): Buffer | ProgramFailure {
  const { status, stdout, stderr, error } = spawnSync(tool, words, {
    input,
    // An empty PATH would mean the working folder.
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

/** Milliseconds for a user's program: listing a large cluster takes a minute. */
export const longestRun = 5 * 60_000;
const limits = { mostBytes: largestFile, longestRun };

/** The output of a user's program in the user's environment, where kubectl finds its credentials. */
export function runProgram(call: ProgramCall): string | ProgramFailure {
  const printed = run(call, limits);
  return Buffer.isBuffer(printed) ? printed.toString() : printed;
}

/** As shell words. */
export function callWords(call: ProgramCall): string {
  return call.map(shellWord).join(' ');
}
