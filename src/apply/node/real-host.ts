import * as fs from 'node:fs/promises';
import { uptime } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeTree, withFolder } from '../../base/open-folder.ts';
import { readKernelFile, readRegularFile } from '../../base/read-file.ts';
import { replaceFile } from '../../base/replace-file.ts';
import { hasCode } from '../../base/system-errors.ts';
import type { Host, Listing, PathLevel } from './host.ts';
import { mostRead, Output, Room, tooLarge } from './output.ts';
import { runTool, startApart, toolMark, toolPath, usualLimits } from './run-tool.ts';

/** The node that this process runs on. */
export const realHost: Host = {
  pid: process.pid,
  toolMark,
  user: readUser(),
  examine: examinePath,
  toolPath: toolPath(),
  run: (command, patience) => runTool(command, usualLimits, patience),
  startApart,
  kill: async (pid) => void (await unless(['ESRCH'], () => process.kill(pid, 'SIGKILL'))),
  readFile: (path, listing) =>
    unless(missing, () => {
      if (path.startsWith('/proc/net/')) return readListing(path, listing);
      return /^\/(?:proc|sys)\//.test(path) ? readKernelFile(path) : readRegularFile(path).toString('utf8');
    }),
  writeFile: (path, text) => fs.writeFile(path, text, { flag: 'r+' }),
  isWritable: async (path) => (await whyNotWritable(path)) === undefined,
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
  readLink: (path) => fs.readlink(path).catch(() => undefined),
  sleep: (milliseconds) => sleep(milliseconds),
  now: Date.now,
  uptime: () => uptime() * 1000,
};

/** Bytes: of a file that goes on for ever, nothing may be kept. */
const mostScanned = 2 ** 32;

/** Reads a file whose length is that of what others do. Throws a Failure for one that has no room. */
async function readListing(path: string, { keeps, room = new Room(mostRead) }: Listing = {}): Promise<string> {
  const file = await fs.open(path);
  try {
    const output = new Output(room, keeps);
    for (let scanned = 0; ;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(1 << 16), 0, 1 << 16, null);
      if (bytesRead === 0) return output.finish();
      output.add(bytesRead < buffer.length ? Buffer.from(buffer.subarray(0, bytesRead)) : buffer);
      scanned += bytesRead;
      if (output.isCut || scanned > mostScanned) throw tooLarge(path);
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
    // pkexec does not say of which group; -1 is no group.
    invoker: uid === undefined ? undefined : { uid, gid: readId(SUDO_GID) ?? -1 },
  };
}

function readId(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/** As many links as Linux follows in one path. */
const mostLinks = 40;

/** What the path leads through, links too: who may replace one of them decides what is read. The end comes first. */
async function examinePath(path: string): Promise<readonly PathLevel[]> {
  const levels = new Map<string, PathLevel>();
  let folder = '/';
  // As the kernel follows it: after a link, ".." is the folder above what the link leads to.
  let names = (isAbsolute(path) ? path : `${process.cwd()}/${path}`).split('/');
  let links = 0;
  while (names.length > 0 && links <= mostLinks) {
    const [name = '', ...rest] = names;
    const level = join(folder, name);
    const found = await unless(leadsNowhere, () => fs.lstat(level));
    if (!found) break;
    const isLink = found.isSymbolicLink();
    if (isLink) {
      const target = await fs.readlink(level);
      if (isAbsolute(target)) folder = '/';
      names = [...target.split('/'), ...rest];
      links++;
    } else {
      folder = level;
      names = rest;
    }
    // Anything else is refused when it is read.
    if (!isLink && !found.isFile() && !found.isDirectory()) continue;
    levels.set(level, {
      path: level,
      owner: found.uid,
      group: found.gid,
      // No user can write to a link; its owner can replace it in a folder like /tmp.
      mode: isLink ? 0o755 : found.mode & 0o7777,
      isParent: isLink || rest.length > 0,
      isReadOnly: hasCode(await whyNotWritable(isLink ? dirname(level) : level), 'EROFS'),
    });
  }
  return [...levels.values()].toReversed();
}

/** ESRCH: a process whose /proc files were being read has ended. */
const missing = ['ENOENT', 'ENOTDIR', 'ESRCH'];

/** A link that leads back to itself, or a name that is too long, leads nowhere; to read it says so. */
const leadsNowhere = [...missing, 'ELOOP', 'ENAMETOOLONG'];

/** Undefined if it fails with one of these. */
async function unless<T>(codes: readonly string[], work: () => Promise<T> | T): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (codes.some((code) => hasCode(error, code))) return undefined;
    throw error;
  }
}

function whyNotWritable(path: string): Promise<unknown> {
  return fs.access(path, fs.constants.W_OK).catch((error: unknown) => error);
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
