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

/** Linux's O_PATH, which Node does not name. It is the same number on all processors that Node supports. */
const withoutEffect = 0o10000000;

/**
 * The file that a path leads to, held without opening it (O_PATH). Holding has no effect on a device and never waits for a pipe, so the
 * file can be checked before it is opened by `path`. Without /proc, `path` is the path itself and must be checked again after opening.
 * Test: base/read-file.test.ts.
 */
export class HeldPath {
  readonly #descriptor: number | undefined;
  readonly stats: Stats;
  readonly path: string;

  /** Throws the system's error. With 'held', holds a link itself instead of its target; folders above it may be links. */
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

  /** Reports whether the kernel makes the file's content, so that reading may wait, consume messages or act on a device. */
  isMadeByKernel(): boolean {
    return this.#descriptor !== undefined && kernelFileSystems.has(statfsSync(this.path).type);
  }

  realPath(): string {
    return this.#descriptor === undefined ? realpathSync(this.path) : readlinkSync(this.path);
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }
}

/** Holds the file that a path leads to, through links. Throws the system's error. */
export function holdPath(path: string): HeldPath {
  const held = new HeldPath(path, 'held');
  if (!held.stats.isSymbolicLink()) return held;
  const isDescriptor = held.isMadeByKernel();
  held.close();
  // Follow a link that the kernel makes, such as one in /proc/self/fd, because it leads to the open file itself, not to a name.
  if (isDescriptor) return new HeldPath(path, 'followed');
  return walkPath(path).end ?? new HeldPath(path, 'followed');
}

/** File systems without disk or memory behind their files, by their number in statfs(2). */
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

export interface PathLevel {
  readonly path: string;
  readonly owner: number;
  readonly group: number;
  readonly mode: number;
  /** Whether this is a folder above the path, or a link. */
  readonly isParent: boolean;
  /** Whether the file system is read-only here. */
  readonly isReadOnly: boolean;
}

export interface WalkedPath {
  readonly levels: readonly PathLevel[];
  readonly end: HeldPath | undefined;
}

const mostLinks = 40;

/**
 * Follows a path by descriptors, folder by folder and link by link, because anyone who can replace one level decides which file the path
 * leads to. A relative path starts in `from` (for which no level is returned) or in the working folder. The caller closes `end`.
 */
export function walkPath(path: string, from?: { readonly held: HeldPath; readonly path: string }): WalkedPath {
  const levels = new Map<string, PathLevel>();
  let folder = new HeldPath(from?.held.path ?? '/', 'followed');
  let folderName = from?.path ?? '/';
  // As in the kernel, ".." after a link is the folder above the link's target.
  let names = (from || isAbsolute(path) ? path : `${resolve()}/${path}`).split('/');
  for (let links = 0; names.length > 0 && links <= mostLinks;) {
    const [name = '', ...rest] = names;
    const at = `${folder.path}/${name || '.'}`;
    const held = holdLevel(at);
    if (!held) break;
    const isLink = held.stats.isSymbolicLink();
    const levelName = join(folderName, name);
    // Skip files of other kinds, because reading them is refused later.
    if (isLink || held.stats.isFile() || held.stats.isDirectory()) {
      const { uid: owner, gid: group, mode } = held.stats;
      levels.set(levelName, {
        path: levelName,
        owner,
        group,
        // Nobody can write to a link, but its owner can replace it, even in a folder like /tmp.
        mode: isLink ? 0o755 : mode & 0o7777,
        isParent: isLink || rest.length > 0,
        isReadOnly: isOnReadOnly((isLink ? folder : held).path),
      });
    }
    let next = held;
    names = rest;
    if (isLink) {
      held.close();
      const target = readLinkTarget(at);
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

function readLinkTarget(path: string): string | undefined {
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

export function realPathOf(path: string): string {
  const held = holdPath(path);
  try {
    return held.realPath();
  } finally {
    held.close();
  }
}
