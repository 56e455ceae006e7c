import { InvalidArgumentError, Command } from 'commander';
import { withSlashes } from '../../base/system-paths.ts';
import { findIdleFlag } from '../../library/command-flags.ts';
import { flagRow, type Flag, isOfManifests, openFlags } from '../../library/options.ts';
import type { BadCall } from '../../library/refusal.ts';
import { helpGroups } from '../shared/help.ts';
import { ValueOption } from '../shared/usage-errors.ts';
import { pathWord, shellWord } from '../../base/printable.ts';
import type { Snapshot, FileTree } from '../../library/node/open.ts';
import { isConfigured } from '../../library/node/kpc-yaml-values.ts';
import type { ConfiguredCommand } from '../../library/node/kpc-yaml-schema.ts';
import { readKpcYaml, takenWords, type KpcYaml } from '../../library/node/kpc-yaml.ts';

class FlagOption extends ValueOption {
  readonly row: Flag;

  constructor(row: Flag) {
    super(row.usage, row.help);
    this.row = row;
    const { kind, path, choices, parse = path && withSlashes, usual, rivals = [], group, isHidden = false } = row;
    if (choices) this.choices(choices);
    this.isList = kind === 'list' || kind === 'codes';
    if (this.isList) {
      this.argParser((word, before?: readonly unknown[]) => [...(before ?? []), parse ? parse(word) : word].flat());
    } else if (parse) this.argParser((word): unknown => parse(word));
    if (usual !== undefined) this.default(usual);
    if (group) this.helpGroup(helpGroups[group]);
    this.conflicts([...rivals]).hideHelp(isHidden);
  }
}

export function addFlags(command: Command, rows: readonly Flag[]): Command {
  for (const row of rows) command.addOption(new FlagOption(row));
  return command;
}

function flagsOfCommand(command: Command): readonly Flag[] {
  return command.options.flatMap((option) => (option instanceof FlagOption ? [option.row] : []));
}

/** Returns the flags that are set. `cli`: on the command line. `config`: in kpc.yaml. */
export function givenFlags(command: Command, sources: readonly ('cli' | 'config')[] = ['cli']): readonly Flag[] {
  return flagsOfCommand(command).filter((row) => {
    const source = command.getOptionValueSource(row.key);
    const isGiven = sources.some((each) => each === source);
    // "--assume" and "--no-assume" have the same key.
    return isGiven && (command.getOptionValue(row.key) === false) === (row.kind === 'off');
  });
}

/** Finds a flag that has no effect. Checks only the command line, because the flags in kpc.yaml are for many calls. */
export function findIdleOption(command: Command): BadCall | undefined {
  return findIdleFlag(givenFlags(command).map((row) => ({ row, value: command.getOptionValue(row.key) as unknown })));
}

export const limitFlag: Flag = flagRow(
  'text',
  '--limit <count>',
  'lines of a list to show before "and 230 more"; 0 for all',
  {
    group: 'output',
    usual: 20,
    parse: (written) => {
      if (!/^\d{1,9}$/.test(written)) throw new InvalidArgumentError('Write a number.');
      return Number(written) === 0 ? Number.POSITIVE_INFINITY : Number(written);
    },
    idle: [
      { beside: '--output json', why: 'whole-lists' },
      { beside: '--output unified', why: 'whole-lists' },
    ],
  },
);

export function outputFlag(formats: readonly string[], facts: Partial<Flag> = {}): Flag {
  return flagRow('text', '--output <format>', 'how to print', { choices: formats, usual: formats[0], ...facts });
}

/** Returns the flags about compiling that kpc init may write to kpc.yaml. */
export function flagsToKeep(command: Command): ReadonlyMap<string, string | readonly string[] | boolean> {
  return new Map(
    givenFlags(command).flatMap(({ name, key, kind, needs, isOfCall }) => {
      if (isOfCall || !isOfManifests(needs)) return [];
      const value = command.getOptionValue(key) as string | readonly string[] | boolean;
      return [[name.slice(2), kind === 'off' || value]];
    }),
  );
}

/**
 * Returns a `kpc trace` command for the same input, without the packet's flags. It repeats the settings of the command line and of
 * kpc.yaml, because kpc.yaml's own section for trace may have others. `words`: the input. `settings`: more flags, which override the
 * others.
 */
export function givenTraceWords(
  command: Command,
  words: readonly string[],
  settings: Readonly<Record<string, string | undefined>> = {},
): readonly string[] {
  const flags = givenFlags(command, ['cli', 'config']).flatMap(({ name, key, needs = 'none', isOfNode }) => {
    if (needs === 'none' || name in settings || isOfNode) return [];
    return flagWithValues(name, command.getOptionValue(key));
  });
  const shown = Object.entries(settings).flatMap(([name, value]) =>
    value === undefined || ofNode.has(name) ? [] : [name, value],
  );
  return ['kpc', 'trace', ...words, ...flags, ...shown];
}

function flagWithValues(name: string, value: unknown): readonly string[] {
  return typeof value === 'boolean' ? [name] : [value].flat().flatMap((each) => [name, String(each)]);
}

/** Returns this call's command with its flags, as typed in a shell. Leaves out its input, and the flags that render or fetch the input. */
export function wordsOfCall(command: Command, words: readonly string[] = []): string {
  const flags = givenFlags(command)
    .filter(({ name, isOfCall, group }) => !isOfCall && group !== 'output' && name !== '--file')
    .flatMap(({ name, key }) => flagWithValues(name, command.getOptionValue(key)).map(shellWord));
  return ['kpc', command.name(), ...words, ...flags].join(' ');
}

/** Returns the command of this call with its input from a pipe. Keeps words that are not inputs. */
export function pipedWords(command: Command): string {
  const isInput = command.registeredArguments.some((argument) => argument.name() === 'input');
  return wordsOfCall(command, [...(isInput ? [] : command.args.map(shellWord)), '-f -']);
}

const ofNode: ReadonlySet<string> = new Set(
  openFlags('programs').flatMap(({ name, isOfNode }) => (isOfNode ? [name] : [])),
);

/** Returns a `kpc trace` command, without a packet, for one side of a comparison. `inputs` and `settings` apply only to manifests. */
export function traceSide(
  command: Command,
  side: Snapshot,
  inputs: readonly string[],
  settings: Readonly<Record<string, string | undefined>> = {},
): readonly string[] {
  const { kind, name } = side;
  if (kind === 'manifests') return givenTraceWords(command, inputs.map(pathWord), { ...side.taken, ...settings });
  const addresses: unknown = kind === 'dump' ? command.getOptionValue('hostAddresses') : undefined;
  return ['kpc', 'trace', pathWord(name), ...(typeof addresses === 'string' ? ['--host-addresses', addresses] : [])];
}

export { findMisnamed, mayHoldFlags, takenWords, type KpcYaml } from '../../library/node/kpc-yaml.ts';
export { isConfigured };

export function configuredOf(program: Command): readonly ConfiguredCommand[] {
  return program.commands.filter((each) => isConfigured(each.name())).map(asConfigured);
}

/** Leaves out flags with which a repository's kpc.yaml could run a program. */
function asConfigured(command: Command): ConfiguredCommand {
  return { name: command.name(), flags: flagsOfCommand(command).filter(({ isOfCall }) => !isOfCall) };
}

/** Applies the flags in kpc.yaml that are not on the command line. Undefined if there is no kpc.yaml. */
export function applyKpcYaml(
  command: Command,
  program: Command,
  asked: string | undefined,
  tree?: FileTree,
): KpcYaml | undefined {
  if (asked === 'none') return undefined;
  const call = {
    ...asConfigured(command),
    all: flagsOfCommand(command),
    has: ({ key }: Flag) => command.getOptionValueSource(key) === 'cli',
    hasSides:
      command.name() === 'diff'
        ? command.getOptionValue('toKubernetesVersion') === undefined || command.args.length > 0
        : tree !== undefined,
  };
  const found = readKpcYaml(call, configuredOf(program), asked, tree);
  for (const [key, value] of found?.values ?? []) command.setOptionValueWithSource(key, value, 'config');
  if (found) command.setOptionValueWithSource('configuredIgnores', found.ignores, 'config');
  return found;
}

/**
 * Reads options from the kpc.yaml of a revision instead of the working folder's. Undefined if the revision has none, or if the command line
 * names a kpc.yaml.
 */
function optionsInTree(command: Command, program: Command, tree: FileTree) {
  if (command.getOptionValueSource('kpcYaml') === 'cli') return undefined;
  const twin = addFlags(new Command(command.name()), flagsOfCommand(command));
  twin.args = [...command.args];
  for (const { key } of givenFlags(command)) twin.setOptionValueWithSource(key, command.getOptionValue(key), 'cli');
  const found = applyKpcYaml(twin, program, undefined, tree);
  const elsewhere = givenFlags(command, ['config']);
  // Without kpc.yaml, a trace of this side does not read the working folder's file.
  if (elsewhere.length > 0) twin.setOptionValueWithSource('kpcYaml', 'none', 'config');
  const without = Object.fromEntries(elsewhere.map(({ key }) => [key, undefined]));
  return found && { ...found, command: twin, options: { ...without, ...twin.opts() } };
}

/** Returns a function that reads sides that are revisions. It uses the flags in each revision's kpc.yaml, and prints a note about them. */
export function readRevisions(call: {
  readonly command: Command;
  readonly program: Command;
  readonly sayTaken: (taken: readonly string[]) => Promise<void>;
}) {
  const { command, program } = call;
  const commands = new Map<string, Command>();
  const taken: string[] = [];
  const optionsOf = async (tree: FileTree, path: string) => {
    const own = optionsInTree(command, program, tree);
    if (!own) return undefined;
    commands.set(path, own.command);
    await call.sayTaken(takenWords(own));
    taken.push(...takenWords(own));
    return own;
  };
  return { optionsOf, taken, commandOf: (path: string) => commands.get(path) ?? command };
}
