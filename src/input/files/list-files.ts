import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { bundleHead, goldenHead, kpcYaml } from '../../base/names.ts';
import { UnreadableFile } from '../../base/unread.ts';
import type { FolderOrigin } from '../documents/text-file.ts';
import { disk, type FileTree, type TreeEntry } from './file-tree.ts';

const manifestName = /\.(?:ya?ml|json)$/;

export const ignoreFile = '.kpcignore';

/** A larger file is not a list of patterns. */
const largestIgnoreFile = 2 ** 16;

export interface ListedFile {
  readonly path: string;
  readonly origin: FolderOrigin;
}

export interface FolderListing {
  /** Sorted by path. */
  readonly files: readonly ListedFile[];
  readonly ignored: readonly string[];
}

/**
 * Lists the manifests in a folder and its subfolders, without the files that `exclude` or a .kpcignore excludes. A .kpcignore may be in the
 * folder, below it, or between it and the working folder. Throws if a folder cannot be read.
 */
export function listFolder(folder: string, exclude: readonly string[], tree: FileTree = disk): FolderListing {
  const files: ListedFile[] = [];
  const ignored: string[] = [];
  const isExcluded = excludedBy(exclude, tree.locate(folder));
  const visit = (
    path: string,
    own: Chart | undefined,
    parent: Chart | undefined,
    inherited: readonly IgnoreRule[],
  ): void => {
    const entries = tree.list(path);
    const names = entries.map(({ name }) => name);
    const rules = [...inherited, ...ignoreRulesOf(path, names, tree)];
    if (path !== folder && isCompiled(path, entries, tree)) return;
    const chart = names.includes('Chart.yaml') ? (parent ?? { path, name: nameOfChart(path, tree) }) : undefined;
    for (const entry of entries) {
      const child = tree.join(path, entry.name);
      const located = tree.locate(child);
      const isFolder = entry.isDirectory();
      if (!isFolder && (!manifestName.test(entry.name) || entry.name === kpcYaml)) continue;
      if (isExcluded(located, isFolder)) continue;
      if (isIgnored(rules, located, isFolder)) ignored.push(isFolder ? child + sep : child);
      else if (isFolder) {
        const isPart = (name: string): boolean => chart !== undefined && entry.name === name;
        visit(child, isPart('templates') ? chart : own, isPart('charts') ? chart : parent, rules);
      } else files.push({ path: child, origin: { folder, chart: own?.path, ...(own && { chartName: own.name }) } });
    }
  };
  const rulesAbove = above(tree.locate(folder)).flatMap((located) => {
    const path = tree.pathAt(located);
    return ignoreRulesOf(
      path,
      tree.list(path).map(({ name }) => name),
      tree,
    );
  });
  visit(folder, undefined, undefined, rulesAbove);
  return { files: files.sort((a, b) => (a.path < b.path ? -1 : 1)), ignored: ignored.sort() };
}

function excludedBy(patterns: readonly string[], folder: string): (path: string, isFolder: boolean) => boolean {
  const bases = patterns.length === 0 ? [] : [resolve('.'), folder];
  const rules = bases.map((base) => ignoreRule(base, patterns, () => '--exclude'));
  return (path, isFolder) => isIgnored(rules, path, isFolder);
}

interface Chart {
  readonly path: string;
  readonly name: string | undefined;
}

/** Reports whether a folder is a bundle or a golden. kpc wrote these folders, and they contain no objects. */
function isCompiled(path: string, entries: readonly TreeEntry[], tree: FileTree): boolean {
  if (entries.some(({ name }) => name === goldenHead)) return true;
  if (!entries.some((entry) => entry.name === bundleHead && entry.isFile())) return false;
  return /^\{\s*"formatVersion":/.test(tree.read(tree.join(path, bundleHead)).subarray(0, 200).toString('utf8'));
}

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

interface IgnoreRule {
  readonly base: string;
  readonly patterns: IgnorePatterns;
}

/** The limit keeps matching fast, because each file is compared with all patterns. */
const mostPatterns = 1000;

function ignoreRule(base: string, patterns: readonly string[], place: (index: number) => string): IgnoreRule {
  if (patterns.length > mostPatterns)
    throw new UnreadableFile(place(mostPatterns), { problem: 'too-long', of: 'patterns', most: mostPatterns });
  return { base, patterns: new IgnorePatterns(patterns) };
}

function ignoreRulesOf(folder: string, names: readonly string[], tree: FileTree): readonly IgnoreRule[] {
  if (!names.includes(ignoreFile)) return [];
  const path = tree.join(folder, ignoreFile);
  if (tree.isFolder(path)) return [];
  if (tree.isForeignLink(path)) throw new UnreadableFile(path, { problem: 'link-outside' });
  const lines = tree.read(path, largestIgnoreFile).toString('utf8').split(/\r?\n/);
  return [ignoreRule(tree.locate(folder), lines, (index) => `${path}:${index + 1}`)];
}

/** `path` is absolute. As in git, patterns in deeper folders override those above. */
function isIgnored(rules: readonly IgnoreRule[], path: string, isFolder: boolean): boolean {
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
 * Reports whether a file is really in the folder `root`, a resolved path. Otherwise a link could make kpc read and print any file. In a
 * revision, links lead only to its own files.
 */
export function isInside(path: string, root: string, tree: FileTree): boolean {
  const real = tree.realPath(path);
  return real === path || isBelow(real, root) || (tree !== disk && tree.exists(path));
}

/** Reports whether one path is below the other. Both must be resolved. */
export function isBelow(real: string, root: string): boolean {
  return real.startsWith(root.endsWith(sep) ? root : root + sep);
}

/** Returns the name in Chart.yaml; undefined if unreadable or unsafe in a shell. */
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

export type IgnoreDecision = 'ignored' | 'unignored' | undefined;

/** Matches a sequence of items. An undefined part matches any number of items. */
type Glob<Item> = readonly (((item: Item) => boolean) | undefined)[];

interface Pattern {
  readonly isNegated: boolean;
  readonly isForFolders: boolean;
  readonly names: Glob<string>;
}

/** Patterns as in .gitignore, ignoring case. Uses no regular expressions, so that the steps are bounded by pattern and name. */
export class IgnorePatterns {
  readonly #patterns: readonly Pattern[];

  constructor(lines: readonly string[]) {
    this.#patterns = lines.flatMap((line) => readPattern(line.toLowerCase()) ?? []);
  }

  /** `path` has slashes and is relative to the patterns' folder. Nothing in an ignored folder can be unignored. */
  test(path: string, isFolder: boolean): IgnoreDecision {
    const names = path.toLowerCase().split('/');
    for (let depth = 1; depth < names.length; depth++) {
      if (this.#judge(names.slice(0, depth), true) === 'ignored') return 'ignored';
    }
    return this.#judge(names, isFolder);
  }

  #judge(path: readonly string[], isFolder: boolean): IgnoreDecision {
    const found = this.#patterns.findLast(
      ({ isForFolders, names }) => (isFolder || !isForFolders) && fitsGlob(names, path),
    );
    return found && (found.isNegated ? 'unignored' : 'ignored');
  }
}

function readPattern(line: string): Pattern | undefined {
  const isNegated = line.startsWith('!');
  // Trailing blanks do not count, except after a backslash.
  let end = line.length;
  while (line[end - 1] === ' ' && line[end - 2] !== '\\') end--;
  const text = line.slice(isNegated ? 1 : 0, end);
  if (text === '' || line.startsWith('#')) return undefined;
  const isForFolders = text.endsWith('/');
  const path = isForFolders ? text.slice(0, -1) : text;
  const parts = path.replace(/^\//, '').split('/');
  // A pattern without a slash matches at any depth. "a/**" matches the content of the folder, but not the folder itself.
  const deep = path.includes('/') ? parts : ['**', ...parts];
  const whole = deep.at(-1) === '**' ? [...deep, '*'] : deep;
  return { isNegated, isForFolders, names: whole.map((part) => (part === '**' ? undefined : readNamePattern(part))) };
}

/** Parses the pattern for one name: characters (some escaped), "?", "*", and classes such as "[!a-z_]". */
function readNamePattern(pattern: string): (name: string) => boolean {
  const tokens = pattern.matchAll(/\[([!^]?)(\]?[^\]]*)\]|\\?(.)/gs);
  const glob = Array.from(tokens, ([token, negated = '', members, char]) => {
    if (token === '*') return undefined;
    if (token === '?') return () => true;
    if (members === undefined) return (other: string) => other === char;
    const ranges = [...members.matchAll(/\\?(.)(?:-(.))?/gs)];
    return (other: string) =>
      ranges.some(([, first = '', last = first]) => first <= other && other <= last) === (negated === '');
  });
  return (name) => fitsGlob(glob, [...name]);
}

/** Matches items greedily. Backtracking to the last wildcard is enough. */
function fitsGlob<Item>(glob: Glob<Item>, items: readonly Item[]): boolean {
  let [at, item, wildcard, resume] = [0, 0, -1, 0];
  while (item < items.length) {
    const part = glob[at];
    if (at < glob.length && part === undefined) {
      wildcard = at++;
      resume = item;
    } else if (part?.(items[item] as Item)) {
      at++;
      item++;
    } else if (wildcard >= 0) {
      at = wildcard + 1;
      item = ++resume;
    } else return false;
  }
  return glob.slice(at).every((part) => part === undefined);
}
