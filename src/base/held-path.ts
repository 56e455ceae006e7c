import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statfsSync,
  statSync,
  type Stats,
} from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { hasCode, leadsNowhere } from './system-errors.ts';
import { descriptors, hasDescriptors } from './system-paths.ts';

/** O_PATH of Linux, which Node does not name: one number on all processors that Node runs on. */
const withoutEffect = 0o10000000;

/**
 * What a path led to when it was looked up, wherever the path leads by now. It is found and not opened (O_PATH): that has no effect
 * on a device, and does not wait for a pipe. So the thing can be checked before it is opened, by `path`, to be read.
 * Where there is no /proc, `path` is the path itself, and who opens it must look again at what it is.
 * Test: opens no device, whatever takes the place of a pack meanwhile.
 */
export class HeldPath {
  readonly #descriptor: number | undefined;
  readonly stats: Stats;
  /** A path of it, valid until it is closed. */
  readonly path: string;

  /** Throws the system's error. With `isLink: 'held'`, a link is held and not what it leads to; folders above it may be links. */
  constructor(path: string, isLink: 'followed' | 'held') {
    if (!hasDescriptors()) {
      this.stats = isLink === 'held' ? lstatSync(path) : statSync(path);
      this.path = path;
      return;
    }
    this.#descriptor = openSync(path, withoutEffect | (isLink === 'held' ? constants.O_NOFOLLOW : 0));
    this.stats = fstatSync(this.#descriptor);
    this.path = `${descriptors}/${this.#descriptor}`;
  }

  /** Whether the kernel makes up the content of this file: to read it may wait, take messages away or act on a device. */
  isMadeByKernel(): boolean {
    return this.#descriptor !== undefined && kernelFileSystems.has(statfsSync(this.path).type);
  }

  /** Where it is now, wherever links led to it. */
  realPath(): string {
    return this.#descriptor === undefined ? realpathSync(this.path) : readlinkSync(this.path);
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }
}

/** Holds what a path leads to; a link is followed from folder to folder. Throws the system's error. */
export function holdPath(path: string): HeldPath {
  const held = new HeldPath(path, 'held');
  if (!held.stats.isSymbolicLink()) return held;
  const isDescriptor = held.isMadeByKernel();
  held.close();
  // Such a link leads to an open file itself, not to its name.
  if (isDescriptor) return new HeldPath(path, 'followed');
  return walkPath(path).end ?? new HeldPath(path, 'followed');
}

/** Types of file systems whose files are on no disk and in no memory, as statfs(2) numbers them. */
const kernelFileSystems: ReadonlySet<number> = new Set([
  0x9fa0, // proc
  0x62656572, // sysfs
  0x64626720, // debugfs
  0x74726163, // tracefs
  0x73636673, // securityfs
  0x62656570, // configfs
  0x27e0eb, // cgroup
  0x63677270, // cgroup2
  0x6165676c, // pstore
  0xde5e81e4, // efivarfs
  0xcafe4a11, // bpf
  0x6e736673, // nsfs
  0x19800202, // mqueue
]);

/** A file, folder or link on the way to a path, and who may change it. */
export interface PathLevel {
  readonly path: string;
  readonly owner: number;
  readonly group: number;
  /** Permission bits. */
  readonly mode: number;
  /** Whether it is a folder above the path, or a link on the way. */
  readonly isParent: boolean;
  /** Whether it is on a file system that cannot be written to from here. */
  readonly isReadOnly: boolean;
}

/** The levels of a path, the end first, and what is there. */
export interface WalkedPath {
  readonly levels: readonly PathLevel[];
  /** Undefined if the path leads to nothing. */
  readonly end: HeldPath | undefined;
}

/** As many links as Linux follows in one path. */
const mostLinks = 40;

/**
 * Follows a path, from folder to folder by their descriptors, links too: who may replace one of the levels decides what is at the
 * end. A relative path begins in `from`, of which no level is given, or in the folder of the process. The caller closes the end.
 */
export function walkPath(path: string, from?: { readonly held: HeldPath; readonly path: string }): WalkedPath {
  const levels = new Map<string, PathLevel>();
  let folder = new HeldPath(from?.held.path ?? '/', 'followed');
  let folderName = from?.path ?? '/';
  // As the kernel follows it: after a link, ".." is the folder above what the link leads to.
  let names = (from || isAbsolute(path) ? path : `${resolve()}/${path}`).split('/');
  for (let links = 0; names.length > 0 && links <= mostLinks;) {
    const [name = '', ...rest] = names;
    const at = `${folder.path}/${name || '.'}`;
    const held = holdLevel(at);
    if (!held) break;
    const isLink = held.stats.isSymbolicLink();
    const levelName = join(folderName, name);
    // Anything else is refused when it is read.
    if (isLink || held.stats.isFile() || held.stats.isDirectory()) {
      const { uid: owner, gid: group, mode } = held.stats;
      levels.set(levelName, {
        path: levelName,
        owner,
        group,
        // No user can write to a link; its owner can replace it in a folder like /tmp.
        mode: isLink ? 0o755 : mode & 0o7777,
        isParent: isLink || rest.length > 0,
        isReadOnly: isOnReadOnly((isLink ? folder : held).path),
      });
    }
    let next = held;
    names = rest;
    if (isLink) {
      held.close();
      const target = targetOf(at);
      links++;
      names = [...(target?.split('/') ?? [name]), ...rest];
      if (target === undefined || !isAbsolute(target)) continue;
      next = new HeldPath('/', 'followed');
    }
    folder.close();
    folder = next;
    folderName = isLink ? '/' : levelName;
  }
  if (names.length > 0) folder.close();
  return { levels: [...levels.values()].toReversed(), end: names.length > 0 ? undefined : folder };
}

function holdLevel(path: string): HeldPath | undefined {
  try {
    return new HeldPath(path, 'held');
  } catch (error) {
    if (leadsNowhere.some((code) => hasCode(error, code))) return undefined;
    throw error;
  }
}

/** What a link leads to; undefined if something else has taken its place. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (hasCode(error, 'EINVAL') || hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function isOnReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return hasCode(error, 'EROFS');
  }
}

/** Where a path leads to, by the thing and not by its name. */
export function realPathOf(path: string): string {
  const held = holdPath(path);
  try {
    return held.realPath();
  } finally {
    held.close();
  }
}
