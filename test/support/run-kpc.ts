import { spawn } from 'node:child_process';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { realHost } from '../../src/apply/node/real-host.ts';
import { main as kpcApplyMain } from '../../src/cli/kpc-apply/main.ts';
import { main as kpcMain } from '../../src/cli/kpc/main.ts';
import type { Terminal } from '../../src/cli/shared/terminal.ts';
import { checkPrinted } from './printed-json.ts';

export const projectFolder = fileURLToPath(new URL('../..', import.meta.url));

/** The built program. `npm test` builds it before the tests run. */
export const kpcProgram = fileURLToPath(new URL('../../dist/kpc.js', import.meta.url));

const kpcApplyProgram = fileURLToPath(new URL('../../dist/kpc-apply.js', import.meta.url));

export interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A piece of output to stdout (1) or stderr (2). */
interface Written {
  readonly stream: 1 | 2;
  readonly text: string;
}

export interface ServedRun {
  readonly status: number;
  readonly written: readonly Written[];
}

export interface RunOptions {
  readonly cwd?: string;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs kpc from its sources, in this process, so that it needs no build and vitest knows which tests depend on a file in src. With `env`,
 * or with --jobs, whose threads load the program's file, runs the built program. Tests that need a separate process (for signals, closed
 * streams, /dev/stdin or memory) call spawnKpc. Checks printed JSON against its schema.
 */
export async function runKpc(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const run =
    options.env !== undefined || args.includes('--jobs')
      ? await spawnKpc(args, options)
      : await callInTurn((terminal) => kpcMain(args, terminal), options);
  checkPrinted('kpc', args, run.stdout);
  return run;
}

export async function runKpcApply(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const run =
    options.env !== undefined
      ? await spawnKpcApply(args, options)
      : await callInTurn((terminal) => kpcApplyMain(args, { terminal, host: realHost }), options);
  checkPrinted('kpc-apply', args, run.stdout);
  return run;
}

export function spawnKpc(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return runProgram(process.execPath, [kpcProgram, ...args], options);
}

function spawnKpcApply(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return runProgram(process.execPath, [kpcApplyProgram, ...args], options);
}

/** The last call. Calls run one at a time, because the working folder belongs to the process. */
let lastCall: Promise<unknown> = Promise.resolve();

function callInTurn(main: (terminal: Terminal) => Promise<number>, options: RunOptions): Promise<Run> {
  const call = lastCall.then(() => callMain(main, options));
  lastCall = call.catch(() => undefined);
  return call;
}

/** Runs kpc in this process with a folder at the start of PATH. Returns the output in the order in which it was written. */
export async function runKpcAmong(
  folder: string,
  args: readonly string[],
  options: Pick<RunOptions, 'cwd' | 'stdin'>,
): Promise<ServedRun> {
  const written: Written[] = [];
  const { status } = await callInTurn(async (terminal) => {
    const keep = (stream: Written['stream']) => async (text: string) => void written.push({ stream, text });
    const before = process.env['PATH'];
    process.env['PATH'] = [folder, before].join(delimiter);
    try {
      return await kpcMain(args, { ...terminal, out: keep(1), err: keep(2) });
    } finally {
      process.env['PATH'] = before;
    }
  }, options);
  return { status: status ?? 1, written };
}

async function callMain(main: (terminal: Terminal) => Promise<number>, options: RunOptions): Promise<Run> {
  let stdout = '';
  let stderr = '';
  const terminal: Terminal = {
    out: async (text) => void (stdout += text),
    err: async (text) => void (stderr += text),
    status: async () => {},
    readStdin: async () => Buffer.from(options.stdin ?? ''),
    colour: { out: false, err: false },
    interactive: false,
  };
  const before = process.cwd();
  process.chdir(options.cwd ?? projectFolder);
  try {
    return { status: await main(terminal), stdout, stderr };
  } finally {
    process.chdir(before);
  }
}

/** Runs any program, without a terminal and without the caller's colour settings. */
export function runProgram(program: string, args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const { NO_COLOR: _, FORCE_COLOR: __, ...inherited } = process.env;
  const child = spawn(program, args, { cwd: options.cwd ?? projectFolder, env: { ...inherited, ...options.env } });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  // Ignore a broken pipe, which a program causes if it ends without reading its input.
  child.stdin.on('error', () => {});
  child.stdin.end(options.stdin ?? '');
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, stdout, stderr }));
  });
}
