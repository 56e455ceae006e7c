import type { Command } from 'commander';
import { pathWord } from '../../base/printable.ts';
import { isOfManifests, openFlags } from '../../library/options.ts';
import type { Snapshot } from '../../library/node/open.ts';
import { givenFlags } from './flags.ts';

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
