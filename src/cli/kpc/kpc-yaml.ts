import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import { diagnose, placeAtLine, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { findingOf } from '../../diagnostics/fields.ts';
import { isObject } from '../../base/json-shape.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { kpcYaml } from '../../base/file-names.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import { loadFile } from '../../input/files/load-files.ts';
import { readDocuments } from '../../input/documents/read-documents.ts';
import { findRepository, isForeignLink, leadsInto, leadsIntoGit } from '../../input/files/list-files.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { knownNetworks } from '../../input/configuration/range-flags.ts';
import { proxyFlags } from '../../kube-proxy/settings/table.ts';
import type { FlagPlaces } from './messages.ts';
import { existsSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { CommanderError, type Command, type Option } from 'commander';

/** The commands whose flags it may hold. */
export const configuredCommands = ['compile', 'diff', 'describe', 'trace', 'test', 'equivalence', 'migrate'] as const;

/** Flags whose values are paths, which count from the folder of kpc.yaml. */
const paths: ReadonlySet<string> = new Set(['file', 'config', 'hostAddresses', 'out', 'golden', 'check', 'fromDump']);

/** Those of them whose folders are replaced. */
const targets: ReadonlySet<string> = new Set(['out', 'golden']);

/** Flags that say which kpc.yaml is meant, or that end the program. */
const neverHeld: ReadonlySet<string> = new Set(['kpcYaml', 'help']);

/** What a kpc.yaml gave a command. */
export interface KpcYaml {
  readonly file: TextFile;
  readonly diagnostics: readonly Diagnostic[];
  /** The flags that it gave, by their long names, and where. */
  readonly places: FlagPlaces;
}

/**
 * Gives a command the flags that kpc.yaml holds and the command line does not: the file that `named` names, or the first one
 * in the working folder and those above it. Undefined if there is none.
 */
export function applyKpcYaml(command: Command, program: Command, named: string | undefined): KpcYaml | undefined {
  const path = named ?? findKpcYaml();
  if (named === 'none' || path === undefined) return undefined;
  // A link out of the repository: its text would be quoted to those who run kpc there. One that is named is what its user wants.
  const isForeign = named === undefined && isForeignLink(path);
  const file = isForeign ? diagnose('bad-kpc-yaml', { problem: 'link-outside' }, placeAtLine(path)) : loadFile(path);
  if (!(file instanceof TextFile)) return { file: new TextFile(path, ''), diagnostics: [file], places: new Map() };
  const { documents, diagnostics } = readDocuments(file);
  const found = [...diagnostics];
  const places = new Map<string, Diagnostic['place']>();
  for (const [i, { value, source }] of documents.entries()) {
    const refuse: Refuse = (at, details, atKey = false) =>
      void found.push(diagnose('bad-kpc-yaml', details, atKey ? source.keyPlace(at) : source.place(at)));
    const textAt = (at: FieldPath): string => {
      const { line, column } = source.place(at).locate();
      return file.lineAt(line).slice(column - 1);
    };
    if (i > 0) refuse([], { problem: 'several-documents' });
    for (const flag of i > 0 ? [] : findFlags(value, command, program, refuse)) {
      const place = source.place(flag.path);
      const written = asWritten(flag.value, flag.path, textAt);
      if (giveFlag({ ...flag, value: written }, command, dirname(path), refuse))
        places.set(flag.option.long ?? '', place);
    }
  }
  return { file, diagnostics: found, places };
}

/** Refuses the value at a path, or its key (`atKey`). */
type Refuse = (path: readonly string[], details: ArgumentsOf<'bad-kpc-yaml'>, atKey?: boolean) => void;

/** The kpc.yaml that counts here; undefined if there is none. What any user may have put there, as in /tmp, is not read. */
export function findKpcYaml(): string | undefined {
  for (let folder = resolve('.'); ; folder = dirname(folder)) {
    const path = join(folder, kpcYaml);
    const isOpenToAll = (statSync(folder).mode & 0o002) !== 0;
    if (!isOpenToAll && existsSync(path) && statSync(path).isFile()) return relative('.', path);
    // A repository is not ruled by what is around it.
    if (existsSync(join(folder, '.git')) || folder === dirname(folder)) return undefined;
  }
}

/** A flag that the file sets for the command. */
interface GivenFlag {
  readonly option: Option;
  readonly value: unknown;
  readonly path: readonly string[];
}

/** The flags that the file sets for a command: first those of its own section, which override the common ones. */
function findFlags(value: unknown, command: Command, program: Command, refuse: Refuse): readonly GivenFlag[] {
  if (!isObject(value)) {
    refuse([], { problem: 'no-mapping', of: kpcYaml, found: findingOf(value) });
    return [];
  }
  const configured = program.commands.filter((each) => isConfigured(each.name()));
  const known = new Map(
    configured.map((each) => [each.name(), new Map(heldFlags(each).map((flag) => [(flag.long ?? '').slice(2), flag]))]),
  );
  const all = new Map([...known.values()].flatMap((flags) => [...flags]));
  const [own, common]: [GivenFlag[], GivenFlag[]] = [[], []];
  const isKnown = (name: string, flags: ReadonlyMap<string, Option>, section?: string): boolean => {
    if (flags.has(name)) return true;
    const meant = findNearest(name, [...flags.keys()]);
    const path = section === undefined ? [name] : [section, name];
    refuse(path, { problem: 'unknown-flag', name, command: section, meant }, true);
    return false;
  };
  for (const [key, section] of Object.entries(value)) {
    const flags = known.get(key);
    if (!flags) {
      const option = known.get(command.name())?.get(key);
      if (isKnown(key, all) && option && !isOfOthers(key, command))
        common.push({ option, value: section, path: [key] });
    } else if (isObject(section)) {
      for (const [name, flag] of Object.entries(section)) {
        const option = isKnown(name, flags, key) && key === command.name() ? flags.get(name) : undefined;
        if (option) own.push({ option, value: flag, path: [key, name] });
      }
    } else if (section !== null) refuse([key], { problem: 'no-mapping', of: key, found: findingOf(section) });
  }
  return [...own, ...common];
}

/**
 * Whether a key names other commands' manifests: in diff, -f adds to both sides, and only diff's own section can mean
 * that. A comparison of two releases has no sides, and compiles the manifests like other commands.
 */
function isOfOthers(key: string, command: Command): boolean {
  if (command.name() !== 'diff' || key !== 'file') return false;
  return command.getOptionValue('toKubernetesVersion') === undefined || command.args.length > 0;
}

/** Sets a flag, unless the command line has it or a rival, or its value is refused. Returns whether it was set. */
function giveFlag({ option, value, path }: GivenFlag, command: Command, folder: string, refuse: Refuse): boolean {
  const attribute = option.attributeName();
  const flag = path.at(-1) ?? '';
  if (value === null) return false;
  const words = wordsOf(value, option);
  if (words === undefined) {
    const expected = takesBoolean(option) ? 'boolean' : takesList(option) ? 'list' : 'one';
    refuse(path, { problem: 'value', flag, found: findingOf(value), expected });
    return false;
  }
  const isGiven = (each: Option, source: string) => command.getOptionValueSource(each.attributeName()) === source;
  const rivals = command.options.filter(
    (each) => each !== option && (rulesOut(each, option) || rulesOut(option, each)),
  );
  if (isGiven(option, 'config') || [option, ...rivals].some((each) => isGiven(each, 'cli'))) return false;
  const rival = rivals.find((each) => isGiven(each, 'config'));
  if (rival) {
    refuse(path, { problem: 'rivals', flag, other: (rival.long ?? '').slice(2) }, true);
    return false;
  }
  const located = paths.has(attribute) ? words.map((word) => locate(word, folder)) : words;
  const stray = paths.has(attribute)
    ? located.flatMap((word) => findStray(word, attribute, folder) ?? [])[0]
    : undefined;
  if (stray !== undefined) {
    refuse(path, { problem: stray, flag });
    return false;
  }
  try {
    const parsed = parseFlag(option, located);
    if (parsed !== undefined) command.setOptionValueWithSource(attribute, parsed, 'config');
    return parsed !== undefined;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    refuse(path, { problem: 'refused', flag, reason: error.message });
    return false;
  }
}

/** Undefined for `false`, which leaves the flag out. */
function parseFlag(option: Option, words: readonly string[]): unknown {
  const [first] = words;
  if (option.negate || option.isBoolean()) return first === 'true' ? !option.negate : undefined;
  if (option.optional && !takesBoolean(option) && words.length === 1 && (first === 'true' || first === 'false')) {
    return first === 'true' ? knownNetworks : undefined;
  }
  const { parseArg } = option;
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

/** Resolves a path against the folder of kpc.yaml. */
function locate(path: string, own: string): string {
  return path === '-' || isAbsolute(path) ? path : join(own, path);
}

/**
 * What is wrong with a path. A kpc.yaml may come with a repository that its user does not know well: it must not cause
 * files unrelated to that repository to be read, with their lines quoted, or such folders to be replaced.
 */
function findStray(path: string, attribute: string, own: string) {
  if (path === '-') return undefined;
  if (targets.has(attribute)) {
    if (!leadsInto(path, own)) return 'replaces-outside';
    return leadsIntoGit(path) ? 'replaces-git' : undefined;
  }
  return leadsInto(path, findRepository(own)) || leadsInto(path, '.') ? undefined : 'reads-outside';
}

/** Whether kpc.yaml may hold flags of a command. */
export function isConfigured(name: string): boolean {
  return configuredCommands.some((each) => each === name);
}

/** The flags of a command that kpc.yaml may hold. */
export function heldFlags(command: Command): readonly Option[] {
  return command.options.filter((option) => !neverHeld.has(option.attributeName()));
}

function rulesOut(one: Option, other: Option): boolean {
  const { conflictsWith } = one as Option & { readonly conflictsWith?: readonly string[] };
  return conflictsWith?.includes(other.attributeName()) ?? false;
}

/** A value as words of a command line; undefined if it cannot be one. */
function wordsOf(value: unknown, option: Option): readonly string[] | undefined {
  if (Array.isArray(value)) {
    if (!takesList(option)) return undefined;
    const words = value.map((item: unknown) => wordOf(item));
    return words.every((word) => word !== undefined) ? words : undefined;
  }
  const word = wordOf(value);
  if (word === undefined) return undefined;
  if (takesBoolean(option)) return word === 'true' || word === 'false' ? [word] : undefined;
  // A flag that needs no value may be true.
  return typeof value === 'boolean' && !option.optional ? undefined : [word];
}

/** No word of a command line holds a null byte. */
function wordOf(value: unknown): string | undefined {
  const isWord = typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string';
  return isWord && !String(value).includes('\0') ? String(value) : undefined;
}

/** kube-proxy's flags that are lists. */
const lists: ReadonlySet<string | undefined> = new Set(
  proxyFlags.filter(({ kind }) => kind === 'list').map(({ name }) => name),
);

/** Whether a flag may be given more than once, or takes a list with commas. */
export function takesList({ description, flags, long }: Option): boolean {
  return lists.has(long) || /repeat|CIDRs|cidrs/.test(`${description} ${flags}`);
}

/** Whether kpc.yaml holds the flag as true or false. */
export function takesBoolean(option: Option): boolean {
  return option.isBoolean() || option.negate || option.flags.endsWith('[bool]');
}
