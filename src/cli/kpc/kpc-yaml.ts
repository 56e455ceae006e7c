import { diagnosticCodes } from '../../diagnostics/codes.ts';
import { diagnose, placeAtLine, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { foundOf } from '../../diagnostics/fields.ts';
import { isObject } from '../../base/json-shape.ts';
import { printable } from '../../base/printable.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { kpcYaml } from '../../base/file-names.ts';
import { isWindows, withSlashes } from '../../base/system-paths.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import { loadFile } from '../../input/files/load-files.ts';
import { readDocuments } from '../../input/documents/read-documents.ts';
import { findRepository, findStrayTarget, leadsInto, realPath } from '../../input/files/disk-paths.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import type { Ignore } from '../../lint/ignores.ts';
import { knownNetworks } from '../../input/configuration/range-flags.ts';
import type { Flag } from '../../settings/flag.ts';
import { addFlags, FlagOption, flagsOf, givenFlags } from './flags.ts';
import {
  configuredOf,
  hasRightValue,
  heldFlags,
  keyOf,
  type GivenFlag,
  type Ignored,
  type Refuse,
} from './kpc-yaml-values.ts';
import type { FlagPlaces } from './messages.ts';
import { existsSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import { disk, type FileTree } from '../../input/files/file-tree.ts';

export interface KpcYaml {
  readonly file: TextFile;
  readonly diagnostics: readonly Diagnostic[];
  /** The place of each flag in the file, by long name. */
  readonly places: FlagPlaces;
}

/**
 * Gives a command the flags that kpc.yaml holds and the command line does not: the file that `asked` names, or the first one
 * in the working folder and those above it, as `tree` has them. Undefined if there is none.
 */
export function applyKpcYaml(
  command: Command,
  program: Command,
  asked: string | undefined,
  tree: FileTree = disk,
): KpcYaml | undefined {
  const path = asked ?? findKpcYaml(tree);
  if (asked === 'none' || path === undefined) return undefined;
  // A link out of the repository: its text would be quoted to those who run kpc there. One that is named is what its user wants.
  const isForeign = asked === undefined && tree.isForeignLink(path);
  const file = isForeign
    ? diagnose('bad-kpc-yaml', { problem: 'link-outside' }, placeAtLine(path))
    : loadFile(path, undefined, tree);
  if (!(file instanceof TextFile)) return { file: new TextFile(path, ''), diagnostics: [file], places: new Map() };
  const { documents, diagnostics } = readDocuments(file);
  const found = [...diagnostics];
  const places = new Map<string, Diagnostic['place']>();
  const folder = tree === disk ? dirname(path) : tree.pathAt(dirname(tree.locate(path)));
  const home = { folder, tree };
  for (const [i, { value, source }] of documents.entries()) {
    const refuse: Refuse = (at, details, atKey = false) =>
      void found.push(diagnose('bad-kpc-yaml', details, atKey ? source.keyPlace(at) : source.place(at)));
    const textAt = (at: FieldPath): string => {
      const { line, column } = source.place(at).locate();
      return file.lineAt(line).slice(column - 1);
    };
    if (i > 0) refuse([], { problem: 'several-documents' });
    for (const flag of i > 0 ? [] : findFlags(value, command, program, refuse)) {
      if (!hasRightValue(flag, refuse)) continue;
      if (flag.row.kind === 'codes') giveIgnores(flag, command, (at) => source.place(at), refuse);
      else {
        const written = asWritten(flag.value, flag.path, textAt);
        if (giveFlag({ ...flag, value: written }, command, home, refuse))
          places.set(flag.row.name, source.place(flag.path));
      }
    }
  }
  return { file, diagnostics: found, places };
}

/**
 * The nearest kpc.yaml; undefined if there is none. A file that any user may have put there, as in /tmp, is not read.
 */
export function findKpcYaml(tree: FileTree = disk): string | undefined {
  // Windows does not say by a mode who may write to a folder: there, only a repository is looked through.
  const top = isWindows() ? findRepository('.') : undefined;
  for (let folder = resolve('.'); ; folder = dirname(folder)) {
    const path = tree.join(tree.pathAt(folder), kpcYaml);
    const isOpenToAll = !isWindows() && (statSync(folder).mode & 0o002) !== 0;
    if (!isOpenToAll && tree.exists(path) && !tree.isFolder(path))
      return tree === disk ? withSlashes(relative('.', path)) : path;
    // A repository is not ruled by what is around it.
    if (existsSync(join(folder, '.git')) || folder === dirname(folder) || realPath(folder) === top) return undefined;
  }
}

/** Names that people give a kpc.yaml, which is not read then. */
const misnamed = ['kpc.yml', '.kpc.yaml', '.kpc.yml'];

/** A file in the working folder that its user may take for a kpc.yaml. */
export function findMisnamed(): string | undefined {
  return misnamed.find((name) => existsSync(name));
}

/**
 * The options of a command as they are in a revision: the flags of the command line, and those of the kpc.yaml that the revision
 * has. Undefined if it has none, or if the command line names one.
 */
export function optionsInTree(command: Command, program: Command, tree: FileTree) {
  if (command.getOptionValueSource('kpcYaml') === 'cli') return undefined;
  const twin = addFlags(new Command(command.name()), flagsOf(command));
  twin.args = [...command.args];
  for (const { key } of givenFlags(command)) twin.setOptionValueWithSource(key, command.getOptionValue(key), 'cli');
  const found = applyKpcYaml(twin, program, undefined, tree);
  return found && { ...found, options: twin.opts() };
}

/** The folder of a kpc.yaml. */
interface Home {
  readonly folder: string;
  readonly tree: FileTree;
}

/** The flags that the file sets for a command: first those of its own section, which override the common ones. */
function findFlags(value: unknown, command: Command, program: Command, refuse: Refuse): readonly GivenFlag[] {
  if (!isObject(value)) {
    refuse([], { problem: 'no-mapping', of: kpcYaml, found: foundOf(value) });
    return [];
  }
  const known = new Map(configuredOf(program).map((each) => [each.name(), heldFlags(each)]));
  const read = (fields: object, rows: readonly Flag[], section?: string): readonly GivenFlag[] =>
    Object.entries(fields).flatMap(([name, inside]: [string, unknown]): readonly GivenFlag[] => {
      const ofSection = section === undefined ? known.get(name) : undefined;
      if (ofSection) {
        if (isObject(inside)) return read(inside, ofSection, name);
        if (inside !== null) refuse([name], { problem: 'no-mapping', of: name, found: foundOf(inside) });
        return [];
      }
      const path = section === undefined ? [name] : [section, name];
      const names = rows.map(keyOf);
      if (!names.includes(name)) {
        const meant = findNearest(name, names);
        refuse(path, { problem: 'unknown-flag', name, command: section, meant }, true);
      }
      if (section === undefined ? isOfOthers(name, command) : section !== command.name()) return [];
      return heldFlags(command).flatMap((row) => (keyOf(row) === name ? [{ row, value: inside, path }] : []));
    });
  return read(value, [...known.values()].flat()).toSorted((a, b) => b.path.length - a.path.length);
}

/**
 * Whether a key is for other commands only, outside of this one's own section: -f of diff adds to both sides, except where it
 * compares two releases and has no sides; and lint looks at all nodes.
 */
function isOfOthers(key: string, command: Command): boolean {
  if (command.name() === 'lint' && key === 'node') return true;
  if (command.name() !== 'diff' || key !== 'file') return false;
  return command.getOptionValue('toKubernetesVersion') === undefined || command.args.length > 0;
}

/** Sets a flag and returns true, unless the command line has the flag or one that conflicts, or the value is refused. */
function giveFlag({ row, value, path }: GivenFlag, command: Command, home: Home, refuse: Refuse): boolean {
  const { key, rivals = [] } = row;
  const flag = keyOf(row);
  const isFrom = (source: string) => (each: Flag) => command.getOptionValueSource(each.key) === source;
  const others = flagsOf(command).filter((each) => rivals.includes(each.key) || each.rivals?.includes(key));
  if (isFrom('config')(row) || [row, ...others].some(isFrom('cli'))) return false;
  const rival = others.find(isFrom('config'));
  if (rival) {
    refuse(path, { problem: 'rivals', flag, other: keyOf(rival) }, true);
    return false;
  }
  const words = [value].flat().map(String);
  const located = row.path === undefined ? words : words.map((word) => locate(word, home));
  const stray = row.path === undefined ? undefined : located.map((word) => findStray(word, row, home)).find(Boolean);
  if (stray !== undefined) {
    refuse(path, { problem: stray, flag });
    return false;
  }
  try {
    const parsed = parseFlag(row, located);
    if (parsed !== undefined) command.setOptionValueWithSource(key, parsed, 'config');
    return parsed !== undefined;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    refuse(path, { problem: 'refused', flag, reason: error.message });
    return false;
  }
}

/** Adds findings that the file accepts to those of the command line, each with its place. */
function giveIgnores(
  { value, path }: GivenFlag,
  command: Command,
  placeOf: (path: FieldPath) => NonNullable<Diagnostic['place']>,
  refuse: Refuse,
): void {
  const known = command.getOptionValue('configuredIgnores') as readonly Ignore[] | undefined;
  const added = [value as Ignored].flat().map((each, i): Ignore => {
    const { code, service } = typeof each === 'string' ? { code: each } : each;
    const at = Array.isArray(value) ? [...path, i] : path;
    const isKnown = diagnosticCodes.some((one) => one === code);
    if (!isKnown) refuse(at, { problem: 'unknown-code', code, meant: findNearest(code, diagnosticCodes) });
    return { code, service, by: kpcYaml, place: placeOf(at) };
  });
  command.setOptionValueWithSource('configuredIgnores', [...(known ?? []), ...added], 'config');
}

/** The value as the command line gives it; undefined for `false`, which leaves the flag out. */
function parseFlag(row: Flag, words: readonly string[]): unknown {
  const { kind } = row;
  const [first] = words;
  const isOn = first === 'true';
  if (kind === 'on' || kind === 'off') return isOn ? kind === 'on' : undefined;
  if (kind === 'optional' && words.length === 1 && (isOn || first === 'false')) return isOn ? knownNetworks : undefined;
  const { parseArg } = new FlagOption(row);
  if (!parseArg) return words.join(',');
  return words.reduce<unknown>((before, word) => parseArg(word, before as never), undefined);
}

/** Returns a value with its numbers as the file spells them: 1.30 is a version, not the number 1.3. */
function asWritten(value: unknown, path: FieldPath, textAt: (path: FieldPath) => string): unknown {
  if (Array.isArray(value)) return value.map((item: unknown, i) => asWritten(item, [...path, i], textAt));
  if (typeof value !== 'number') return value;
  const [written = ''] = /^[\d.]+/.exec(textAt(path)) ?? [];
  return Number(written) === value ? written : value;
}

function locate(path: string, { folder, tree }: Home): string {
  return path === '-' || isAbsolute(path) ? path : tree.join(folder, path);
}

/**
 * What is wrong with a path. A kpc.yaml may come with a repository that its user does not know well: it must not cause
 * files unrelated to that repository to be read, with their lines quoted, or such folders to be replaced.
 */
function findStray(path: string, row: Flag, { folder: own, tree }: Home) {
  if (path === '-') return undefined;
  // Of a revision, only what is read matters, and it holds nothing else.
  if (tree !== disk) return isAbsolute(path) ? 'reads-outside' : undefined;
  if (row.path === 'written') return findStrayTarget(path, own);
  return leadsInto(path, findRepository(own)) || leadsInto(path, '.') ? undefined : 'reads-outside';
}

/** Names the flags that the file gave: whoever wrote it may have left out what the result does not show. */
export function takenWords({ file, places }: KpcYaml): readonly string[] {
  return places.size === 0 ? [] : [`from ${printable(file.name)}: ${[...places.keys()].join(', ')}`];
}
