import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { isInShard, parseShard, type Shard } from '../bundle/fleet/shard.ts';
import { isName } from '../base/object-names.ts';
import type { Address } from '../kernel/address.ts';
import type { Prepared } from './compile-node.ts';

/** The options that ask for more than one node, or for a part of them. */
export interface FleetOptions {
  readonly allNodes?: boolean;
  readonly node?: readonly string[];
  readonly shard?: string;
  readonly prune?: boolean;
}

/** Whether each node is to have a folder of its own inside the folder that is named. */
export function isFleet({ allNodes, node, shard }: FleetOptions): boolean {
  return allNodes === true || shard !== undefined || (node?.length ?? 0) > 1;
}

/** The nodes to compile for, and what is wrong with asking for them; nothing is compiled where that is an error. */
export interface Fleet {
  /** Sorted. */
  readonly nodes: readonly string[];
  /** Those that --node names. */
  readonly named: readonly string[];
  /** How many there are in all shards. */
  readonly total: number;
  readonly shard: Shard | undefined;
  readonly hostAddresses: ReadonlyMap<string, readonly Address[]>;
  readonly diagnostics: readonly Diagnostic[];
}

/** The addresses of many nodes, and what is wrong with their source. */
export interface Hosts {
  readonly addresses: ReadonlyMap<string, readonly Address[]>;
  readonly diagnostics: readonly Diagnostic[];
}

/** Finds out which nodes the options mean; `readHosts` gives their addresses. */
export function chooseFleet(
  options: FleetOptions,
  { nodes: known }: Pick<Prepared, 'nodes'>,
  readHosts: (nodes: readonly string[]) => Hosts,
): Fleet {
  const all = options.allNodes ? [...known.keys()] : [...new Set(options.node)];
  const shard = options.shard === undefined ? undefined : parseShard(options.shard);
  const nodes = all.filter((name) => !shard || isInShard(name, shard)).sort();
  const host = readHosts(nodes);
  const unknown = all.filter((name) => !known.has(name));
  return {
    nodes,
    named: options.node ?? [],
    total: all.length,
    shard,
    hostAddresses: host.addresses,
    diagnostics: [
      ...all.flatMap((name) => checkNodeName(name) ?? []),
      ...(all.length === 0 ? [diagnose('no-node', { problem: known.size > 0 ? 'none-named' : 'none-held' })] : []),
      ...(options.shard !== undefined && !shard ? [diagnose('bad-shard', { shard: options.shard })] : []),
      ...(options.prune && !options.allNodes ? [diagnose('bad-prune', {})] : []),
      ...(unknown.length > 0 && known.size === 0 ? [diagnose('no-node-object', { of: 'fleet', names: unknown })] : []),
      ...host.diagnostics,
    ],
  };
}

/** What is wrong with a name after --node; undefined for nothing. */
export function checkNodeName(name: string): Diagnostic | undefined {
  return isName(name, 'subdomain')
    ? undefined
    : diagnose('bad-name', { field: '--node', value: name, rule: 'subdomain' });
}
