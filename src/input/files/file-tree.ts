// Files on the disk or in a git revision, and where their links lead.
import { existsSync, lstatSync, realpathSync, readdirSync, statSync, type Dirent } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { readNamedFile, readRegularFile } from '../../base/read-file.ts';
import { withSlashes } from '../../base/system-paths.ts';

/** The path without links; a path that leads to nothing, as it is. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** The folder with the repository that a folder is in, without links; the folder itself if there is none. */
export function findRepository(folder: string): string {
  const start = realpathSync(folder);
  for (let path = start; ; path = dirname(path)) {
    if (existsSync(join(path, '.git'))) return path;
    if (path === dirname(path)) return start;
  }
}

/** Whether a path, which may not be there yet, is in a folder once all links are followed. */
export function leadsInto(path: string, folder: string): boolean {
  const root = realpathSync(folder);
  const real = followLinks(resolve(path));
  return real === root || (real?.startsWith(root.endsWith(sep) ? root : root + sep) ?? false);
}

/** Whether a path, which may not be there yet, is `.git` of any repository or in it once all links are followed. */
function leadsIntoGit(path: string): boolean {
  return followLinks(resolve(path))?.split(sep).includes('.git') ?? false;
}

/** Whether a file is a link to something outside the repository of the folder that holds it. */
function isForeignLink(path: string): boolean {
  return isLink(path) && !leadsInto(path, findRepository(dirname(path)));
}

/** The path without links, of which the last part may be missing yet; undefined if a link leads to nothing. */
function followLinks(path: string): string | undefined {
  if (existsSync(path)) return realpathSync(path);
  if (isLink(path)) return undefined;
  const folder = path === dirname(path) ? path : followLinks(dirname(path));
  return folder && join(folder, basename(path));
}

/** A path that the system does not take, such as one that is too long, is none: the reader of it gets the error. */
export function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

/** What is wrong with a path to write to, where its links lead: it is outside a folder, or it is git's own. */
export function findStrayTarget(path: string, folder: string): 'replaces-outside' | 'replaces-git' | undefined {
  if (!leadsInto(path, folder)) return 'replaces-outside';
  return leadsIntoGit(path) ? 'replaces-git' : undefined;
}

export type TreeEntry = Pick<Dirent, 'name' | 'isDirectory' | 'isFile'>;

/** Files to read: those on the disk, or those of a git revision. Paths are what messages call the files. */
export interface FileTree {
  readonly exists: (path: string) => boolean;
  /** Throws if there is nothing. */
  readonly isFolder: (path: string) => boolean;
  /** The entries of a folder, unsorted. Throws what reading it throws. */
  readonly list: (folder: string) => readonly TreeEntry[];
  /** The bytes of a regular file of at most `most` bytes. Throws what reading it throws. */
  readonly read: (path: string, most?: number) => Buffer;
  /** Like `read`, for a path that the user named: on the disk, a shell may have put a pipe there. */
  readonly readNamed: (path: string) => Buffer;
  /** The path without links; one that leads to nothing, as it is. */
  readonly realPath: (path: string) => string;
  /** Whether a file is a link to something outside its repository. */
  readonly isForeignLink: (path: string) => boolean;
  readonly join: (folder: string, name: string) => string;
  /** Where the path is on the disk, or would be if its revision were checked out. */
  readonly locate: (path: string) => string;
  /** The path of what `locate` locates there. */
  readonly pathAt: (located: string) => string;
  /** Says which files are read next: a revision reads them at once. */
  readonly expect: (paths: readonly string[]) => void;
}

export const disk: FileTree = {
  exists: existsSync,
  isFolder: (path) => statSync(path).isDirectory(),
  list: (folder) => readdirSync(folder, { withFileTypes: true }),
  read: (path, most) => readRegularFile(path, most),
  readNamed: (path) => readNamedFile(path),
  realPath,
  isForeignLink,
  join: (folder, name) => withSlashes(join(folder, name)),
  locate: (path) => resolve(path),
  pathAt: (located) => located,
  expect: () => {},
};

/** The trees of paths that are not on the disk. */
export type Trees = ReadonlyMap<string, FileTree>;
