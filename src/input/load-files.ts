import { isUtf8 } from 'node:buffer';
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { join, sep } from 'node:path';
import { describePacked } from '../base/decode-text.ts';
import { readNamedFile, readRegularFile, UnreadableFile } from '../base/read-file.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { Place } from '../kernel/origin.ts';
import { TextFile } from './text-file.ts';

/** Files that could be read, and what is wrong with the others. */
export interface LoadedFiles {
  readonly files: readonly TextFile[];
  readonly diagnostics: readonly Diagnostic[];
}

/** What was read from stdin, for the source '-'. */
export type Stdin = string | Uint8Array;

/** What a folder's files must be called to be read. */
const manifestName = /\.(?:ya?ml|json)$/;

/**
 * Reads files, folders (the *.yaml, *.yml and *.json below them, sorted) and '-' for stdin. A file that is named twice,
 * be it through a link, is read once.
 */
export function loadFiles(sources: readonly string[], stdin: Stdin | undefined): LoadedFiles {
  const files = new Map<string, TextFile>();
  const diagnostics: Diagnostic[] = [];
  for (const source of sources) {
    for (const path of listFiles(source, diagnostics)) {
      const key = path === '-' ? path : realPath(path);
      if (files.has(key)) continue;
      // Only what is named itself may be what a shell hands over in a file's place.
      const loaded = path === source ? loadFile(path, stdin) : loadAs(path, () => readRegularFile(path));
      if (loaded instanceof TextFile) files.set(key, loaded);
      else diagnostics.push(loaded);
    }
  }
  return { files: [...files.values()], diagnostics };
}

/** Reads one file as text, or says why it cannot be read. */
export function loadFile(path: string, stdin?: Stdin): TextFile | Diagnostic {
  return loadAs(path, () => (path === '-' ? (stdin ?? '') : readNamedFile(path)));
}

function loadAs(path: string, read: () => Stdin): TextFile | Diagnostic {
  try {
    return decodeFile(path, read());
  } catch (error) {
    return fileError(path, describeSystemError(error));
  }
}

function listFiles(source: string, diagnostics: Diagnostic[]): string[] {
  if (source === '-') return [source];
  try {
    if (!statSync(source).isDirectory()) return [source];
    const names = readdirSync(source, { recursive: true, withFileTypes: true })
      .filter((entry) => manifestName.test(entry.name) && !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
    if (names.length === 0) {
      const text = 'the folder holds no files named *.yaml, *.yml or *.json';
      diagnostics.push({ severity: 'warning', code: 'empty-folder', text, place: startOf(source) });
    }
    const root = realPath(source);
    return names.filter((name) => {
      const inside = isInside(name, root);
      if (!inside) {
        diagnostics.push(fileError(name, `a link to something outside ${source}: name that file or folder with -f`));
      }
      return inside;
    });
  } catch (error) {
    diagnostics.push(fileError(source, describeSystemError(error)));
    return [];
  }
}

/**
 * Whether a file of a folder is none but the folder's own, whose path without links is `root`. Who puts a link to somewhere
 * else into a repository could have that read, and its lines printed, by those who compile it.
 */
function isInside(path: string, root: string): boolean {
  const real = realPath(path);
  return real === path || real.startsWith(root.endsWith(sep) ? root : root + sep);
}

/** The path without links; a path that leads to nothing, as it is. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** The text of a file's bytes: UTF-8, with or without a byte order mark. */
function decodeFile(name: string, bytes: Stdin): TextFile | Diagnostic {
  if (typeof bytes === 'string') return new TextFile(name, bytes.replace(/^\uFEFF/, ''));
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    return fileError(name, 'the file is UTF-16: save it as UTF-8');
  }
  const packed = describePacked(bytes);
  if (packed !== undefined) return fileError(name, `the file is ${packed}`);
  if (bytes.includes(0)) return fileError(name, 'the file is binary: kpc reads YAML and JSON');
  if (!isUtf8(bytes)) return fileError(name, 'the file is not UTF-8 text: kpc reads YAML and JSON');
  return new TextFile(name, new TextDecoder().decode(bytes));
}

function fileError(name: string, text: string): Diagnostic {
  return { severity: 'error', code: 'unreadable-file', text, place: startOf(name) };
}

function startOf(file: string): Place {
  return { file, locate: () => ({ file, line: 1, column: 1 }) };
}

function describeSystemError(error: unknown): string {
  if (error instanceof UnreadableFile) return error.reason;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
      return 'there is no such file or folder';
    case 'EACCES':
    case 'EPERM':
      return 'no permission to read it';
    case 'ERR_STRING_TOO_LONG':
    case 'ERR_FS_FILE_TOO_LARGE':
      return 'the file is too large: split it into several';
    default:
      return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}
