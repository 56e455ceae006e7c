import { existsSync, readdirSync, statSync, type Dirent } from 'node:fs';
import { join, resolve } from 'node:path';
import { readNamedFile, readRegularFile } from '../../base/read-file.ts';
import { withSlashes } from '../../base/system-paths.ts';
import { isForeignLink, realPath } from './disk-paths.ts';

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
