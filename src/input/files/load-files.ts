import { isUtf8 } from 'node:buffer';
import { existsSync } from 'node:fs';
import { hashHex } from '#hash';
import { bytesAlone, TextBudget } from '../../base/bounds.ts';
import type { FileProblem } from '../../base/findings/files.ts';
import { diagnose, type Finding, placeAtLine } from '../../base/findings/finding.ts';
import { folderOf } from '../../base/names.ts';
import { blankContainerLogs, findPacked } from '../../base/odd-texts.ts';
import { UnreadableFile, unreadOf } from '../../base/unread.ts';
import {
  diagnoseMergeConflict,
  type FolderOrigin,
  type LoadedFiles,
  type NamedFile,
  TextFile,
} from '../documents/text-file.ts';
import { disk, type FileTree, isLink, type Trees } from './file-tree.ts';
import { pathWordsOf } from './kustomized-fields.ts';
import { ignoreFile, isBelow, isInside, type ListedFile, listFolder } from './list-files.ts';

// Digests of the files of any kind that kustomizations use for their changes.

/** Limits in bytes, for one file and for all files of an input. */
const limits = { one: 2 ** 26, all: 2 ** 29 };

interface FileInTree {
  readonly file: TextFile;
  readonly tree: FileTree;
}

/**
 * Computes digests of files in or below the folders of kustomizations, because kustomize reads no others. Reads no file twice, and no file
 * in `loaded`, which is keyed by real path.
 */
export function readNamedFiles(
  files: readonly FileInTree[],
  loaded: ReadonlyMap<string, TextFile>,
  most = limits,
): readonly NamedFile[] {
  const digests = new Map<string, string | undefined>();
  const named = new Map<string, NamedFile>();
  let left = most.all;
  const digestOf = (path: string, root: string, tree: FileTree): string | undefined => {
    try {
      const bytes = tree.read(path, Math.min(most.one, left), (found) => {
        if (!isBelow(found, root)) throw new UnreadableFile(path, { problem: 'link-outside' });
      });
      left -= bytes.length;
      // Hash the decoded text, as is done for a manifest.
      return hashHex(bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1'));
    } catch {
      return undefined;
    }
  };
  for (const { file, tree } of files) {
    const folder = folderOf(file.name);
    const paths = pathWordsOf(file).map((word) => tree.join(folder, word));
    if (paths.length === 0) continue;
    const root = tree.realPath(folder);
    const own = paths.flatMap((path) => {
      if (!tree.exists(path) || tree.isFolder(path)) return [];
      const real = tree.realPath(path);
      return isBelow(real, root) ? [{ path, real }] : [];
    });
    const unread = own.filter(({ real }) => !digests.has(real) && !loaded.has(real));
    const next = unread.map(({ path }) => path);
    if (left > 0) expectReadable(next, tree);
    for (const { path, real } of own) {
      const known = loaded.get(real);
      if (!digests.has(real)) digests.set(real, known ? hashHex(known.text) : digestOf(path, root, tree));
      named.set(path, { name: path, digest: digests.get(real) });
    }
  }
  return [...named.values()];
}

/** Announces the files. If they cannot be read in one go, each is read by itself. */
function expectReadable(paths: readonly string[], tree: FileTree): void {
  try {
    tree.expect(paths);
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
  }
}

export type Stdin = string | Uint8Array;

/**
 * Reads files, folders and '-' for stdin. In a folder and its subfolders, reads *.yaml, *.yml and *.json in order, without the files that
 * `exclude` or a .kpcignore excludes. A file that is named twice, even through a link, is read once, and so is a file of a folder that is
 * named at another revision too. `trees` holds sources that are not on disk.
 */
export function loadFiles(
  sources: readonly string[],
  stdin: Stdin | undefined,
  exclude: readonly string[] = [],
  trees: Trees = new Map(),
): LoadedFiles {
  const files = new Map<string, TextFile>();
  const inFolders: FileInTree[] = [];
  const located = new Set<string>();
  const diagnostics: Finding[] = [];
  const unreadable: Finding[] = [];
  const outside: (ListedFile & { readonly tree: FileTree })[] = [];
  const budget = new TextBudget(bytesAlone);
  for (const source of sources) {
    const tree = trees.get(source) ?? disk;
    for (const { path, origin } of listFiles(source, exclude, tree, { diagnostics, outside })) {
      const key = path === '-' ? path : tree.realPath(path);
      if (files.has(key) || located.has(tree.locate(key))) continue;
      const loaded = origin ? loadAs(path, () => tree.read(path), origin) : loadFile(path, stdin, tree);
      const exceeded = loaded instanceof TextFile ? budget.add(loaded.text) : undefined;
      if (exceeded)
        return {
          files: [],
          diagnostics: [...diagnostics, diagnose('too-long', exceeded, placeAtLine(path))],
          unreadable,
        };
      if (loaded instanceof TextFile) {
        files.set(key, loaded);
        if (!origin) continue;
        inFolders.push({ file: loaded, tree });
        located.add(tree.locate(key));
      } else (origin ? unreadable : diagnostics).push(loaded);
    }
  }
  for (const { path, origin, tree } of outside) {
    // Do not report a file that was also named directly, because it is already read.
    if (!files.has(tree.realPath(path)))
      unreadable.push(fileError(path, { problem: 'link-outside', folder: origin.folder }));
  }
  return { files: [...files.values()], diagnostics, unreadable, named: readNamedFiles(inFolders, files) };
}

/** `most`: the most bytes of a file that is no pipe. */
export function loadFile(path: string, stdin?: Stdin, tree: FileTree = disk, most?: number): TextFile | Finding {
  return loadAs(path, () => (path === '-' ? (stdin ?? '') : tree.readNamed(path, most)));
}

function loadAs(path: string, read: () => Stdin, origin?: FolderOrigin): TextFile | Finding {
  try {
    const file = decodeFile(path, read(), origin);
    return (file instanceof TextFile ? diagnoseMergeConflict(path, file.text) : undefined) ?? file;
  } catch (error) {
    return fileError(path, findPathMistake(path) ?? explainSystemError(path, error));
  }
}

/** Recognises a URL, pattern or list given as a file. kpc never opens a connection, and leaves patterns to the shell. */
export function findPathMistake(path: string): FileProblem | undefined {
  if (path === '') return { problem: 'empty-path' };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return { problem: 'url', path };
  return /[*?[\]{},]/.test(path) && !existsSync(path) ? { problem: 'pattern' } : undefined;
}

/** Returns why nothing can be read at a path. `word`: the path as it is written. */
export function findUnreadable(word: string, path: string, tree: FileTree): FileProblem | undefined {
  try {
    tree.isFolder(path);
    return findPathMistake(word);
  } catch (error) {
    return findPathMistake(word) ?? explainSystemError(path, error);
  }
}

function listFiles(
  source: string,
  exclude: readonly string[],
  tree: FileTree,
  {
    diagnostics,
    outside,
  }: { readonly diagnostics: Finding[]; readonly outside: (ListedFile & { readonly tree: FileTree })[] },
): readonly (Pick<ListedFile, 'path'> & Partial<ListedFile>)[] {
  if (source === '-') return [{ path: source }];
  try {
    if (!tree.isFolder(source)) return [{ path: source }];
    const { files, ignored } = listFolder(source, exclude, tree);
    if (files.length === 0) diagnostics.push(diagnose('empty-file', { isFolder: true }, placeAtLine(source)));
    if (ignored.length > 0) diagnostics.push(diagnose('ignored-files', { by: ignoreFile, files: ignored }));
    tree.expect(files.map(({ path }) => path));
    const root = tree.realPath(source);
    const inside: ListedFile[] = [];
    for (const file of files) {
      if (isInside(file.path, root, tree)) inside.push(file);
      else outside.push({ ...file, tree });
    }
    return inside;
  } catch (error) {
    diagnostics.push(fileError(source, findPathMistake(source) ?? explainSystemError(source, error)));
    return [];
  }
}

function decodeFile(name: string, bytes: Stdin, origin: FolderOrigin | undefined): TextFile | Finding {
  if (typeof bytes === 'string') return new TextFile(name, blankContainerLogs(bytes), origin);
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    return fileError(name, { problem: 'no-text', what: 'UTF-16' });
  }
  const by = findPacked(bytes);
  if (by) return fileError(name, { problem: 'unread', reason: { problem: 'packed', by } });
  if (bytes.includes(0)) return fileError(name, { problem: 'no-text', what: 'binary' });
  if (!isUtf8(bytes)) return fileError(name, { problem: 'no-text', what: 'not UTF-8 text' });
  return new TextFile(name, blankContainerLogs(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)), origin);
}

function fileError(name: string, details: FileProblem): Finding {
  return diagnose('unreadable-file', details, placeAtLine(name === '' ? '""' : name));
}

function explainSystemError(path: string, error: unknown): FileProblem {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return { problem: isLink(path) ? 'broken-link' : 'missing' };
  return { problem: 'unread', reason: unreadOf(error, path) };
}
