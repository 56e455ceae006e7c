// Reads files on disk or in a git revision, and resolves their links.
import { existsSync, lstatSync, realpathSync, readdirSync, statSync, type Dirent } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { readNamedFile, readRegularFile } from '../../base/read-file.ts';
import { withSlashes } from '../../base/system-paths.ts';

/** Resolves links. Returns the path unchanged if nothing exists there. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

export function findRepository(folder: string): string {
  const start = realpathSync(folder);
  for (let path = start; ; path = dirname(path)) {
    if (existsSync(join(path, '.git'))) return path;
    if (path === dirname(path)) return start;
  }
}

/** Reports whether a path is in a folder after links are resolved. The path need not exist. */
export function leadsInto(path: string, folder: string): boolean {
  const root = realpathSync(folder);
  const real = followLinks(resolve(path));
  return real === root || (real?.startsWith(root.endsWith(sep) ? root : root + sep) ?? false);
}

function leadsIntoGit(path: string): boolean {
  return followLinks(resolve(path))?.split(sep).includes('.git') ?? false;
}

function isForeignLink(path: string): boolean {
  return isLink(path) && !leadsInto(path, findRepository(dirname(path)));
}

/** Resolves links. The last part of the path need not exist. Undefined for a dangling link. */
function followLinks(path: string): string | undefined {
  if (existsSync(path)) return realpathSync(path);
  if (isLink(path)) return undefined;
  const folder = path === dirname(path) ? path : followLinks(dirname(path));
  return folder && join(folder, basename(path));
}

/** Returns false if the system refuses the path, for example because it is too long. Reading the path then throws the error. */
export function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

/** Returns why a path must not be written to: its links lead out of the folder, or into git's own files. */
export function findStrayTarget(path: string, folder: string): 'replaces-outside' | 'replaces-git' | undefined {
  if (!leadsInto(path, folder)) return 'replaces-outside';
  return leadsIntoGit(path) ? 'replaces-git' : undefined;
}

export type TreeEntry = Pick<Dirent, 'name' | 'isDirectory' | 'isFile'>;

/** Files on disk or in a git revision, under the names that messages use. */
export interface FileTree {
  readonly exists: (path: string) => boolean;
  readonly isFolder: (path: string) => boolean;
  readonly list: (folder: string) => readonly TreeEntry[];
  /** Calls `check` with the real path of the file before reading it. */
  readonly read: (path: string, most?: number, check?: (found: string) => void) => Buffer;
  /** Like `read`, for a path that the user named; on disk, it may be a shell's pipe. */
  readonly readNamed: (path: string, most?: number) => Buffer;
  readonly realPath: (path: string) => string;
  readonly isForeignLink: (path: string) => boolean;
  readonly join: (folder: string, name: string) => string;
  /** Returns the path on disk, as if the revision were checked out. */
  readonly locate: (path: string) => string;
  readonly pathAt: (located: string) => string;
  /** Announces the files to be read next, so that a revision can read them in one go. */
  readonly expect: (paths: readonly string[]) => void;
}

export const disk: FileTree = {
  exists: existsSync,
  isFolder: (path) => statSync(path).isDirectory(),
  list: (folder) => readdirSync(folder, { withFileTypes: true }),
  read: readRegularFile,
  readNamed: readNamedFile,
  realPath,
  isForeignLink,
  join: (folder, name) => withSlashes(join(folder, name)),
  locate: (path) => resolve(path),
  pathAt: (located) => located,
  expect: () => {},
};

export type Trees = ReadonlyMap<string, FileTree>;
