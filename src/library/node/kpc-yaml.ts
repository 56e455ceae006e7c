import { findingCodes } from '../../base/findings/codes.ts';
import { Tally, diagnose, faultOf, placeAtLine, type Finding } from '../../base/findings/finding.ts';
import { foundOf } from '../../base/findings/fields.ts';
import { isObject } from '../../base/json/check.ts';
import { printable } from '../../base/printable.ts';
import { findNearest, kpcYaml } from '../../base/names.ts';
import { isWindows, withSlashes } from '../../base/system-paths.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import { revisionOf } from '../../git/revision-paths.ts';
import { findUnreadable, loadFile } from '../../input/files/load-files.ts';
import { readDocuments } from '../../input/documents/read-documents.ts';
import {
  findRepository,
  findStrayTarget,
  leadsInto,
  realPath,
  disk,
  type FileTree,
} from '../../input/files/file-tree.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import type { Ignore } from '../../ask/lint/ignores.ts';
import { kpcYamlKey, type Flag } from '../../settings/flag.ts';
import { inOneLine } from '../../say/words/words.ts';
import { Refusal } from '../refusal.ts';
import type { ConfiguredCommand } from './kpc-yaml-schema.ts';
import { hasRightValue, valueOfWords, type GivenFlag, type Ignored, type Refuse } from './kpc-yaml-values.ts';
import { existsSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';

export interface KpcYaml {
  readonly file: TextFile;
  readonly diagnostics: readonly Finding[];
  /** The places of the flags' values, keyed by the flag's long name. */
  readonly places: ReadonlyMap<string, Finding['place']>;
  readonly values: ReadonlyMap<string, unknown>;
  readonly ignores: readonly Ignore[];
}

const nothing = { places: new Map(), values: new Map(), ignores: [] } as const;

export interface ConfiguredCall extends ConfiguredCommand {
  readonly all: readonly Flag[];
  readonly has: (flag: Flag) => boolean;
  readonly hasSides: boolean;
}

/** Reports whether a common key does not apply. -f would add to both sides of a diff; lint and migrate always check all nodes. */
function isOfOthers(key: string, { name, hasSides }: ConfiguredCall): boolean {
  return key === 'node' ? name === 'lint' || name === 'migrate' : key === 'file' && hasSides;
}

/**
 * Reads the flags that the command line does not set. `asked`: the file to read; the default is the nearest kpc.yaml in `tree`, in the
 * working folder or above. Undefined if there is no kpc.yaml.
 */
export function readKpcYaml(
  call: ConfiguredCall,
  commands: readonly ConfiguredCommand[],
  asked: string | undefined,
  tree: FileTree = disk,
): KpcYaml | undefined {
  const path = asked ?? findKpcYaml(tree);
  if (asked === 'none' || path === undefined) return undefined;
  // Do not follow a link out of the repository, because messages could quote the link's target. A file that the user names is trusted.
  const isForeign = asked === undefined && tree.isForeignLink(path);
  const file = isForeign
    ? diagnose('bad-kpc-yaml', { problem: 'link-outside' }, placeAtLine(path))
    : loadFile(path, undefined, tree);
  if (!(file instanceof TextFile)) return { ...nothing, file: new TextFile(path, ''), diagnostics: [file] };
  const folder = tree === disk ? dirname(path) : tree.pathAt(dirname(tree.locate(path)));
  const known = new Map(commands.map(({ name, flags }) => [name, flags.map(kpcYamlKey)]));
  return readFlags(file, call, known, { folder, tree });
}

type KnownKeys = ReadonlyMap<string, readonly string[]>;

export function readFlags(
  file: TextFile,
  call: ConfiguredCall,
  known: KnownKeys,
  home: Home = { folder: '.', tree: disk },
): KpcYaml {
  const { documents, diagnostics } = readDocuments(file);
  const found = [...diagnostics];
  const tally = new Tally();
  const places = new Map<string, Finding['place']>();
  const values = new Map<string, unknown>();
  const ignores: Ignore[] = [];
  for (const [i, { value, source }] of documents.entries()) {
    const refuse: Refuse = (at, details, atKey = false) => {
      if (!tally.admits('bad-kpc-yaml', 'error')) return;
      found.push(diagnose('bad-kpc-yaml', details, atKey ? source.keyPlace(at) : source.place(at)));
    };
    const textAt = (at: FieldPath): string => {
      const { line, column } = source.place(at).locate();
      return file.lineAt(line).slice(column - 1);
    };
    if (i > 0) refuse([], { problem: 'several-documents' });
    for (const flag of i > 0 ? [] : findFlags(value, call, known, refuse)) {
      if (!hasRightValue(flag, refuse)) continue;
      if (flag.row.kind === 'codes') ignores.push(...readIgnores(flag, (at) => source.place(at), refuse));
      else {
        const written = asWritten(flag.value, flag.path, textAt);
        const given = valueOfFlag({ ...flag, value: written }, { call, values, home }, refuse);
        if (given === undefined) continue;
        values.set(flag.row.key, given);
        places.set(flag.row.name, source.place(flag.path));
      }
    }
  }
  return { file, diagnostics: [...found, ...tally.rest(file.name)], places, values, ignores };
}

/** Finds the nearest kpc.yaml. Skips folders that any user may write to, such as /tmp. */
function findKpcYaml(tree: FileTree = disk): string | undefined {
  // On Windows, file modes do not show who may write to a folder, so only the repository is searched.
  const top = isWindows() ? findRepository('.') : undefined;
  for (let folder = resolve('.'); ; folder = dirname(folder)) {
    const path = tree.join(tree.pathAt(folder), kpcYaml);
    const isOpenToAll = !isWindows() && (statSync(folder).mode & 0o002) !== 0;
    if (!isOpenToAll && tree.exists(path) && !tree.isFolder(path))
      return tree === disk ? withSlashes(relative('.', path)) : path;
    // A kpc.yaml that is outside a repository does not apply inside it.
    if (existsSync(join(folder, '.git')) || folder === dirname(folder) || realPath(folder) === top) return undefined;
  }
}

/** Reports whether this folder or a folder above it has a kpc.yaml, or whether a word names a git revision, which may have one. */
export function mayHoldFlags(words: readonly string[]): boolean {
  return words.some((word) => revisionOf(word) !== undefined) || findKpcYaml() !== undefined;
}

const misnamed = ['kpc.yml', '.kpc.yaml', '.kpc.yml'];

export function findMisnamed(): string | undefined {
  return misnamed.find((name) => existsSync(name));
}

interface Home {
  readonly folder: string;
  readonly tree: FileTree;
}

/** Lists the flags for this call. Flags from the command's own section come first, because these override the common flags. */
function findFlags(value: unknown, call: ConfiguredCall, known: KnownKeys, refuse: Refuse): readonly GivenFlag[] {
  if (!isObject(value)) {
    refuse([], { problem: 'no-mapping', of: kpcYaml, found: foundOf(value) });
    return [];
  }
  const read = (fields: object, names: readonly string[], section?: string): readonly GivenFlag[] =>
    Object.entries(fields).flatMap(([name, inside]: [string, unknown]): readonly GivenFlag[] => {
      const ofSection = section === undefined ? known.get(name) : undefined;
      if (ofSection) {
        if (isObject(inside)) return read(inside, ofSection, name);
        if (inside !== null) refuse([name], { problem: 'no-mapping', of: name, found: foundOf(inside) });
        return [];
      }
      const path = section === undefined ? [name] : [section, name];
      if (!names.includes(name)) {
        const isOfCall = call.all.some((row) => row.isOfCall && kpcYamlKey(row) === name);
        const meant = findNearest(name, section === undefined ? [...names, ...known.keys()] : names);
        const unknown = { problem: 'unknown-flag', name, command: section, meant } as const;
        refuse(path, isOfCall ? { problem: 'of-call', flag: name } : unknown, true);
      }
      if (section === undefined ? isOfOthers(name, call) : section !== call.name) return [];
      return call.flags.flatMap((row) => (kpcYamlKey(row) === name ? [{ row, value: inside, path }] : []));
    });
  return read(value, [...known.values()].flat()).toSorted((a, b) => b.path.length - a.path.length);
}

/** Returns a flag's value. Undefined if it is refused, or if the command line or the file sets this flag or a conflicting one. */
function valueOfFlag(
  { row, value, path }: GivenFlag,
  { call, values, home }: { readonly call: ConfiguredCall; readonly values: KpcYaml['values']; readonly home: Home },
  refuse: Refuse,
): unknown {
  const { key, rivals = [] } = row;
  const flag = kpcYamlKey(row);
  const others = call.all.filter((each) => rivals.includes(each.key) || each.rivals?.includes(key));
  if (values.has(key) || [row, ...others].some(call.has)) return undefined;
  const rival = others.find((each) => values.has(each.key));
  if (rival) {
    refuse(path, { problem: 'rivals', flag, other: kpcYamlKey(rival) }, true);
    return undefined;
  }
  const words = [value].flat().map(String);
  const located = row.path === undefined ? words : words.map((word) => pathFromHome(word, home));
  const stray = row.path === undefined ? undefined : located.map((word) => findStray(word, row, home)).find(Boolean);
  if (stray !== undefined) {
    refuse(path, { problem: stray, flag });
    return undefined;
  }
  for (const [i, word] of row.path === 'read' ? words.entries() : []) {
    const at = located[i] ?? '';
    const isElsewhere = word === '-' || revisionOf(at) !== undefined;
    const mistake = isElsewhere ? undefined : findUnreadable(word, at, home.tree);
    if (!mistake) continue;
    const reason = inOneLine(faultOf('unreadable-file', mistake));
    refuse(Array.isArray(value) ? [...path, i] : path, { problem: 'refused', flag, reason });
    return undefined;
  }
  try {
    return valueOfWords(row, located);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refuse(path, { problem: 'refused', flag, reason: error.message });
    return undefined;
  }
}

function readIgnores(
  { value, path }: GivenFlag,
  placeOf: (path: FieldPath) => NonNullable<Finding['place']>,
  refuse: Refuse,
): readonly Ignore[] {
  return [value as Ignored].flat().map((each, i): Ignore => {
    const { code, service } = typeof each === 'string' ? { code: each } : each;
    const at = Array.isArray(value) ? [...path, i] : path;
    const isKnown = findingCodes.some((one) => one === code);
    if (!isKnown) refuse(at, { problem: 'unknown-code', code, meant: findNearest(code, findingCodes) });
    return { code, service, by: kpcYaml, place: placeOf(at) };
  });
}

/** Returns numbers as they are written in the file, because the version 1.30 is not the number 1.3. */
function asWritten(value: unknown, path: FieldPath, textAt: (path: FieldPath) => string): unknown {
  if (Array.isArray(value)) return value.map((item: unknown, i) => asWritten(item, [...path, i], textAt));
  if (typeof value !== 'number') return value;
  const [written = ''] = /^[\d.]+/.exec(textAt(path)) ?? [];
  return Number(written) === value ? written : value;
}

function pathFromHome(path: string, { folder, tree }: Home): string {
  return path === '-' || isAbsolute(path) ? path : tree.join(folder, path);
}

/**
 * Returns why a path is refused. A kpc.yaml may come with a repository that the user does not know well. It must therefore not make kpc
 * read and quote unrelated files, or replace unrelated folders.
 */
function findStray(path: string, row: Flag, { folder: own, tree }: Home) {
  if (path === '-') return undefined;
  // A revision is only read, and it contains nothing from outside.
  if (tree !== disk) return isAbsolute(path) ? 'reads-outside' : undefined;
  if (row.path === 'written') return findStrayTarget(path, own);
  return readsOutside(path, own) ? 'reads-outside' : undefined;
}

/** Reports whether a path leads out of both the folder's repository and the working folder. */
export function readsOutside(path: string, folder: string): boolean {
  return !leadsInto(path, findRepository(folder)) && !leadsInto(path, '.');
}

export function takenWords({ file, places }: KpcYaml): readonly string[] {
  return places.size === 0 ? [] : [`from ${printable(file.name)}: ${[...places.keys()].join(', ')}`];
}
