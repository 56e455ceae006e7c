import { spawn } from 'node:child_process';
import * as fs from 'node:fs/promises';
import { uptime } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { walkPath } from '../../base/held-path.ts';
import { removeTree, withFolder } from '../../base/open-folder.ts';
import { readKernelFile, readRegularFile } from '../../base/read-file.ts';
import { replaceFile } from '../../base/replace-file.ts';
import { Failure } from '../state/failure.ts';
import { hasCode, leadsNowhere, missing } from '../../base/system-errors.ts';
import { absoluteFolders } from '../../base/system-paths.ts';
import {
  formatCommand,
  type Command,
  type CommandResult,
  type ExaminedPath,
  type Host,
  type Patience,
} from './host.ts';

/** How long a tool may take before it is taken to hang, in milliseconds. */
interface ToolLimits {
  /** One that is fed what to change. The largest restore takes seconds. */
  readonly fed: number;
  /** One that only reads the node, and any other. */
  readonly unfed: number;
  /** From its end until its output is closed. */
  readonly closing: number;
}

/** When a tool that takes long is reported first, and how often after that. */
const waitingMilliseconds = 10_000;
const waitingAgainMilliseconds = 60_000;

const usualLimits: ToolLimits = { fed: 15 * 60_000, unfed: 5 * 60_000, closing: 10_000 };

/** Where distributions keep the tools; not every PATH has them. */
const toolFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

/** The folders of PATH that are absolute, and those of distributions after them. */
function toolPath(): string {
  return [...new Set([...absoluteFolders(process.env['PATH']), ...toolFolders])].join(':');
}

/**
 * What programs get of the environment. Many variables make a program load other code (LD_PRELOAD, XTABLES_LIBDIR,
 * PERL5OPT, …), so nothing else is passed on. docs/security.md has the same.
 */
function programEnvironment(): NodeJS.ProcessEnv {
  // Where systemd-notify reports how watch is.
  const { NOTIFY_SOCKET } = process.env;
  return { LC_ALL: 'C', PATH: toolPath(), ...(NOTIFY_SOCKET !== undefined && { NOTIFY_SOCKET }) };
}

function toolEnvironment(): NodeJS.ProcessEnv {
  const [name = '', value] = toolMark.split('=');
  return { ...programEnvironment(), [name]: value };
}

/** In the environment of all tools of this process. */
const toolMark = `KPC_APPLY_RUN=${crypto.randomUUID()}`;

/** The node that this process runs on. */
export const realHost: Host = {
  pid: process.pid,
  toolMark,
  user: readUser(),
  examine: (path) => examinePath(path),
  toolPath: toolPath(),
  run: (command, patience) => runTool(command, usualLimits, patience),
  startApart,
  kill: async (pid) => void (await unless(['ESRCH'], () => process.kill(pid, 'SIGKILL'))),
  readFile: (path) =>
    unless(missing, () =>
      /^\/(?:proc|sys)\//.test(path) ? readKernelFile(path) : readRegularFile(path).toString('utf8'),
    ),
  writeFile: (path, text) => fs.writeFile(path, text, { flag: 'r+' }),
  isWritable: (path) =>
    fs.access(path, fs.constants.W_OK).then(
      () => true,
      () => false,
    ),
  replaceFile: async (path, text) => {
    await makeFolder(dirname(path));
    await replaceFile(path, text, { mode: 0o600, isDurable: true });
  },
  renameFile: async (from, to) => {
    await fs.rename(from, to);
    await withFolder(dirname(to), { isLink: 'followed' }, (folder) => folder.sync());
  },
  remove: async (path) => removeTree(path),
  list: async (path) => (await unless(leadsNowhere, () => fs.readdir(path))) ?? [],
  readLink: (path) => unless([...missing, 'EINVAL'], () => fs.readlink(path)),
  sleep: (milliseconds) => sleep(milliseconds),
  now: Date.now,
  uptime: () => uptime() * 1000,
};

/**
 * Runs a tool until its output is closed. Throws a Failure for one that never gets there: what it
 * printed until then may be a part only, and what it started may hold its output open for ever.
 * Test: does not wait for ever for output that stays open, nor take what there is of it for all.
 */
export function runTool(
  command: Command,
  limits: ToolLimits = usualLimits,
  patience: Patience = {},
): Promise<CommandResult> {
  const { limit = command.stdin === undefined ? limits.unfed : limits.fed } = patience;
  return new Promise((resolve, reject) => {
    const child = spawn(command.tool, command.args, {
      env: toolEnvironment(),
      stdio: ['pipe', 'pipe', 'pipe'],
      // A process group of its own: it is ended with all that it has started, and not by what a terminal sends to ours.
      // Test: ends a tool that has had its time with all that it has started.
      detached: true,
    });
    let problem: string | undefined;
    let closing: NodeJS.Timeout | undefined;
    const giveUp = (why: string): void => {
      problem = why;
      // With all that it has started, unless that has left its process group.
      const { pid } = child;
      if (pid !== undefined) void unless(['ESRCH'], () => process.kill(-pid, 'SIGKILL'));
      expectClose();
    };
    const stopTimers = startTimers(limits, patience, limit, giveUp);
    child.on('error', (error: NodeJS.ErrnoException) => {
      stopTimers();
      if (error.code === 'ENOENT' || error.code === 'EACCES') resolve({ kind: 'missing' });
      else reject(error);
    });
    // It has not started, perhaps for want of open files, and has no pipes then: the error above says so.
    // Test: says so where no more files may be open.
    if (child.pid === undefined) return;
    const [stdout, stderr] = [gather(child.stdout), gather(child.stderr)];
    child.on('exit', expectClose);
    child.on('close', (status, signal) => {
      clearTimeout(closing);
      if (problem !== undefined) return reject(hang(command, problem));
      resolve({
        kind: 'ended',
        status: status ?? undefined,
        signal: signal ?? undefined,
        stdout: stdout(),
        stderr: stderr(),
      });
    });
    // A tool that ends before it has read everything says why on stderr; the broken pipe adds nothing to it.
    child.stdin.on('error', () => {});
    child.stdin.end(command.stdin ?? '');

    function expectClose(): void {
      stopTimers();
      closing ??= setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
        child.unref();
        reject(hang(command, problem ?? 'has ended, but a process that it started keeps its output open'));
      }, limits.closing);
    }
  });
}

/** Returns a function for the text that the stream has given so far. */
function gather(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString();
}

/** Says when a tool takes long, and gives it up when it takes too long. Gives what ends that. */
function startTimers(
  { closing }: ToolLimits,
  { onWaiting, signal }: Patience,
  limit: number,
  giveUp: (why: string) => void,
): () => void {
  const begun = performance.now();
  const timers = new Set<NodeJS.Timeout>();
  const after = (milliseconds: number, work: () => void): void => void timers.add(setTimeout(work, milliseconds));
  const report = (): void => {
    onWaiting?.(performance.now() - begun, limit);
    after(waitingAgainMilliseconds, report);
  };
  const cut = (): void => after(closing, () => giveUp('did not end after a signal'));
  after(limit, () => giveUp(`has not ended within ${limit / 1000} s`));
  after(waitingMilliseconds, report);
  if (signal?.aborted) cut();
  else signal?.addEventListener('abort', cut, { once: true });
  return () => {
    for (const timer of timers) clearTimeout(timer);
    signal?.removeEventListener('abort', cut);
  };
}

function hang(command: Command, problem: string): Failure {
  return new Failure(
    'tool-failed',
    `"${formatCommand(command)}" ${problem}`,
    'run it by hand to see what it waits for',
    command.tool,
  );
}

function readUser(): Host['user'] {
  const { SUDO_UID, SUDO_GID, PKEXEC_UID } = process.env;
  const uid = readId(SUDO_UID ?? PKEXEC_UID);
  return {
    uid: process.getuid?.() ?? -1,
    // pkexec does not say of which group; -1 is no group.
    invoker: uid === undefined ? undefined : { uid, gid: readId(SUDO_GID) ?? -1 },
  };
}

function readId(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

async function examinePath(path: string, from?: Parameters<typeof walkPath>[1]): Promise<ExaminedPath> {
  const { levels, end } = walkPath(path, from);
  const named = from ? `${from.path}/${path}` : path;
  return {
    levels,
    path: end?.path ?? named,
    examine: (name) => (end ? examinePath(name, { held: end, path: named }) : examinePath(`${named}/${name}`)),
    close: () => end?.close(),
  };
}

/** How long a process may take to say its first word: Node takes seconds to start on a busy machine. */
const firstWordMilliseconds = 60_000;

function startApart({ tool, args }: Command): Promise<void> {
  return new Promise((resolve, reject) => {
    // This very Node also where its file has been moved or replaced since it was started.
    const file = tool === process.execPath ? '/proc/self/exe' : tool;
    // In the root folder: a process that lives on keeps its folder's file system from being unmounted.
    const child = spawn(file, args, {
      argv0: tool,
      cwd: '/',
      env: programEnvironment(),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    const impatience = setTimeout(() => {
      child.kill('SIGKILL');
      end(new Error(`it printed nothing for ${firstWordMilliseconds / 1000} s`));
    }, firstWordMilliseconds);
    child.on('error', end);
    child.on('close', (status, signal) => end(new Error(said.trim() || `it ended with ${status ?? signal}`)));
    if (child.pid === undefined) return;
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString().slice(0, 1000)));
    child.stdout.once('data', () => end());

    function end(error?: Error): void {
      clearTimeout(impatience);
      child.removeAllListeners();
      child.on('error', () => {});
      if (child.pid !== undefined) for (const pipe of [child.stdout, child.stderr]) pipe.destroy();
      child.unref();
      if (error) reject(error);
      else resolve();
    }
  });
}

/** Undefined if it fails with one of these. */
async function unless<T>(codes: readonly string[], work: () => Promise<T> | T): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (codes.some((code) => hasCode(error, code))) return undefined;
    throw error;
  }
}

/** With all folders above it. Of a file system that is read-only, Node says there that the folder is missing. */
async function makeFolder(path: string): Promise<void> {
  try {
    await fs.mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    await fs.mkdir(path, { mode: 0o700 });
  }
}
