import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import { diagnose, placeAtLine, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { findingOf } from '../../diagnostics/fields.ts';
import { isObject } from '../../base/json-shape.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { kpcYaml } from '../../base/file-names.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import type { InputDocument } from '../../input/documents/document.ts';
import { loadFile } from '../../input/files/load-files.ts';
import { readDocuments } from '../../input/documents/read-documents.ts';
import { findRepository, isForeignLink, leadsInto, leadsIntoGit } from '../../input/files/list-files.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { knownNetworks } from '../../input/configuration/range-flags.ts';
import { proxyFlags } from '../../kube-proxy/settings/values.ts';
import type { FlagPlaces } from './messages.ts';
import { existsSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { CommanderError, type Command, type Option } from 'commander';

/** The commands whose flags it may hold. */
export const configuredCommands = ['compile', 'diff', 'describe', 'trace', 'test', 'equivalence', 'migrate'] as const;

/** Flags whose values are paths, which count from the folder of kpc.yaml. */
const paths: ReadonlySet<string> = new Set([
  'file',
  'config',
  'hostAddresses',
  'out',
  'golden',
  'check',
  'bundle',
  'fromDump',
]);

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
  if (named === 'none') return undefined;
  const path = named ?? findKpcYaml();
  if (path === undefined) return undefined;
  // A link out of the repository: its text would be quoted to those who run kpc there. One that is named is what its user wants.
  const isForeign = named === undefined && isForeignLink(path);
  const file = isForeign ? diagnose('bad-kpc-yaml', { problem: 'link-outside' }, placeAtLine(path)) : loadFile(path);
  if (!(file instanceof TextFile)) return { file: new TextFile(path, ''), diagnostics: [file], places: new Map() };
  const { documents, diagnostics } = readDocuments(file);
  const [document, second] = documents;
  const reader = new Reader(file, command, program);
  if (second) reader.refuse(second, [], { problem: 'several-documents' });
  if (document) reader.read(document);
  return { file, diagnostics: [...diagnostics, ...reader.diagnostics], places: reader.places };
}

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

/** Reads a document for one command. */
class Reader {
  readonly diagnostics: Diagnostic[] = [];
  readonly places = new Map<string, Diagnostic['place']>();
  readonly #file: TextFile;
  readonly #command: Command;
  readonly #program: Command;
  readonly #flags = new Map<Command, ReadonlyMap<string, Option>>();

  constructor(file: TextFile, command: Command, program: Command) {
    this.#file = file;
    this.#command = command;
    this.#program = program;
  }

  read(document: InputDocument): void {
    const { value } = document;
    if (!isObject(value)) {
      this.refuse(document, [], { problem: 'no-mapping', of: kpcYaml, found: findingOf(value) });
      return;
    }
    for (const [key, section] of Object.entries(value)) {
      if (!isConfigured(key) || section === null) continue;
      if (isObject(section)) this.#readSection(document, key, section);
      else this.refuse(document, [key], { problem: 'no-mapping', of: key, found: findingOf(section) });
    }
    // What a command's own section says counts more than what is said for all.
    for (const [key, flag] of Object.entries(value)) if (!isConfigured(key)) this.#readCommon(document, key, flag);
  }

  #readSection(document: InputDocument, name: string, flags: Readonly<Record<string, unknown>>): void {
    const section = this.#program.commands.filter((each) => each.name() === name);
    for (const [key, value] of Object.entries(flags)) {
      const option = section.flatMap((each) => this.#flagsOf(each).get(key) ?? [])[0];
      if (!option) this.#refuseFlag(document, [name, key], section, name);
      else if (name === this.#command.name()) this.#give(document, option, value, [name, key]);
    }
  }

  #readCommon(document: InputDocument, key: string, value: unknown): void {
    const configured = this.#program.commands.filter((each) => isConfigured(each.name()));
    const option = this.#flagsOf(this.#command).get(key);
    if (option) {
      if (!this.#isOtherFile(key)) this.#give(document, option, value, [key]);
    } else if (!configured.some((each) => this.#flagsOf(each).has(key))) this.#refuseFlag(document, [key], configured);
  }

  /**
   * Whether a key names the manifests of other commands: in diff, -f adds to both sides what is compared, and only its own
   * section can mean that. A comparison of two releases has no sides, and compiles the manifests as other commands do.
   */
  #isOtherFile(key: string): boolean {
    if (this.#command.name() !== 'diff' || key !== 'file') return false;
    return this.#command.getOptionValue('toKubernetesVersion') === undefined || this.#command.args.length > 0;
  }

  /** The flags of a command, by the keys that stand for them. There may be as many keys as fit in a file. */
  #flagsOf(command: Command): ReadonlyMap<string, Option> {
    const flags =
      this.#flags.get(command) ??
      new Map(heldFlags(command).flatMap((option) => (option.long ? [[option.long.slice(2), option]] : [])));
    this.#flags.set(command, flags);
    return flags;
  }

  /** A flag that none of these commands has. */
  #refuseFlag(document: InputDocument, path: readonly string[], of: readonly Command[], command?: string): void {
    const name = path.at(-1) ?? '';
    const names = [...new Set(of.flatMap((each) => [...this.#flagsOf(each).keys()]))];
    this.refuse(document, path, { problem: 'unknown-flag', name, command, meant: findNearest(name, names) }, true);
  }

  /** Sets a flag, unless the command line does, or names one that rules it out. */
  #give(document: InputDocument, option: Option, value: unknown, path: readonly string[]): void {
    if (value === null) return;
    const attribute = option.attributeName();
    const flag = path.at(-1) ?? '';
    const words = wordsOf(this.#asWritten(document, value, path), option);
    if (words === undefined) {
      const expected = takesBoolean(option) ? 'boolean' : takesList(option) ? 'list' : 'one';
      this.refuse(document, path, { problem: 'value', flag, found: findingOf(value), expected });
      return;
    }
    const source = this.#command.getOptionValueSource(attribute);
    if (source === 'cli' || source === 'config' || this.#findRival(option, 'cli')) return;
    const rival = this.#findRival(option, 'config');
    if (rival) {
      this.refuse(document, path, { problem: 'rivals', flag, other: (rival.long ?? '').slice(2) }, true);
      return;
    }
    const stray = paths.has(attribute) ? words.flatMap((word) => this.#findStray(word, attribute) ?? [])[0] : undefined;
    if (stray !== undefined) {
      this.refuse(document, path, { problem: stray, flag });
      return;
    }
    try {
      const parsed = this.#parse(option, words);
      if (parsed === undefined) return;
      this.#command.setOptionValueWithSource(attribute, parsed, 'config');
      this.places.set(option.long ?? '', document.source.place(path));
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      this.refuse(document, path, { problem: 'refused', flag, reason: error.message });
    }
  }

  /** A flag from there that cannot be used together with this one. */
  #findRival(option: Option, source: 'cli' | 'config'): Option | undefined {
    return this.#command.options.find((each) => {
      const isGiven = each !== option && this.#command.getOptionValueSource(each.attributeName()) === source;
      return isGiven && (rulesOut(each, option) || rulesOut(option, each));
    });
  }

  /** Undefined for a flag that is there only to be left out. */
  #parse(option: Option, words: readonly string[]): unknown {
    if (option.negate) return words[0] === 'true' ? false : undefined;
    if (option.isBoolean()) return words[0] === 'true' ? true : undefined;
    if (option.optional && !takesBoolean(option) && words.length === 1) {
      if (words[0] === 'true') return knownNetworks;
      if (words[0] === 'false') return undefined;
    }
    const own = paths.has(option.attributeName()) ? words.map((word) => this.#locate(word)) : words;
    const { parseArg } = option;
    if (!parseArg) return own.join(',');
    return own.reduce<unknown>((before, word) => parseArg(word, before as never), undefined);
  }

  /** A value with its numbers as the file has them: 1.30 is a version, and not the number 1.3. */
  #asWritten(document: InputDocument, value: unknown, path: FieldPath): unknown {
    if (Array.isArray(value)) return value.map((item: unknown, i) => this.#asWritten(document, item, [...path, i]));
    if (typeof value !== 'number') return value;
    const { line, column } = document.source.place(path).locate();
    const [written = ''] = /^[\d.]+/.exec(this.#file.lineAt(line).slice(column - 1)) ?? [];
    return Number(written) === value ? written : value;
  }

  #locate(path: string): string {
    return path === '-' || isAbsolute(path) ? path : join(dirname(this.#file.name), path);
  }

  /**
   * What is wrong with a path. A kpc.yaml may come with a repository that its user does not know well: it must not have files
   * read, and their lines quoted, nor folders replaced, that have nothing to do with that repository.
   */
  #findStray(word: string, attribute: string): 'replaces-outside' | 'replaces-git' | 'reads-outside' | undefined {
    if (word === '-') return undefined;
    const path = this.#locate(word);
    const own = dirname(this.#file.name);
    if (targets.has(attribute)) {
      if (!leadsInto(path, own)) return 'replaces-outside';
      return leadsIntoGit(path) ? 'replaces-git' : undefined;
    }
    return leadsInto(path, findRepository(own)) || leadsInto(path, '.') ? undefined : 'reads-outside';
  }

  refuse(document: InputDocument, path: readonly string[], details: ArgumentsOf<'bad-kpc-yaml'>, atKey = false): void {
    const place = atKey ? document.source.keyPlace(path) : document.source.place(path);
    this.diagnostics.push(diagnose('bad-kpc-yaml', details, place));
  }
}

function isConfigured(name: string): boolean {
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
