import type { Node, ProxySettings } from '../../cluster/objects.ts';
import { compileLoaded } from './compile.ts';
import { chooseNodeName, compileNode, prepareWithSettings } from './compile-node.ts';
import { releaseOfNode, releaseRunBy, type LoadOptions, type LoadedInputs } from './load-texts.ts';
import { isError, type Finding } from '../../base/findings/finding.ts';
import { diffSides } from '../../ask/diff/diff-sides.ts';
import type { CompiledSnapshot, Snapshot } from '../snapshot.ts';
import type { RangeFlags } from '../../input/configuration/range-flags.ts';
import { checkMode } from '../../input/configuration/read-settings.ts';
import { families as bothFamilies, isLoopback, parseAddress } from '../../kernel/address.ts';
import { findTable } from '../../kernel/nftables/table.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { modeOfState } from '../../kube-proxy/evidence.ts';
import { nftTableName } from '../../kube-proxy/nft-table.ts';
import {
  type Release,
  behavioursOf,
  concernsMode,
  isModeOf,
  newestRelease,
  releases,
  type FeatureGates,
} from '../../kube-proxy/releases.ts';
import { defaultSettings, flagsOfSettings, settingsOver, hasProxyFlags } from '../../settings/table.ts';
import type { ModeSource, ProxyMode } from '../../kube-proxy/modes.ts';
import type { ReleaseShownBy } from '../../base/findings/files.ts';
import { failedReading, openManifests, openNodes, readingOf, type Opened, type Reading } from './stored-side.ts';
import { remadeSlices } from '../../cluster/stale-slices.ts';
import { nodesOfPods, saysNode } from './assumptions.ts';

interface LikeOptions extends LoadOptions {
  readonly node?: string | undefined;
  /** Flags that stand for what this side takes from a mode, release or configuration. */
  readonly taken?: Readonly<Record<string, string>> | undefined;
}

export function optionsLike<T extends LikeOptions>(like: Snapshot | undefined, options: T): T {
  const assume = canAssumeBeside(like, options) && options.assume;
  const node = options.node ?? nameOfNode(like);
  const dualStackAs = like && isDualStack(like) ? like.name : options.dualStackAs;
  return { ...options, ...rangesLike(like, options), assume, node, dualStackAs };
}

/** Opens manifests for a mode, release or configuration. If the other side was compiled, it decides everything that these do not set. */
export function openLike(name: string, loaded: LoadedInputs, like: Snapshot | undefined, options: OpenedLike): Opened {
  const namesMode = loaded.configured || options.proxyMode !== undefined;
  if (!like || (like.kind === 'dump' && namesMode)) return openManifests(name, loaded, options);
  return openNodes(loaded, options, (node) => compileLike(name, loaded, like, { ...options, node }));
}

type OpenedLike = LikeOptions & { readonly allNodes?: boolean | undefined };

/** Returns the node that a side names for the other side. */
export function nameOfNode(side: Snapshot | undefined): string | undefined {
  return side?.node?.name || undefined;
}

type Followed = Pick<LoadOptions, 'kubernetesVersion'>;

/** Reports whether a side's own objects set what a mode, release or configuration on the other side sets. */
export function namesItself({ configured, nodes }: LoadedInputs, { kubernetesVersion }: Followed): boolean {
  return kubernetesVersion === undefined ? configured : [...nodes.values()].some(releaseRunBy);
}

export function flagsOfFollowed({ kubernetesVersion }: Followed, { settings }: LoadedInputs) {
  return kubernetesVersion === undefined ? flagsOfSettings(settings) : { '--kubernetes-version': kubernetesVersion };
}

/** Compiles manifests. Settings that no flag sets, such as the mode, are taken from the other side. */
export function compileLike(
  path: string,
  given: LoadedInputs,
  like: Snapshot | undefined,
  options: LikeOptions,
): Reading {
  const read = inModeOf(like, given, options);
  const { node } = options;
  const isDual = options.dualStackAs !== undefined || (like !== undefined && isDualStack(like));
  const ipFamily = options.ipFamily === 'auto' && isDual ? 'dual' : options.ipFamily;
  const takenFamily = read.assumedCluster?.dualStack?.by === 'side' ? { '--ip-family': 'dual' } : {};
  const likeNode = nameOfNode(like);
  const settings = settingsLike(like, read, options);
  const isTaken = settings !== read.settings;
  const modeNote = !isTaken && read.modeNote?.code === 'default-mode' ? read.modeNote : undefined;
  const loaded = { ...read, modeNote };
  const assumed = isTaken ? assumedLike(like?.assumed, options) : {};
  const named = assumed.isModeAssumed ? 'nothing' : modeNote?.arguments.named;
  const modeFrom: ModeSource | undefined = isTaken && like?.kind === 'dump' ? 'dump' : named;
  const finish = (reading: Reading, takenSettings: Readonly<Record<string, string>> = {}): Reading => {
    const taken = { ...options.taken, ...takenFamily, ...takenSettings };
    const side = reading.side?.kind === 'manifests' ? reading.side.with({ taken, ...assumed }) : reading.side;
    return { ...reading, side, diagnostics: reading.diagnostics.filter((each) => each !== modeNote) };
  };
  if (!like || loaded.diagnostics.some(isError)) {
    const compiled = compileLoaded(loaded, { node, ipFamily, name: path });
    return finish(readingOf(loaded, compiled, modeFrom));
  }
  const nodeName = node ?? likeNode ?? chooseNodeName(undefined, loaded);
  const ofNode = loaded.nodes.get(nodeName);
  const hostAddresses = loaded.hostAddresses ?? hostAddressesOf(like, ofNode);
  const ofHost = { ...loaded, hostAddresses };
  const prepareFor = (release: Release) => prepareWithSettings(ofHost, { ...settings, release });
  const found = findRelease(loaded, nodeName, like, settings.mode, (release) =>
    compileNode(prepareFor(release), nodeName, { ipFamily }),
  );
  const { release } = found;
  const { version } = loaded;
  if (release === undefined) return failedReading(loaded, [found.diagnostic, ...loaded.diagnostics]);
  const refused = checkMode(settings.mode, { release, gates: loaded.gates });
  if (refused.length > 0) return failedReading(loaded, [...refused, ...loaded.diagnostics]);
  const asOther: LoadedInputs = { ...prepareFor(release), version: release };
  const compiled = compileLoaded(asOther, { node, likeNode, ipFamily, name: path });
  return finish(readingOf(loaded, compiled, modeFrom, found.shownBy), {
    ...(isTaken ? flagsOfSettings(settings) : {}),
    ...(version === undefined && release !== newestRelease ? { '--kubernetes-version': release } : {}),
  });
}

function assumedLike(
  assumed: Snapshot['assumed'],
  { proxyMode, clusterCidr }: LikeOptions,
): Parameters<CompiledSnapshot['with']>[0] {
  const { mode = false, clusterCIDRs = [] } = assumed ?? {};
  return {
    ...(mode && proxyMode === undefined && { isModeAssumed: true }),
    ...(clusterCIDRs.length > 0 && clusterCidr === undefined && { assumedClusterCIDRs: clusterCIDRs }),
  };
}

/** Returns the release of the flag, or else the one that the other side shows. `shownBy`: what shows it, if no flag names one. */
function findRelease(
  { version, gates, nodes }: LoadedInputs,
  nodeName: string,
  like: Snapshot,
  mode: ProxyMode,
  compileBy: (release: Release) => Snapshot,
):
  | { readonly release: Release; readonly shownBy?: ReleaseShownBy | undefined }
  | { readonly release: undefined; readonly diagnostic: Finding; readonly shownBy?: undefined } {
  const node = nodes.get(nodeName);
  const ofNode: ReleaseShownBy = { by: 'node', node: nodeName };
  if (version === 'auto') {
    const release = releaseOfNode(node, nodeName);
    return typeof release === 'object' ? { release: undefined, diagnostic: release } : { release, shownBy: ofNode };
  }
  if (version !== undefined) return { release: version };
  if (like.kind !== 'dump') return { release: like.settings?.release ?? newestRelease };
  const named = releaseRunBy(node);
  const release = matchDump(like, distinctReleases(named === undefined ? [] : [named], gates, mode), compileBy);
  if (release === named) return { release, shownBy: ofNode };
  if (named === undefined && release === newestRelease) return { release };
  return { release, shownBy: { by: 'dump', notThatOfNode: named } };
}

function matchDump(dump: Snapshot, candidates: readonly Release[], compileBy: (release: Release) => Snapshot): Release {
  let best: { readonly release: Release; readonly differences: number } | undefined;
  for (const release of candidates) {
    const { servicePorts, base } = diffSides(dump, compileBy(release), { foreign: false });
    const differences = servicePorts.reduce(
      (sum, { kernel, follows }) => sum + kernel.length + follows.length,
      base.length,
    );
    if (best === undefined || differences < best.differences) best = { release, differences };
    if (differences === 0) break;
  }
  return best?.release ?? newestRelease;
}

/** Returns one release for each distinct behaviour in the mode. The preferred releases come first, then the others from new to old. */
function distinctReleases(preferred: readonly Release[], gates: FeatureGates, mode: ProxyMode): readonly Release[] {
  const seen = new Set<string>();
  return [...preferred, newestRelease, ...releases.toReversed()].filter((release) => {
    if (!isModeOf(mode, release)) return false;
    const key = [...behavioursOf(release, gates)].filter((behaviour) => concernsMode(behaviour, mode)).join();
    return !seen.has(key) && seen.add(key);
  });
}

/**
 * Reports whether a side may have assumptions when it is compared with `like`. The state of a real node follows from its cluster, not from
 * assumptions. A bundle may have been compiled with ranges that these flags give.
 */
function canAssumeBeside(like: Snapshot | undefined, options: LikeOptions): boolean {
  if (!like) return true;
  const { serviceClusterIpRange, serviceNodePortRange, loadBalancerIpRange, assumeEndpoints } = options;
  const flags = [serviceClusterIpRange, serviceNodePortRange, loadBalancerIpRange, assumeEndpoints];
  const { services = [], pods, node = false } = like.assumed ?? {};
  const isAssumed = node || services.length + (pods?.size ?? 0) > 0;
  return isAssumed && flags.every((flag) => flag === undefined);
}

function rangesLike(like: Snapshot | undefined, { serviceClusterIpRange }: LikeOptions): RangeFlags {
  const ranges = like?.cluster?.serviceCidrs.filter(({ from }) => from === '--service-cluster-ip-range') ?? [];
  if (ranges.length === 0 || serviceClusterIpRange !== undefined) return {};
  return { serviceClusterIpRange: ranges.map(({ network }) => network.text).join(',') };
}

/** Reads the flags again for the other side's mode, because the mode decides which flags count and what they mean. */
function inModeOf(like: Snapshot | undefined, read: LoadedInputs, options: LikeOptions): LoadedInputs {
  const mode = like && modeOfSide(like);
  const { configured, settings } = read;
  if (configured || mode === undefined || options.proxyMode !== undefined || !hasProxyFlags(options)) return read;
  return mode !== settings.mode && isModeOf(mode, settings.release) ? read.inMode(mode) : read;
}

function modeOfSide(side: Snapshot): ProxyMode | undefined {
  return side.kind === 'dump' ? modeOfState(side.state) : side.settings.mode;
}

/** Returns the other side's settings, unless a configuration sets its own. Flags override single settings. A dump shows only a mode. */
function settingsLike(
  like: Snapshot | undefined,
  { configured, settings }: LoadedInputs,
  options: LikeOptions,
): ProxySettings {
  if (configured || !like) return settings;
  if (like.kind !== 'dump')
    return { ...settingsOver(like.settings, settings, options), release: like.settings.release };
  const mode = modeOfSide(like);
  if (mode === undefined || options.proxyMode !== undefined) return settings;
  return { ...settingsOver(defaultSettings(mode), settings, options), release: settings.release };
}

/** Reports whether kube-proxy handles both families on a node: both then have the chain or table that kube-proxy makes first. */
function isDualStack({ kind, families, state: { iptables, nftables } }: Snapshot): boolean {
  if (kind !== 'dump') return families.length === 2;
  return bothFamilies.every(
    (family) =>
      iptables[family]?.nat?.has(baseChains.postrouting) === true ||
      findTable(nftables, family, nftTableName) !== undefined,
  );
}

/**
 * Returns the node's addresses from the other side, if that side knows them better than the manifests' Node object does. That is the case
 * if there is no Node, or if that side has a list from the node itself, such as from `ip addr`, which includes loopback addresses. If the
 * Node has an address that is not in the list, the list may be another node's.
 */
function hostAddressesOf({ kind, hostAddresses: known = [] }: Snapshot, node: Node | undefined) {
  const own = (node?.addresses ?? []).filter(({ type }) => type === 'InternalIP');
  const isOfNode = own.every(({ address: text }) => known.some((each) => each.text === parseAddress(text)?.text));
  const isListed = kind === 'dump' || node === undefined || known.some(isLoopback);
  return isListed && isOfNode && known.length > 0 ? known : undefined;
}

/** What the other side shows about the cluster that both sides have in common. A fact that makes no difference is undefined. */
export type Beside = Pick<LoadOptions, 'dualStackAs' | 'nodesBeside' | 'remade' | 'takenNodes'>;

type ReadSide = Pick<LoadedInputs, 'assumedCluster' | 'inputs'>;

/** Returns those facts from the other side that change `side`. `name`: the other side's name. */
export function factsBeside(side: ReadSide, other: ReadSide, name: string): Beside {
  const [own, others] = [side.assumedCluster, other.assumedCluster];
  const takesNodes = own === undefined && (others?.nodes.length ?? 0) > 0 && !saysNode(side.inputs);
  const known = nodesOfPods(side.inputs);
  const nodes = own || takesNodes ? nodesOfPods(other.inputs).filter((node) => !known.includes(node)) : [];
  const isSingle = own ? own.families.length === 1 : takesNodes;
  return {
    dualStackAs: others?.families.length === 2 && isSingle ? name : undefined,
    nodesBeside: takesNodes || nodes.length > 0 ? nodes : undefined,
    remade: remadeSlices(side.inputs, other.inputs),
    takenNodes: takenNodes(side, other),
  };
}

/** Returns the other side's Nodes if this side has none, because both sides belong to one cluster. */
export function takenNodes(side: ReadSide, { inputs: { nodes } }: ReadSide): Beside['takenNodes'] {
  return side.inputs.nodes.length === 0 && nodes.length > 0 ? nodes : undefined;
}
