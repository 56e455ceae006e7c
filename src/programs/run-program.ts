import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';
import { largestFile } from '../base/read-file.ts';
import { hasCode } from '../base/system-errors.ts';
import { shellWord } from '../base/printable.ts';
import { absoluteFolders } from '../base/system-paths.ts';

/** A program of the PATH and its arguments, which no shell sees. */
export type ProgramCall = readonly [tool: string, ...words: string[]];

/** Why a call printed nothing to go on with. */
export type ProgramProblem = 'no-program' | 'too-large' | 'too-slow' | 'failed';

/** How such a call ended. */
export interface ProgramFailure {
  readonly problem: ProgramProblem;
  /** What the program says on stderr; '' if it did not run to its end. */
  readonly said: string;
  /** All lines that it says there. */
  readonly lines: readonly string[];
  /** What it printed before it failed. */
  readonly printed: string;
}

/** What a program gets, and how much it may do. */
export interface Limits {
  /** '' also where none is given: a program cannot wait for an answer. */
  readonly input?: string;
  /** The user's own, if none is given. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** The most bytes that it may print: no more than a text can hold. */
  readonly mostBytes: number;
  /** Milliseconds, after which it is killed. */
  readonly longestRun: number;
}

/** The most characters that are shown of what a program says. */
export const mostSaid = 500;

/** Runs a program to its end. `said` has its errors as they stand, up to the first `mostLines` lines. */
export function run(
  [tool, ...words]: ProgramCall,
  { input = '', environment = process.env, mostBytes, longestRun }: Limits,
  mostLines = 3,
): Buffer | ProgramFailure {
  const { status, stdout, stderr, error } = spawnSync(tool, words, {
    input,
    // An empty PATH would be the working folder.
    env: { ...environment, PATH: absoluteFolders(environment['PATH']).join(delimiter) || '/usr/bin' },
    maxBuffer: mostBytes,
    timeout: longestRun,
    killSignal: 'SIGKILL',
    stdio: [input === '' ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  if (!error && status === 0) return stdout;
  if (error) {
    const problem = problems.find(([code]) => hasCode(error, code))?.[1] ?? 'failed';
    // More than it may print can be more than a text holds.
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

/** Milliseconds for a program of the user's: a large cluster takes a minute to list. */
export const longestRun = 5 * 60_000;
const limits = { mostBytes: largestFile, longestRun };

/** What a program of the user's prints, with the user's environment: kubectl finds its credentials there. */
export function runProgram(call: ProgramCall): string | ProgramFailure {
  const printed = run(call, limits);
  return Buffer.isBuffer(printed) ? printed.toString() : printed;
}

/** The call as a shell takes it. */
export function callWords(call: ProgramCall): string {
  return call.map(shellWord).join(' ');
}
