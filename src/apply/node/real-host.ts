import * as fs from 'node:fs/promises';
import { uptime } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { walkPath } from '../../base/held-path.ts';
import { removeTree, withFolder, replaceFile } from '../../base/open-folder.ts';
import { readKernelFile, readRegularFile } from '../../base/read-file.ts';
import { hasCode, leadsNowhere, missing } from '../../base/system-errors.ts';
import type { ExaminedPath, Host, Listing } from './host.ts';
import { mostRead, Output, Room, tooLarge } from './output.ts';
import { runTool, startApart, toolMark, toolPath, usualLimits } from './run-tool.ts';

export const realHost: Host = {
  pid: process.pid,
  toolMark,
  user: readUser(),
  examine: (path) => examinePath(path),
  toolPath: toolPath(),
  run: (command, patience) => runTool(command, usualLimits, patience),
  startApart,
  kill: async (pid) => void (await unless(['ESRCH'], () => process.kill(pid, 'SIGKILL'))),
  readFile: (path, listing) =>
    unless(missing, () => {
      if (path.startsWith('/proc/net/') || listing) return readListing(path, listing);
      return /^\/(?:proc|sys)\//.test(path) ? readKernelFile(path) : readRegularFile(path).toString('utf8');
    }),
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

/** Limit on the bytes read from a file that may be endless, even if no line is kept. */
const mostScanned = 2 ** 32;

async function readListing(path: string, { keeps, room = new Room(mostRead) }: Listing = {}): Promise<string> {
  const file = await fs.open(path);
  try {
    const output = new Output(room, keeps);
    for (let scanned = 0; ;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(1 << 16), 0, 1 << 16, null);
      if (bytesRead === 0) return output.finish();
      output.add(bytesRead < buffer.length ? Buffer.from(buffer.subarray(0, bytesRead)) : buffer);
      scanned += bytesRead;
      if (output.isCut || scanned > mostScanned) throw tooLarge({ problem: 'file', path }, room);
    }
  } finally {
    await file.close();
  }
}

function readUser(): Host['user'] {
  const { SUDO_UID, SUDO_GID, PKEXEC_UID } = process.env;
  const uid = readId(SUDO_UID ?? PKEXEC_UID);
  return {
    uid: process.getuid?.() ?? -1,
    // pkexec does not pass the group. -1 matches no group.
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

async function unless<T>(codes: readonly string[], work: () => Promise<T> | T): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (codes.some((code) => hasCode(error, code))) return undefined;
    throw error;
  }
}

/** Creates a folder and all folders above. Node reports ENOENT on a read-only file system, so a second try gets the real error. */
async function makeFolder(path: string): Promise<void> {
  try {
    await fs.mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    await fs.mkdir(path, { mode: 0o700 });
  }
}
