import {
  BundleMemo,
  type BundleTexts,
  makeBundle,
  type Bundle,
  type BundleContent,
  type BundleInputs,
} from '../bundle/make-bundle.ts';
import { type Diagnostic, diagnose } from '../diagnostics/diagnostic.ts';
import type { FeatureGates } from '../kube-proxy/releases.ts';
import { checkNodeName, describeListenersOfNodes } from './chosen-nodes.ts';
import type { IpFamilyChoice } from './choose-families.ts';
import { settleNodes } from './compile.ts';
import { compileInputs, NodeMemo, settleInputs, type Prepared } from './compile-node.ts';
import type { LoadedInputs } from './load-texts.ts';
import { isInShard, parseShard, type Shard } from '../bundle/fleet/shard.ts';
import type { Address } from '../kernel/address.ts';

/** A node of the fleet, whose bundle is not made yet. */
export interface FleetNode {
  readonly node: string;
  readonly inputs: BundleInputs;
  readonly gates: FeatureGates;
  /** The texts that the bundles have in common. */
  readonly texts: BundleTexts;
  readonly compile: () => FleetBundle;
}

/** One node's bundle. */
export interface FleetBundle {
  readonly bundle: Bundle;
  readonly content: BundleContent;
}

/** The bundles of many nodes, and all that there is to say of the input. */
export interface FleetCompilation {
  readonly diagnostics: readonly Diagnostic[];
  /** Undefined if a diagnostic is an error. */
  readonly nodes: Iterable<FleetNode> | undefined;
}

/** Compiles for many nodes what has been read and checked. */
export function compileFleet(loaded: LoadedInputs, fleet: Fleet, ipFamily: IpFamilyChoice): FleetCompilation {
  const nodes = { names: fleet.nodes, flag: fleet.named };
  const { preparedFor, diagnostics } = settleNodes(loaded, nodes, fleet.diagnostics);
  if (!preparedFor) return { diagnostics, nodes: undefined };
  return {
    diagnostics: [...describeListenersOfNodes(loaded.prepared), ...diagnostics],
    nodes: makeNodes(fleet, preparedFor, ipFamily),
  };
}

function* makeNodes(
  { nodes, hostAddresses }: Fleet,
  preparedFor: (node: string) => Prepared,
  ipFamily: IpFamilyChoice,
): Generator<FleetNode> {
  const nodeMemo = new NodeMemo();
  const texts = new BundleMemo();
  for (const node of nodes) {
    const prepared = preparedFor(node);
    const inputs = settleInputs(prepared, { nodeName: node, hostAddresses: hostAddresses.get(node), ipFamily });
    const compile = (): FleetBundle => {
      const content = compileInputs(prepared, inputs, nodeMemo);
      return { bundle: makeBundle(content, texts), content };
    };
    yield { node, inputs, gates: prepared.gates, texts, compile };
  }
}

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
