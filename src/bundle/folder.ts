import { parseJson } from '../base/bounds.ts';
import { hasCode } from '../base/system-errors.ts';
import { writeFileSync, type Dirent } from 'node:fs';
import { lstat, mkdir, open, readdir, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { realPathOf } from '../base/held-path.ts';
import { removeTree, withFolder, type OpenFolder } from '../base/open-folder.ts';
import { largestFile, readRegularFile } from '../base/read-file.ts';
import { unreadOf, UnreadableFile } from '../base/unread.ts';
import type { FolderFault, FolderProblem } from '../base/findings/calls.ts';
import { encodeChunks, type FileText } from '../base/chunks.ts';
import { bundleHead, goldenHead, networkFile } from '../base/names.ts';
import { isObject } from '../base/json/check.ts';
import type { Manifest } from './manifest.ts';
import { bundleFileNames } from './state-files.ts';
import { isGoldenFile } from './golden.ts';
import { goldenNodeFile } from './golden-rules.ts';

export const knownNames: ReadonlySet<string> = new Set(['manifest.json', ...bundleFileNames]);

export function isBundleFile(name: string): boolean {
  return knownNames.has(name);
}

/** Makes a file. Fails if the file already exists. */
type MakeFile<Text> = (path: string, text: Text, name: string) => Promise<void>;

/**
 * Replaces the content of a folder with exactly these files. Writes a new folder beside the old one and then renames, so that no reader
 * sees half a bundle. If that fails, restores the old folder. Refuses a folder that holds anything else, because `-o` may name a home
 * folder. Uses file descriptors rather than paths, because another user may put links in place of the folder.
 */
export async function replaceFolder<Text extends FileText>(
  folder: string,
  files: ReadonlyMap<string, Text>,
  makeFile: MakeFile<Text> = writeDurably,
): Promise<FolderProblem | undefined> {
  try {
    const target = await followLink(resolve(folder));
    await mkdir(dirname(target), { recursive: true });
    return await withFolder(dirname(target), { isLink: 'followed' }, async (parent) => {
      const kind = await findProblem(parent.at(basename(target)), files);
      if (kind) return { folder, ...kind };
      await replaceIn(parent, basename(target), files, makeFile);
      return undefined;
    });
  } catch (error) {
    return { kind: 'io', folder, reason: unreadOf(error, folder) };
  }
}

async function findProblem(target: string, files: ReadonlyMap<string, FileText>): Promise<FolderFault | undefined> {
  if (await isFile(target)) return { kind: 'is-a-file' };
  const present = await listEntries(target);
  const strangers = findStrangers(target, present);
  if (strangers.length > 0) return { kind: 'not-a-bundle', strangers };
  // Refuses to replace a bundle by a golden, or a golden by a bundle. A wrong flag must not change the format of a folder in git.
  if (!files.has(goldenHead) && hasFile(present, isGoldenHead)) return { kind: 'is-a-golden' };
  if (files.has(goldenHead) && hasFile(present, isBundleFile)) return { kind: 'is-no-golden' };
  return undefined;
}

async function replaceIn<Text>(
  parent: OpenFolder,
  name: string,
  files: ReadonlyMap<string, Text>,
  makeFile: MakeFile<Text>,
): Promise<void> {
  const work = parent.makeFolder(temporaryPrefix(name));
  try {
    await withFolder(parent.at(work), { isLink: 'refused' }, async (fresh) => {
      // Writes in parallel. Waits for all files even after an error, so that no file appears in a folder that is being removed.
      const made = await Promise.allSettled([...files].map(([file, text]) => makeFile(fresh.at(file), text, file)));
      for (const result of made) if (result.status === 'rejected') throw result.reason;
    });
    await swapIn(parent, work, name);
  } catch (error) {
    removeTree(parent.at(work));
    throw error;
  }
}

/** Returns the target of a link. Programs that read through either name then get the new bundle. */
async function followLink(path: string): Promise<string> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isSymbolicLink() ? realpath(path) : path;
}

function temporaryPrefix(name: string): string {
  return `.${name.slice(0, 200)}.`;
}

/** Reports whether `entry` is what a killed replaceFolder left beside the folder `name`. */
export function isRemainOf(name: string, entry: string): boolean {
  const prefix = temporaryPrefix(name);
  return entry.startsWith(prefix) && /^[A-Za-z0-9]{6}(?:\.old)?$/.test(entry.slice(prefix.length));
}

/** Lists the entries that kpc did not write. A folder with such entries is not replaced. Empty for a folder that does not exist. */
export async function listStrangers(folder: string): Promise<readonly string[]> {
  return findStrangers(folder, await listEntries(folder));
}

/** Reports whether a folder holds a golden. A folder called golden.json does not count, because a node may have that name. */
export async function holdsGolden(folder: string): Promise<boolean> {
  return hasFile(await listEntries(folder), isGoldenHead);
}

const isGoldenHead = (name: string): boolean => name === goldenHead;

function hasFile(entries: readonly Dirent[], isMeant: (name: string) => boolean): boolean {
  return entries.some((entry) => isMeant(entry.name) && !entry.isDirectory());
}

export async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === false;
}

/** Reports whether readFolder reads this file. It reads the files of a bundle, and a golden's head, which shows what the folder is. */
export function isStoredFile(name: string): boolean {
  return isBundleFile(name) || isGoldenHead(name);
}

/** The most bytes in a manifest.json. No real one is larger, because it has only a few lines for each Service. */
const largestManifest = 64 * 2 ** 20;

/** The most bytes in a bundle to apply or pack. docs/security.md says what that many bytes cost. */
export const largestBundle = 96 * 2 ** 20;

/** Reads the files of a bundle or golden. Does not follow links out of the folder. `most`: the most bytes in all files together. */
export async function readFolder(
  folder: string,
  isOwn: (name: string) => boolean = isStoredFile,
  most = Infinity,
): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(folder)).filter(isOwn).toSorted();
  let left = most;
  return new Map(
    names.map((name) => {
      const bytes = readOwnFile(folder, name, name === 'manifest.json' ? largestManifest : largestFile);
      left -= bytes.length;
      if (left < 0) throw new UnreadableFile(folder, { problem: 'too-long', of: 'bundle', most });
      return [name, bytes.toString('utf8')];
    }),
  );
}

/**
 * Reads a file of the folder. Refuses a link that leads out of the folder: it could make kpc print any file of a person who compares a
 * repository. The folder itself may be a link. Test: bundle/hostile-folders.test.ts.
 */
export function readOwnFile(folder: string, name: string, most?: number): Buffer {
  const path = join(folder, name);
  const root = realPathOf(folder);
  // Everything except a regular file is refused, even if a link leads to it.
  return readRegularFile(path, most, (found) => {
    if (found.startsWith(root.endsWith(sep) ? root : root + sep)) return;
    throw new UnreadableFile(path, { problem: 'link-outside', folder });
  });
}

/**
 * Finds entries that kpc did not write. Other programs may use the same names. Only regular files therefore count as kpc's, and some count
 * only if their content is kpc's.
 */
function findStrangers(folder: string, entries: readonly Dirent[]): readonly string[] {
  const files = new Set(entries.filter((entry) => entry.isFile()).map(({ name }) => name));
  const holds = (name: string, own: RegExp) => files.has(name) && own.test(readStart(join(folder, name)));
  const isBundle = holds(bundleHead, headOf('formatVersion'));
  const isGolden = holds(goldenHead, headOf('goldenVersion'));
  const isOwn = (name: string): boolean => {
    if (name === bundleHead) return isBundle;
    if (name === networkFile) return isBundle && holds(name, firstPrompt);
    if (isBundleFile(name) || (isGolden && [goldenHead, goldenNodeFile].includes(name))) return files.has(name);
    return isGolden && isGoldenFile(name) && holds(name, serviceHeading);
  };
  const names = entries.map(({ name }) => name);
  return names.filter((name) => !isOwn(name)).toSorted();
}

const firstPrompt = /^\$ ip(?:6?tables-save)?[ \n]/;

/** Matches a file that begins with this version. A merge-conflict marker may come first. */
function headOf(version: string): RegExp {
  return new RegExp(`^(?:<<<<<<< .*\\n)?\\{\\s*(?:<<<<<<< .*\\n *)?"${version}": ?\\d`);
}

/** Matches on any line of the file, because git may have put a conflict marker before this line. */
const serviceHeading = /^==> services\.json <==\r?$/m;

function readStart(path: string): string {
  try {
    return readRegularFile(path, largestManifest).toString('utf8');
  } catch (error) {
    if (error instanceof UnreadableFile) return '';
    throw error;
  }
}

async function listEntries(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Reports whether `next` has assumptions and would replace a bundle without assumptions, which it must not do. */
export async function holdsReal(folder: string, next: Manifest): Promise<boolean> {
  try {
    const present = parseJson(readStart(join(folder, 'manifest.json')));
    return isAssumed(next) && isObject(present) && !isAssumed(present);
  } catch {
    // The error can be ignored: the folder is missing, or replaceFolder will report what is wrong.
    return false;
  }
}

function isAssumed({ assigned, assumedEndpoints }: { readonly [K in keyof Manifest]?: unknown }): boolean {
  return [assigned, assumedEndpoints].some((list) => Array.isArray(list) && list.length > 0);
}

/** Writes a file without waiting for the disk. A golden has many files, and git can restore lost ones. */
export async function writeQuickly(path: string, text: string): Promise<void> {
  // Files are written one at a time, because too many open files would exceed the limit.
  writeFileSync(path, text, { flag: 'wx', mode: 0o644 });
}

async function writeDurably(path: string, text: FileText): Promise<void> {
  const file = await open(path, 'wx', 0o644);
  try {
    await writeFile(file, encodeChunks(text));
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Puts the new folder in place. Moves the old folder aside first, because rename cannot replace a folder that is not empty. */
async function swapIn(parent: OpenFolder, work: string, name: string): Promise<void> {
  const [target, aside] = [parent.at(name), parent.at(`${work}.old`)];
  const isOld = (await lstat(target).catch(() => undefined)) !== undefined;
  if (isOld) await rename(target, aside);
  try {
    await rename(parent.at(work), target);
  } catch (error) {
    if (isOld) await rename(aside, target);
    throw error;
  }
  removeTree(aside);
}
