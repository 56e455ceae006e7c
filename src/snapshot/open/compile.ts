import { BundleMemo, type BundleTexts } from '../../bundle/make-bundle.ts';
import type { CompiledSnapshot } from '../snapshot.ts';
import { isError, type Finding, diagnose, keyOfFault, wrongValue } from '../../base/findings/finding.ts';
import { mergeDiagnostics } from '../../input/sort-diagnostics.ts';
import {
  checkNodeName,
  checkNodes,
  type CheckedNodes,
  describeListenersOfNodes,
  describeLocalhostListeners,
  describeNodeGaps,
  findUnreachableNodePorts,
} from './chosen-nodes.ts';
import {
  checkLoading,
  chooseNodeName,
  compileNode,
  NodeMemo,
  prepareForRelease,
  type Prepared,
} from './compile-node.ts';
import {
  type LoadOptions,
  type LoadedInputs,
  checkHosts,
  checkNamespace,
  type Hosts,
  type ReadHosts,
  parseVersionChoice,
  releaseOfNode,
  releaseRunBy,
  startingRelease,
} from './load-texts.ts';
import type { Release, FeatureGates } from '../../kube-proxy/releases.ts';
import { parseShard, isInShard, type Shard } from '../../bundle/fleet/shard.ts';
import { parseAssignmentRanges, parsePodNetworks } from '../../input/configuration/range-flags.ts';
import { resolveSettings } from '../../input/configuration/read-settings.ts';
import type { IpFamilyChoice } from './assumptions.ts';

export interface NodeOptions extends Pick<LoadOptions, 'ipFamily'> {
  /** The default is hostnameOverride, or the only Node in the manifests. */
  readonly node?: string | undefined;
  readonly likeNode?: string | undefined;
  readonly name?: string | undefined;
}

export interface Compilation {
  /** Undefined if one of the diagnostics is an error. */
  readonly snapshot: CompiledSnapshot | undefined;
  readonly diagnostics: readonly Finding[];
  /** Finds facts about the node that the input lacks. This compiles the node's state. */
  readonly gaps: () => readonly Finding[];
}

export function compileLoaded(
  loaded: LoadedInputs,
  { node, likeNode, ipFamily, name }: NodeOptions,
  refusals: readonly Finding[] = [],
  memo?: NodeMemo,
): Compilation {
  const nodeName = chooseNodeName(node ?? likeNode, loaded);
  const named = node === undefined ? undefined : [node];
  const { preparedFor, diagnostics } = prepareChecked(loaded, { names: [nodeName], flag: named }, refusals);
  if (!preparedFor) return { snapshot: undefined, diagnostics, gaps: () => [] };
  const prepared = preparedFor(nodeName);
  const snapshot = compileNode(prepared, nodeName, { ipFamily, name }, memo);
  const own = describeNodeGaps(nodeName, prepared);
  const [open, others] = nodeName === '' ? [own, []] : [[], own];
  const gaps = () => [...others, ...describeLocalhostListeners(snapshot)];
  return { snapshot, diagnostics: [...open, ...diagnostics], gaps };
}

export function prepareChecked(loaded: LoadedInputs, nodes: CheckedNodes, refusals: readonly Finding[]) {
  const { modeNote } = loaded;
  const isRead = !loaded.diagnostics.some(isError);
  const found = isRead ? checkNodes(nodes, loaded) : [];
  const { preparedFor: followed, diagnostics: ofReleases } = prepareForNodes(loaded, nodes.names);
  // An object that cannot be read may be a Node.
  const wrong = isRead ? refusals : refusals.filter(({ code }) => code !== 'no-node' && code !== 'no-node-object');
  const { hosts } = loaded;
  const preparedFor = (node: string): Prepared =>
    hosts ? { ...followed(node), hostAddresses: hosts.get(node) } : followed(node);
  const ofPorts = isRead ? findUnreachableNodePorts(nodes.names, loaded, preparedFor) : [];
  const known = [
    ...wrong,
    ...ofPorts,
    ...checkHosts(loaded, nodes.names),
    ...mergeDiagnostics(found, [...ofReleases, ...loaded.diagnostics]),
  ];
  if (known.some(isError)) return { preparedFor: undefined, diagnostics: known };
  return { preparedFor, diagnostics: modeNote ? [modeNote, ...known] : known };
}

/**
 * Prepares the input for each node. Unless a release is named, each node is compiled for the release that it runs; if there is only one
 * node, a diagnostic names this release. With `auto`, every node must name a release.
 */
function prepareForNodes(loaded: LoadedInputs, nodes: readonly string[]) {
  const { version: choice, settings } = loaded;
  if (choice !== undefined && choice !== 'auto') return { preparedFor: () => loaded, diagnostics: [] };
  const ofRelease = new Map<Release, Prepared>([[settings.release, loaded]]);
  const diagnostics: Finding[] = [];
  for (const node of nodes) {
    const known = loaded.nodes.get(node);
    const version = known?.kubernetesVersion ?? '';
    const found = releaseOfNode(known, node);
    const release = typeof found === 'string' ? found : settings.release;
    if (typeof found === 'object' && choice === 'auto') diagnostics.push(found);
    else if (nodes.length === 1 && version !== '')
      diagnostics.push(diagnose('kubernetes-version', { release, node, version }));
    if (!ofRelease.has(release)) ofRelease.set(release, prepareForRelease<Prepared>(loaded, release));
  }
  const preparedFor = (node: string): Prepared =>
    ofRelease.get(releaseRunBy(loaded.nodes.get(node)) ?? settings.release) ?? loaded;
  return { preparedFor, diagnostics: [...checkReleases(loaded, [...ofRelease.values()]), ...diagnostics] };
}

export function checkReleases(
  { checkSettings, diagnostics }: LoadedInputs,
  seen: readonly Prepared[],
): readonly Finding[] {
  const said = new Set(diagnostics.map(keyOfFault));
  return seen
    .flatMap((each) => [...checkSettings(each.settings.release), ...checkLoading(each)])
    .filter((each) => !said.has(keyOfFault(each)) && said.add(keyOfFault(each)));
}

/** Flags that a command passes on. A command may have only some of them. */
export interface GivenFlags extends Partial<LoadOptions>, Omit<FleetChoice, 'node'> {}

function checkShard(shard: string | undefined): readonly Finding[] {
  if (shard === undefined || parseShard(shard)) return [];
  return [wrongValue('--shard', shard, '--shard')];
}

function checkPrune({ prune, allNodes }: Omit<FleetChoice, 'node'>): readonly Finding[] {
  return prune && !allNodes ? [diagnose('bad-prune', {})] : [];
}

export function checkFlags(flags: GivenFlags): readonly Finding[] {
  const { choice } = parseVersionChoice(flags.kubernetesVersion);
  const { diagnostics } = resolveSettings(undefined, flags, startingRelease(choice, []));
  return [...checkValues(flags), ...diagnostics.filter(isError)];
}

/** Checks the release. A side of a comparison may be a release, and then no flag names it. */
function checkVersion({ kubernetesVersion, sideOf }: GivenFlags): ReturnType<typeof parseVersionChoice> {
  return sideOf === 'release'
    ? parseVersionChoice(kubernetesVersion, 'a side', false)
    : parseVersionChoice(kubernetesVersion);
}

export function checkValues(flags: GivenFlags): readonly Finding[] {
  return [
    ...[flags.node ?? []].flat().flatMap((name) => checkNodeName(name) ?? []),
    ...checkShard(flags.shard),
    ...checkPrune(flags),
    ...checkNamespace(flags.namespace),
    ...checkVersion(flags).diagnostics,
    ...parseAssignmentRanges(flags).diagnostics,
    ...parsePodNetworks(flags.assumeEndpoints).diagnostics,
  ].filter(isError);
}

export interface FleetNode {
  readonly node: string;
  readonly snapshot: CompiledSnapshot;
  readonly gates: FeatureGates;
  readonly texts: BundleTexts;
}

/** Compiles a fleet's nodes. `nodes` is undefined after an error. */
export function compileFleetNodes(loaded: LoadedInputs, fleet: Fleet, ipFamily: IpFamilyChoice) {
  const nodes = { names: fleet.nodes, flag: fleet.named };
  const { preparedFor, diagnostics } = prepareChecked(
    { ...loaded, hosts: fleet.hostAddresses },
    nodes,
    fleet.diagnostics,
  );
  if (!preparedFor) return { diagnostics, nodes: undefined };
  const memo = new NodeMemo();
  const texts = new BundleMemo();
  const eachNode = function* (): Generator<FleetNode> {
    for (const node of fleet.nodes) {
      const prepared = preparedFor(node);
      yield { node, snapshot: compileNode(prepared, node, { ipFamily }, memo), gates: prepared.gates, texts };
    }
  };
  return { diagnostics: [...describeListenersOfNodes(loaded), ...diagnostics], nodes: eachNode() };
}

export interface FleetChoice {
  readonly allNodes?: boolean | undefined;
  readonly node?: readonly string[] | undefined;
  readonly shard?: string | undefined;
  readonly prune?: boolean | undefined;
}

export function isFleet({ allNodes, node, shard }: FleetChoice): boolean {
  return allNodes === true || shard !== undefined || (node?.length ?? 0) > 1;
}

export interface Fleet {
  readonly nodes: readonly string[];
  readonly named: readonly string[];
  readonly total: number;
  readonly shard: Shard | undefined;
  readonly hostAddresses: Hosts['addresses'];
  readonly diagnostics: readonly Finding[];
}

export function chooseFleet(
  options: FleetChoice,
  { nodes: known }: Pick<Prepared, 'nodes'>,
  readHosts: ReadHosts,
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
      ...(all.length === 0 ? [diagnose('no-node', { problem: 'none-chosen' })] : []),
      ...checkShard(options.shard),
      ...checkPrune(options),
      ...(unknown.length > 0 && known.size === 0
        ? [diagnose('no-node-object', { names: unknown, lacksAddresses: false, listensOnAll: false })]
        : []),
      ...host.diagnostics,
    ],
  };
}
