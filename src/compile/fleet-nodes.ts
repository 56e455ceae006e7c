import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { Shard } from '../fleet/shard.ts';
import { isInShard, parseShard } from '../fleet/shard.ts';
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

/** The addresses of many nodes, and what is wrong with what tells them. */
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
      ...(all.length === 0 ? [known.size > 0 ? noNodeNamed : noNodes] : []),
      ...(options.shard !== undefined && !shard ? [badShard(options.shard)] : []),
      ...(options.prune && !options.allNodes ? [pruneWhat] : []),
      ...(unknown.length > 0 && known.size === 0 ? [noNodeObjects(unknown)] : []),
      ...host.diagnostics,
    ],
  };
}

/** What is wrong with a name after --node; undefined for nothing. */
export function checkNodeName(name: string): Diagnostic | undefined {
  return isName(name, 'subdomain') ? undefined : badName(name);
}

function badName(name: string): Diagnostic {
  const text = `--node ${JSON.stringify(name)}: a node's name is lower-case letters, digits, dashes and dots`;
  return { severity: 'error', code: 'bad-name', text };
}

const noNodeNamed: Diagnostic = {
  severity: 'error',
  code: 'no-node',
  text: 'no node to compile for: --shard needs --all-nodes or --node',
};

const noNodes: Diagnostic = {
  severity: 'error',
  code: 'no-node',
  text: 'no node to compile for: the input holds no Node object; add the output of kubectl get nodes -o yaml, or name nodes with --node',
};

function badShard(shard: string): Diagnostic {
  const text = `--shard ${shard}: write I/N for part I of N; I counts from 0, so the last of eight is 7/8`;
  return { severity: 'error', code: 'bad-shard', text };
}

export const pruneWhat: Diagnostic = {
  severity: 'error',
  code: 'bad-prune',
  text: '--prune needs --all-nodes: only then is it known which nodes are gone',
};

function noNodeObjects(names: readonly string[]): Diagnostic {
  const some = names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '');
  const text = `no Node object in the input for ${some}: zone, pod CIDRs and addresses are unknown there`;
  return { severity: 'note', code: 'no-node-object', text };
}
