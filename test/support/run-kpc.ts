import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Terminal } from '../../src/cli/terminal.ts';

/** The project's folder. */
export const projectFolder = fileURLToPath(new URL('../..', import.meta.url));

/** The built program: `npm test` builds it before the tests run. */
export const kpcProgram = fileURLToPath(new URL('../../dist/kpc.js', import.meta.url));

/** What a run of a program left behind. */
export interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the built kpc as a process of its own. */
export function runKpc(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return runProgram(process.execPath, [kpcProgram, ...args], options);
}

/** Runs the built kpc-apply as a process of its own. */
export function runKpcApply(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return runProgram(process.execPath, [kpcProgram.replace(/kpc\.js$/, 'kpc-apply.js'), ...args], options);
}

/**
 * Calls the built kpc in this process, for the many runs whose process would cost more than their work. The working
 * folder belongs to the process, so two of these must not run at once.
 */
export async function callKpc(args: readonly string[], cwd: string): Promise<Run> {
  const { main } = (await import(kpcProgram)) as {
    readonly main: (argv: readonly string[], terminal: Terminal) => Promise<number>;
  };
  let stdout = '';
  let stderr = '';
  const terminal: Terminal = {
    out: async (text) => void (stdout += text),
    err: async (text) => void (stderr += text),
    status: async () => {},
    readStdin: async () => '',
    colour: { out: false, err: false },
    interactive: false,
  };
  const before = process.cwd();
  process.chdir(cwd);
  try {
    return { status: await main(args, terminal), stdout, stderr };
  } finally {
    process.chdir(before);
  }
}

/** Runs any program, without a terminal and with nothing of the caller's colour settings. */
export function runProgram(program: string, args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const { NO_COLOR: _, FORCE_COLOR: __, ...inherited } = process.env;
  const child = spawn(program, args, { cwd: options.cwd ?? projectFolder, env: { ...inherited, ...options.env } });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  // A program that ends without having read its input breaks the pipe, which is its right.
  child.stdin.on('error', () => {});
  child.stdin.end(options.stdin ?? '');
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, stdout, stderr }));
  });
}
