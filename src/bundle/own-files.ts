import { lstatSync, realpathSync, type Dirent } from 'node:fs';
import { join, sep } from 'node:path';
import { readRegularFile, UnreadableFile } from '../base/read-file.ts';
import { goldenHead } from '../base/file-names.ts';
import { goldenNodeFile, isGoldenFile } from './golden-names.ts';

/**
 * The bytes of a file of a folder. A link that leads out of the folder is refused: who writes one into a repository could have
 * any file of those who compare it printed. The folder itself may be a link.
 */
export function readOwnFile(folder: string, name: string, most?: number): Buffer {
  const path = join(folder, name);
  // What is no file at all is refused with its kind, be it behind a link or not.
  const bytes = readRegularFile(path, most);
  if (!lstatSync(path).isSymbolicLink()) return bytes;
  const root = realpathSync(folder);
  if (realpathSync(path).startsWith(root.endsWith(sep) ? root : root + sep)) return bytes;
  throw new UnreadableFile(path, 'it is a link to something outside the folder');
}

/**
 * The names of a folder's entries that kpc did not write. Only regular files count as kpc's, and the head of a bundle or golden,
 * or a Service's file of a golden, only with what kpc writes into it: another program may have files of the same names.
 */
export function findStrangers(
  folder: string,
  entries: readonly Dirent[],
  isBundleFile: (name: string) => boolean,
): readonly string[] {
  const files = new Set(entries.filter((entry) => entry.isFile()).map(({ name }) => name));
  const holds = (name: string, isOwn: (text: string) => boolean) =>
    files.has(name) && isOwn(readStart(join(folder, name)));
  const isGolden = holds(goldenHead, (text) => hasField(text, 'goldenVersion'));
  const isOwn = (name: string): boolean => {
    if (!files.has(name)) return false;
    if (name === 'manifest.json') return holds(name, (text) => hasField(text, 'formatVersion'));
    if (isBundleFile(name)) return true;
    if (!isGolden || !isGoldenFile(name)) return false;
    return name === goldenHead || name === goldenNodeFile || holds(name, isServiceFile);
  };
  return entries
    .map(({ name }) => name)
    .filter((name) => !isOwn(name))
    .toSorted();
}

/** A manifest or a file of a golden has no more. What has is not kpc's. */
const largestOwnFile = 64 * 2 ** 20;

function readStart(path: string): string {
  try {
    return readRegularFile(path, largestOwnFile).toString('utf8');
  } catch (error) {
    if (error instanceof UnreadableFile) return '';
    throw error;
  }
}

/** Whether kpc wrote a JSON file with that field. A merge that git could not do leaves a text that is no JSON any more. */
function hasField(text: string, field: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && Object.hasOwn(value, field);
  } catch {
    return new RegExp(`^ {2}"${field}": \\d+,?\\r?$`, 'm').test(text);
  }
}

/** The heading is not always in the first line: git marks what it could not merge. An empty file is no loss. */
function isServiceFile(text: string): boolean {
  return text === '' || /^==> services\.json <==\r?$/m.test(text);
}
