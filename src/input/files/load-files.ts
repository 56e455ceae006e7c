import { describeError } from '../../base/system-errors.ts';
import { isUtf8 } from 'node:buffer';
import { existsSync, statSync } from 'node:fs';
import { describePacked } from '../../base/odd-texts.ts';
import { readNamedFile, readRegularFile, UnreadableFile } from '../../base/read-file.ts';
import { diagnose, placeAtLine, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { FileProblem } from '../../diagnostics/files.ts';
import { BadPattern, ignoreFile, isInside, isLink, type ListedFile, listFolder, realPath } from './list-files.ts';
import { describeConflict, TextFile, type FolderOrigin } from '../documents/text-file.ts';

/** Files that could be read, and what is wrong with the others. */
export interface LoadedFiles {
  readonly files: readonly TextFile[];
  readonly diagnostics: readonly Diagnostic[];
  /** What is wrong with files that are not named themselves, but found in folders. */
  readonly unreadable?: readonly Diagnostic[] | undefined;
}

/** What was read from stdin, for the source '-'. */
export type Stdin = string | Uint8Array;

/**
 * Reads files, folders (the *.yaml, *.yml and *.json below them, sorted, except for those that `exclude` or a .kpcignore leaves
 * out) and '-' for stdin. A file that is named twice, also through a link, is read once.
 */
export function loadFiles(
  sources: readonly string[],
  stdin: Stdin | undefined,
  exclude: readonly string[] = [],
): LoadedFiles {
  const files = new Map<string, TextFile>();
  const diagnostics: Diagnostic[] = [];
  const unreadable: Diagnostic[] = [];
  const outside: ListedFile[] = [];
  for (const source of sources) {
    for (const { path, origin } of listFiles(source, exclude, { diagnostics, outside })) {
      const key = path === '-' ? path : realPath(path);
      if (files.has(key)) continue;
      // Only what is named itself may be what a shell hands over in a file's place.
      const loaded = origin ? loadAs(path, () => readRegularFile(path), origin) : loadFile(path, stdin);
      if (loaded instanceof TextFile) files.set(key, loaded);
      else (origin ? unreadable : diagnostics).push(loaded);
    }
  }
  for (const { path, origin } of outside) {
    // What is named itself, too, has been read.
    if (!files.has(realPath(path)))
      unreadable.push(fileError(path, { problem: 'link-outside', folder: origin.folder }));
  }
  return { files: [...files.values()], diagnostics, unreadable };
}

/** Reads one file as text, or says why it cannot be read. */
export function loadFile(path: string, stdin?: Stdin): TextFile | Diagnostic {
  return loadAs(path, () => (path === '-' ? (stdin ?? '') : readNamedFile(path)));
}

function loadAs(path: string, read: () => Stdin, origin?: FolderOrigin): TextFile | Diagnostic {
  try {
    const file = decodeFile(path, read(), origin);
    return (file instanceof TextFile ? describeConflict(path, file.text) : undefined) ?? file;
  } catch (error) {
    return fileError(path, findMistake(path) ?? explainSystemError(path, error));
  }
}

/** What is meant by a name that is no file's: kpc never opens a connection, and leaves patterns to the shell. */
function findMistake(path: string): FileProblem | undefined {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return { problem: 'url', path };
  return /[*?[\]{}]/.test(path) && !existsSync(path) ? { problem: 'pattern' } : undefined;
}

/** Lists what to read of a source: itself, or the files of a folder; `outside` gets links to something outside it. */
function listFiles(
  source: string,
  exclude: readonly string[],
  { diagnostics, outside }: { readonly diagnostics: Diagnostic[]; readonly outside: ListedFile[] },
): readonly (Pick<ListedFile, 'path'> & Partial<ListedFile>)[] {
  if (source === '-') return [{ path: source }];
  try {
    if (!statSync(source).isDirectory()) return [{ path: source }];
    const { files, ignored } = listFolder(source, exclude);
    if (files.length === 0) diagnostics.push(diagnose('empty-file', { isFolder: true }, placeAtLine(source)));
    if (ignored.length > 0) diagnostics.push(diagnose('ignored-files', { by: ignoreFile, files: ignored }));
    const root = realPath(source);
    const inside: ListedFile[] = [];
    for (const file of files) (isInside(file.path, root) ? inside : outside).push(file);
    return inside;
  } catch (error) {
    diagnostics.push(fileError(source, findMistake(source) ?? explainSystemError(source, error)));
    return [];
  }
}

/** The text of a file's bytes: UTF-8, with or without a byte order mark. */
function decodeFile(name: string, bytes: Stdin, origin: FolderOrigin | undefined): TextFile | Diagnostic {
  if (typeof bytes === 'string') return new TextFile(name, bytes.replace(/^\uFEFF/, ''), origin);
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    return fileError(name, { problem: 'no-text', what: 'UTF-16' });
  }
  const packed = describePacked(bytes);
  if (packed !== undefined) return fileError(name, { problem: 'no-text', what: packed });
  if (bytes.includes(0)) return fileError(name, { problem: 'no-text', what: 'binary' });
  if (!isUtf8(bytes)) return fileError(name, { problem: 'no-text', what: 'not UTF-8 text' });
  return new TextFile(name, new TextDecoder().decode(bytes), origin);
}

function fileError(name: string, details: FileProblem): Diagnostic {
  return diagnose('unreadable-file', details, placeAtLine(name));
}

function explainSystemError(path: string, error: unknown): FileProblem {
  if (error instanceof UnreadableFile) return { problem: 'system', reason: error.reason };
  if (error instanceof BadPattern) return { problem: 'system', reason: error.message };
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return { problem: isLink(path) ? 'broken-link' : 'missing' };
  return { problem: 'system', reason: `cannot be read: ${describeError(error)}` };
}
