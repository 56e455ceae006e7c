import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { bundleHead, goldenHead, kpcYaml } from '../../base/names.ts';
import { UnreadableFile } from '../../base/read-file.ts';
import type { FolderOrigin } from '../documents/text-file.ts';
import { disk, type FileTree, type TreeEntry } from './file-tree.ts';
import { IgnorePatterns } from './ignore-patterns.ts';

/** What a folder's files must be called to be read. */
const manifestName = /\.(?:ya?ml|json)$/;

/** Names patterns of files to leave out, as .gitignore does. */
export const ignoreFile = '.kpcignore';

/** A file with a list of patterns is no data. */
const largestIgnoreFile = 2 ** 16;

/** A file below a folder, and what is around it there. */
export interface ListedFile {
  readonly path: string;
  readonly origin: FolderOrigin;
}

/** The manifests below a folder. */
export interface FolderListing {
  /** Sorted by path. */
  readonly files: readonly ListedFile[];
  /** The files and folders that a .kpcignore leaves out. */
  readonly ignored: readonly string[];
}

/**
 * The files of a folder and the folders in it that are called as manifests are, except for those that a pattern leaves out: one
 * of `exclude`, or of a .kpcignore in the folder, in one below it, or in one between it and the working folder. Throws what
 * reading a folder throws.
 */
export function listFolder(folder: string, exclude: readonly string[], tree: FileTree = disk): FolderListing {
  const files: ListedFile[] = [];
  const ignored: string[] = [];
  const isExcluded = excludedBy(exclude, tree.locate(folder));
  /** `own` is the chart whose templates the folder is in, and `parent` the one whose charts/: rendering it renders them, too. */
  const visit = (path: string, own: Chart | undefined, parent: Chart | undefined, inherited: readonly Rule[]): void => {
    const entries = tree.list(path);
    const names = entries.map(({ name }) => name);
    const rules = [...inherited, ...rulesOf(path, names, tree)];
    if (path !== folder && isCompiled(path, entries, tree)) return;
    const chart = names.includes('Chart.yaml') ? (parent ?? { path, name: nameOfChart(path, tree) }) : undefined;
    for (const entry of entries) {
      const child = tree.join(path, entry.name);
      const located = tree.locate(child);
      const isFolder = entry.isDirectory();
      if (!isFolder && (!manifestName.test(entry.name) || entry.name === kpcYaml)) continue;
      if (isExcluded(located, isFolder)) continue;
      if (matches(rules, located, isFolder)) ignored.push(isFolder ? child + sep : child);
      else if (isFolder) {
        const isPart = (name: string): boolean => chart !== undefined && entry.name === name;
        visit(child, isPart('templates') ? chart : own, isPart('charts') ? chart : parent, rules);
      } else files.push({ path: child, origin: { folder, chart: own?.path, ...(own && { chartName: own.name }) } });
    }
  };
  const rulesAbove = above(tree.locate(folder)).flatMap((located) => {
    const path = tree.pathAt(located);
    return rulesOf(
      path,
      tree.list(path).map(({ name }) => name),
      tree,
    );
  });
  visit(folder, undefined, undefined, rulesAbove);
  return { files: files.sort((a, b) => (a.path < b.path ? -1 : 1)), ignored: ignored.sort() };
}

/** Says of absolute paths below a folder whether a pattern leaves them out: one that counts from the working folder, or from that one. */
export function excludedBy(patterns: readonly string[], folder: string): (path: string, isFolder: boolean) => boolean {
  const bases = patterns.length === 0 ? [] : [resolve('.'), folder];
  const rules = bases.map((base) => rule(base, patterns, () => '--exclude'));
  return (path, isFolder) => matches(rules, path, isFolder);
}

/** A Helm chart, by its folder and by what it calls itself. */
interface Chart {
  readonly path: string;
  readonly name: string | undefined;
}

/** Whether a folder is a bundle or a golden: kpc wrote it, and no object is in it. */
function isCompiled(path: string, entries: readonly TreeEntry[], tree: FileTree): boolean {
  if (entries.some(({ name }) => name === goldenHead)) return true;
  if (!entries.some((entry) => entry.name === bundleHead && entry.isFile())) return false;
  return /^\{\s*"formatVersion":/.test(tree.read(tree.join(path, bundleHead)).subarray(0, 200).toString('utf8'));
}

/** The folders from the working folder down to the one above this, if it lies below that. */
function above(folder: string): readonly string[] {
  const top = resolve('.');
  const below = relative(top, folder);
  if (below === '' || below.startsWith('..') || isAbsolute(below)) return [];
  const folders: string[] = [];
  for (let path = dirname(folder); ; path = dirname(path)) {
    folders.unshift(path);
    if (path === top) return folders;
  }
}

/** Patterns, and the folder that they count from. */
interface Rule {
  readonly base: string;
  readonly patterns: IgnorePatterns;
}

/** How many patterns one list may have: each file is compared with all of them. */
const mostPatterns = 1000;

/** A list of patterns that would take too long to compare names with. */
export class BadPattern extends Error {}

function rule(base: string, patterns: readonly string[], place: (index: number) => string): Rule {
  if (patterns.length > mostPatterns)
    throw new BadPattern(`${place(mostPatterns)}: more than ${mostPatterns} patterns`);
  return { base, patterns: new IgnorePatterns(patterns) };
}

function rulesOf(folder: string, names: readonly string[], tree: FileTree): readonly Rule[] {
  if (!names.includes(ignoreFile)) return [];
  const path = tree.join(folder, ignoreFile);
  // A folder of that name holds no patterns.
  if (tree.isFolder(path)) return [];
  if (tree.isForeignLink(path))
    throw new UnreadableFile(path, `its ${ignoreFile} is a link to something outside the repository`);
  const lines = tree.read(path, largestIgnoreFile).toString('utf8').split(/\r?\n/);
  return [rule(tree.locate(folder), lines, (index) => `${path}:${index + 1}`)];
}

/** `path` is absolute. As in git: what a file deeper down says counts before what one further up says. */
function matches(rules: readonly Rule[], path: string, isFolder: boolean): boolean {
  let isMatch = false;
  for (const { base, patterns } of rules) {
    const below = relative(base, path).split(sep).join('/');
    if (below === '' || below.startsWith('../') || isAbsolute(below)) continue;
    const verdict = patterns.test(below, isFolder);
    if (verdict !== undefined) isMatch = verdict === 'ignored';
  }
  return isMatch;
}

/**
 * Whether a file of a folder is really in it; the folder's path without links is `root`. Who puts a link to somewhere
 * else into a repository could have that read, and its lines printed, by those who compile it.
 */
export function isInside(path: string, root: string, tree: FileTree): boolean {
  const real = tree.realPath(path);
  return real === path || real.startsWith(root.endsWith(sep) ? root : root + sep);
}

/** The name in a chart's Chart.yaml; undefined if that cannot be read, or a shell would not take it as it is. */
export function nameOfChart(chart: string, tree: FileTree): string | undefined {
  try {
    const [, name] = /^name:[ \t]*["']?([a-z0-9][a-z0-9.-]{0,99})["']?[ \t]*(?:#.*)?$/m.exec(
      tree.read(tree.join(chart, 'Chart.yaml'), largestIgnoreFile).toString('utf8'),
    ) ?? [undefined, undefined];
    return name;
  } catch {
    return undefined;
  }
}
