import { InvalidArgumentError, Option, type Command } from 'commander';
import { withSlashes } from '../../base/system-paths.ts';
import { findIdleFlag } from '../../library/command-flags.ts';
import { flagRow, type Flag, isOfManifests, openFlags } from '../../library/options.ts';
import type { BadCall } from '../../library/refusal.ts';
import { helpGroups } from '../shared/help.ts';
import { pathWord } from '../../base/printable.ts';
import type { Snapshot } from '../../library/node/open.ts';

class FlagOption extends Option {
  readonly row: Flag;

  constructor(row: Flag) {
    super(row.usage, row.help);
    this.row = row;
    const { kind, path, choices, parse = path && withSlashes, usual, rivals = [], group, isHidden = false } = row;
    if (choices) this.choices(choices);
    if (kind === 'list' || kind === 'codes') {
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

export function flagsOfCommand(command: Command): readonly Flag[] {
  return command.options.flatMap((option) => (option instanceof FlagOption ? [option.row] : []));
}

/** `cli`: on the command line; `config`: in kpc.yaml. */
export function givenFlags(command: Command, sources: readonly ('cli' | 'config')[] = ['cli']): readonly Flag[] {
  return flagsOfCommand(command).filter((row) => {
    const source = command.getOptionValueSource(row.key);
    const isGiven = sources.some((each) => each === source);
    // "--assume" and "--no-assume" have one key.
    return isGiven && (command.getOptionValue(row.key) === false) === (row.kind === 'off');
  });
}

/** Only for the command line: kpc.yaml holds the flags of many calls. */
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

/** The first format is the default. */
export function outputFlag(formats: readonly string[], facts: Partial<Flag> = {}): Flag {
  return flagRow('text', '--output <format>', 'how to print', { choices: formats, usual: formats[0], ...facts });
}

/** Flags about compiling, as a kpc.yaml holds them. */
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
 * A `kpc trace` of the same input, without the packet, with settings of the command line and of kpc.yaml, whose section
 * for trace may differ. `words` name the input; `settings` are further flags, which win.
 */
export function givenTraceWords(
  command: Command,
  words: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): readonly string[] {
  const flags = givenFlags(command, ['cli', 'config']).flatMap(({ name, key, needs = 'none', isOfNode }) => {
    if (needs === 'none' || name in settings || isOfNode) return [];
    const value: unknown = command.getOptionValue(key);
    return typeof value === 'boolean' ? [name] : [value].flat().flatMap((each) => [name, String(each)]);
  });
  const shown = Object.entries(settings).filter(([name]) => !ofNode.has(name));
  return ['kpc', 'trace', ...words, ...flags, ...shown.flat()];
}

const ofNode: ReadonlySet<string> = new Set(
  openFlags('programs').flatMap(({ name, isOfNode }) => (isOfNode ? [name] : [])),
);

/** A `kpc trace` of one side of a comparison, without the packet. `inputs` and `settings` are for manifests. */
export function traceSide(
  command: Command,
  side: Snapshot,
  inputs: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): readonly string[] {
  const { kind, name } = side;
  if (kind === 'manifests') return givenTraceWords(command, inputs.map(pathWord), { ...side.taken, ...settings });
  const addresses: unknown = kind === 'dump' ? command.getOptionValue('hostAddresses') : undefined;
  return ['kpc', 'trace', pathWord(name), ...(typeof addresses === 'string' ? ['--host-addresses', addresses] : [])];
}
