import type { Command } from 'commander';
import { pathWord } from '../../base/printable.ts';
import type { IdleFlags } from '../../base/findings/calls.ts';
import { openFlags, type Flag } from '../../library/options.ts';
import { refuse } from '../../library/refusal.ts';
import type { NamedSide, FromTo } from '../../library/node/pair.ts';
import type { OpenedPaths, Snapshot } from '../../library/node/open.ts';
import { givenFlags } from './flags.ts';

function flagNames(flags: readonly Flag[]): readonly string[] {
  return flags.map(({ name }) => name);
}

/** For two sides that are both not manifests. */
export function refuseStrays(flags: readonly Flag[], [from, to]: FromTo<NamedSide>): never {
  const because = { kind: 'both-compiled-already', paths: [from.name, to.name] } as const;
  return refuse({ problem: 'idle-flag', flags: flagNames(flags), because });
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

function isOfManifests(needs: Flag['needs']): boolean {
  return needs === 'manifests' || needs === 'manifests-or-packets' || needs === 'manifests-or-flows';
}

/** Refuses flags of manifests for an input that is compiled already. */
export function refuseIdleFlags(
  flags: readonly Flag[],
  { kind, path = '', nodes, at }: OpenedPaths,
  node: string | undefined,
): void {
  if (kind !== 'bundle' && kind !== 'dump') return;
  const refuseFor = (idle: readonly string[], because: IdleFlags['because']): never =>
    refuse({ problem: 'idle-flag', flags: idle, because });
  const idle = flags.filter(({ needs }) => isOfManifests(needs));
  if (idle.length > 0) refuseFor(flagNames(idle), { kind: 'compiled-already', path, of: kind });
  if (!flags.some(({ needs }) => needs === 'nodes')) return;
  if (kind === 'dump') refuseFor(['--node'], { kind: 'own-node', path });
  const [own = ''] = nodes.map((name) => at(name).side?.nodeName);
  if (own !== node) refuseFor(['--node'], { kind: 'other-node', node: node ?? '', path, of: own });
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
