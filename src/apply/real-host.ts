import { spawn } from 'node:child_process';
import { access, constants, mkdir, open, readFile, readdir, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { uptime } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command, CommandResult, Host } from './host.ts';

/** How long a tool may take before it is taken to hang. The largest restore takes seconds. */
const toolTimeoutMilliseconds = 15 * 60_000;

/** Where distributions keep the tools; not everybody's PATH has them. */
const toolFolders = '/usr/local/sbin:/usr/sbin:/sbin';

/** The node that this process runs on. */
export const realHost: Host = {
  pid: process.pid,
  run: runTool,
  readFile: readFileIfThere,
  writeFile: (path, text) => writeFile(path, text),
  isWritable: (path) =>
    access(path, constants.W_OK).then(
      () => true,
      () => false,
    ),
  replaceFile,
  renameFile: async (from, to) => {
    await rename(from, to);
    await syncFolder(dirname(to));
  },
  remove: (path) => rm(path, { recursive: true, force: true }),
  list: async (path) => (await unlessMissing(readdir(path))) ?? [],
  readLink: (path) => readlink(path).catch(() => undefined),
  sleep: (milliseconds) => sleep(milliseconds),
  now: Date.now,
  uptime: () => uptime() * 1000,
};

function runTool(command: Command): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command.tool, command.args, {
      env: { ...process.env, LC_ALL: 'C', PATH: `${process.env['PATH'] ?? ''}:${toolFolders}` },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: toolTimeoutMilliseconds,
      killSignal: 'SIGKILL',
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'EACCES') resolve({ kind: 'missing' });
      else reject(error);
    });
    child.on('close', (status, signal) =>
      resolve({
        kind: 'ended',
        status: status ?? undefined,
        signal: signal ?? undefined,
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      }),
    );
    // A tool that ends before it has read everything says why on stderr; the broken pipe adds nothing to it.
    child.stdin.on('error', () => {});
    child.stdin.end(command.stdin ?? '');
  });
}

function readFileIfThere(path: string): Promise<string | undefined> {
  return unlessMissing(readFile(path, 'utf8'));
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // ESRCH: a process whose /proc files were being read has ended.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ESRCH') return undefined;
    throw error;
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
