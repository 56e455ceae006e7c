import { groupBy } from '../cluster/group-by.ts';
import { diffStates } from '../kernel/delta.ts';
import type { Family } from '../kernel/family.ts';
import type { TableName } from '../kernel/iptables/iptables.ts';
import type { Place } from '../kernel/place.ts';
import type { KernelState } from '../kernel/state.ts';
import { findLeftChains } from '../kube-proxy/chains.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { alignSides, diffAskedTimeouts, diffSettings, dropUnusedFamily } from './align-sides.ts';
import { separate, type StatePair } from './foreign-items.ts';
import { extentOf, findGaps, type Extent, type Gap } from './not-compared.ts';
import type { ChangeKind, KernelChange, OwnedChange } from './changes/kernel-change.ts';
import { listKernelChanges } from './changes/list-changes.ts';
import { findOwners, renameOwners, type SideOwners } from './changes/owners.ts';
import { alignComments } from './align-comments.ts';
import { diffServices, type ServicePortChange, type ServiceReason } from './service-changes.ts';
import type { NodePort } from '../kube-proxy/node-port-listeners.ts';
import { findNodePortReasons } from './node-port-reasons.ts';
import { factsOfCluster, type PortFacts } from './port-facts.ts';
import { nameServers } from './name-servers.ts';
import type { Side } from './compared-side.ts';

/** How two sides differ, as data. */
export interface SideDiff {
  /** Sorted by label. */
  readonly servicePorts: readonly ServicePortDiff[];
  /** What belongs to no Service. */
  readonly base: readonly KernelChange[];
  /** What is neither kube-proxy's nor a Service's; empty unless it was asked for. */
  readonly foreign: readonly KernelChange[];
  /** What iptables mode left on the node of a dump, which is in IPVS mode. */
  readonly leftovers: LeftoverChanges;
  /** Whether the reasons were read back from the states, which show no more than that. */
  readonly isReadBack: boolean;
  /** How many rules differ in nothing but their comments, which is no difference. */
  readonly comments: number;
  /** What a dump does not tell to be kube-proxy's or not. */
  readonly unaccounted: readonly KernelChange[];
  /** What was not compared, since one of the sides cannot tell it. */
  readonly gaps: readonly Gap[];
  readonly extent: Extent;
  /** The Service ports that were read back, where they are all that was compared. */
  readonly compared: ComparedPorts | undefined;
}

/** Service ports that both of two sides show. */
interface ComparedPorts {
  readonly all: number;
  /** Those of them of which a side does not show the endpoints. */
  readonly withoutEndpoints: number;
}

/** Chains of a mode that a node has no more. */
interface LeftoverChanges {
  /** Those that nothing jumps to. */
  readonly dead: readonly KernelChange[];
  /** Those that packets still come to. */
  readonly live: readonly KernelChange[];
}

/** What differs of one Service port: why, where both sides have Services, and what that is in the kernel. */
export interface ServicePortDiff {
  readonly label: string;
  readonly formerLabel: string | undefined;
  readonly change: ChangeKind;
  readonly reasons: readonly ServiceReason[];
  readonly kernel: readonly KernelChange[];
  /** What differs in the kernel besides, which the reasons tell all of. */
  readonly follows: readonly KernelChange[];
  readonly place: Place | undefined;
}

type ShownPorts = ReadonlyMap<string, readonly PortFacts[]>;

/** Why Service ports differ that are read back from the states of two sides. */
export interface ReadChanges {
  readonly changes: readonly ServicePortChange[];
  /** The Service ports of one side that are there on the other. */
  readonly compared: ComparedPorts;
  /** Those that each side shows, by label, family by family. */
  readonly shown: { readonly from: ShownPorts; readonly to: ShownPorts };
  /** Whether a change in the kernel is nothing but what these reasons come to. */
  readonly follows: (change: KernelChange, reasons: readonly ServiceReason[]) => boolean;
}

/** Reads the Services of two sides back from their states, where they do not tell which Services they came from. */
export type ReadServices = (from: Side, to: Side, owners: SideOwners) => ReadChanges;

export interface DiffChoices {
  /** Whether what is not kube-proxy's is compared too. */
  readonly foreign: boolean;
  readonly readServices?: ReadServices;
}

/** Compares two sides by meaning: what one of them cannot tell, and what is not kube-proxy's, takes no part. */
export function diffSides(one: Side, other: Side, options: DiffChoices): SideDiff {
  const { from, to, untoldSysctls } = alignSides(one, other);
  const { own, foreign, untold, whole } = separate(from, to);
  const told = from.services && to.services ? diffServices(from.services, to.services) : [];
  const newLabels = new Map(
    told.flatMap(({ label, formerLabel }) => (formerLabel === undefined ? [] : [[formerLabel, label] as const])),
  );
  const owners = {
    from: renameOwners(findOwners(statesOf(from, to)), newLabels),
    to: findOwners(statesOf(to, from)),
  };
  const listPair = (pair: StatePair) =>
    listKernelChanges(diffStates(pair.from, pair.to), owners).map(({ change }) => change);
  const { delta: ownDelta, comments } = alignComments(own);
  const delta = { ...ownDelta, ipvsTimeouts: diffAskedTimeouts(own) };
  const { left, others } = takeLeftovers(listKernelChanges(delta, owners), from, to);
  const kept = dropUnusedFamily(others, from, to);
  const read = from.services && to.services ? undefined : options.readServices?.(from, to, owners);
  const gaps = [...findGaps({ from, to, whole, untoldSysctls }), ...kept.gaps].filter(
    ({ doubt }) => options.foreign || doubt?.kind !== 'other-table',
  );
  const doubtful = listKernelChanges(diffStates(untold.from, untold.to), owners);
  // Whose Service port is told of is told of with it.
  const explained = new Set(read?.changes.map(({ label }) => label));
  const isExplained = ({ owner }: OwnedChange): boolean => owner !== undefined && explained.has(owner);
  const known = knowledgeOf(from, to, read?.shown);
  const { servicePorts, base } = groupChanges(
    [...kept.changes, ...doubtful.filter(isExplained)],
    read?.changes ?? told,
    known,
    read?.follows,
  );
  const reasonsOf = findNodePortReasons(from, to);
  const extent = extentOf(gaps, own, from, to);
  const portsAlone = extent === 'nothing' && read && read.compared.all > 0 ? read.compared : undefined;
  return {
    servicePorts: servicePorts.map((each) => withFacts(withNodePorts(each, known, reasonsOf), known)),
    base: [...base, ...diffSettings(from, to)],
    foreign: options.foreign ? listPair(foreign) : [],
    leftovers: left,
    comments,
    unaccounted: doubtful.filter((each) => !isExplained(each)).map(({ change }) => change),
    isReadBack: read !== undefined,
    gaps,
    extent: portsAlone ? 'part' : extent,
    compared: portsAlone,
  };
}

/** Whether there is nothing to tell. */
export function isSame(diff: SideDiff): boolean {
  return [diff.servicePorts, diff.base, diff.foreign, diff.leftovers.dead, diff.leftovers.live, diff.unaccounted].every(
    (found) => found.length === 0,
  );
}

/** The states that tell what the items of `side` are there for; its own say comes first. */
function statesOf(side: Side, other: Side) {
  return [side.labels ?? [], side.state, other.labels ?? [], other.state, namesFor(side, other)].flat();
}

/**
 * The names of a dump's virtual servers by the Services of the other side, where that is of a mode that has no virtual servers to
 * go by: without them a change of mode would look like as many Services removed and added.
 */
function namesFor(side: Side, other: Side): readonly KernelState[] {
  if (side.services || !other.services) return [];
  if (side.state.virtualServers.length === 0 || other.state.virtualServers.length > 0) return [];
  return [nameServers(side.state, other.services.cluster)];
}

/** Parts what iptables mode left on the node of a dump from what differs besides. */
function takeLeftovers(
  changes: readonly OwnedChange[],
  from: Side,
  to: Side,
): { readonly left: LeftoverChanges; readonly others: readonly OwnedChange[] } {
  const keyOf = (family: Family, table: TableName, chain: string): string => `${family} ${table} ${chain}`;
  const chains = [from, to]
    .filter(({ kind }) => kind === 'dump')
    .flatMap(({ state }) => findLeftChains(state, modeOfState(state)));
  const isReached = new Map(
    chains.map(({ family, table, chain, reachedFrom }) => [keyOf(family, table, chain.name), reachedFrom.length > 0]),
  );
  const stateOf = ({ change }: OwnedChange): 'dead' | 'live' | undefined => {
    const reached =
      change.kind === 'chain' ? isReached.get(keyOf(change.family, change.table, change.chain)) : undefined;
    return reached === undefined ? undefined : reached ? 'live' : 'dead';
  };
  const take = (state: 'dead' | 'live'): readonly KernelChange[] =>
    changes.filter((each) => stateOf(each) === state).map(({ change }) => change);
  return {
    left: { dead: take('dead'), live: take('live') },
    others: changes.filter((each) => stateOf(each) === undefined),
  };
}

/** What the sides tell of Service ports, besides why they differ. */
interface Knowledge {
  /** Those that a side has, be it as a Service or in its kernel. */
  readonly before: ShownPorts;
  readonly after: ShownPorts;
  /** By label, where the port is written in manifests; those of the side TO count first. */
  readonly places: ReadonlyMap<string, Place>;
}

function knowledgeOf(from: Side, to: Side, read: ReadChanges['shown'] | undefined): Knowledge {
  const ports = [from, to].flatMap(({ services }) => services?.cluster.servicePorts ?? []);
  const places = ports.flatMap(({ label, places: at }) => (at ? [[label, at.port] as const] : []));
  return {
    before: shownPorts(from, read?.from),
    after: shownPorts(to, read?.to),
    places: new Map(places),
  };
}

function shownPorts({ services }: Side, read: ShownPorts = new Map()): ShownPorts {
  return services ? factsOfCluster(services.cluster) : read;
}

/** Tells of a Service port that is there on one side alone what it has. */
function withFacts(diff: ServicePortDiff, { before, after }: Knowledge): ServicePortDiff {
  const families = diff.change === 'changed' ? undefined : (diff.change === 'added' ? after : before).get(diff.label);
  if (families === undefined) return diff;
  return { ...diff, reasons: [...diff.reasons, { kind: 'facts', families }] };
}

/** Tells of the node ports that both sides have, where a Service port differs, on which addresses they listen. */
function withNodePorts(
  diff: ServicePortDiff,
  { before, after }: Knowledge,
  reasonsOf: ReturnType<typeof findNodePortReasons>,
): ServicePortDiff {
  const { label, formerLabel, reasons } = diff;
  const old = nodePortsOf(before.get(formerLabel ?? label));
  const kept = nodePortsOf(after.get(label)).filter((one) =>
    old.some(({ family, protocol, port }) => family === one.family && protocol === one.protocol && port === one.port),
  );
  return kept.length === 0 ? diff : { ...diff, reasons: [...reasons, ...reasonsOf(kept)] };
}

function nodePortsOf(families: readonly PortFacts[] = []): readonly NodePort[] {
  return families.flatMap(({ family, protocol, nodePort }) =>
    nodePort === undefined ? [] : [{ family, protocol, port: nodePort }],
  );
}

function groupChanges(
  changes: readonly OwnedChange[],
  reasons: readonly ServicePortChange[],
  { before, after, places }: Knowledge,
  follows: ReadChanges['follows'] = () => false,
): Pick<SideDiff, 'servicePorts' | 'base'> {
  // '' for what belongs to no Service port.
  const byOwner = groupBy(changes, ({ owner = '' }) => owner);
  const kernelOf = (label: string) => (byOwner.get(label) ?? []).map(({ change }) => change);
  const explained = new Map(reasons.map((each) => [each.label, each]));
  // What is new in the parts that were compared may have been there in others: in another mode's, above all.
  const kindOfPort = (label: string): ChangeKind => {
    const kind = kindOfAll(kernelOf(label));
    const isStale = (kind === 'added' && before.has(label)) || (kind === 'removed' && after.has(label));
    return isStale ? 'changed' : kind;
  };
  const labels = [...new Set([...explained.keys(), ...byOwner.keys()])].filter(Boolean).toSorted();
  return {
    base: kernelOf(''),
    servicePorts: labels.map((label) => {
      const list = kernelOf(label);
      const known = explained.get(label);
      const isFollowing = (change: KernelChange): boolean => known !== undefined && follows(change, known.reasons);
      return {
        label,
        formerLabel: known?.formerLabel,
        change: known?.change ?? kindOfPort(label),
        reasons: known?.reasons ?? [],
        kernel: list.filter((change) => !isFollowing(change)),
        follows: list.filter(isFollowing),
        place: known?.place ?? places.get(label),
      };
    }),
  };
}

/**
 * Without Services to compare, or where neither side has it among them: a Service port is new where all that it is in the
 * kernel is.
 */
function kindOfAll(changes: readonly KernelChange[]): ChangeKind {
  const kinds = new Set(changes.map(effectOf));
  const [only] = kinds;
  return kinds.size === 1 && only !== undefined ? only : 'changed';
}

/** A Service port only has rules in a chain that it shares: such a chain itself does not change its kind. */
function effectOf(change: KernelChange): ChangeKind {
  if (change.kind !== 'chain' || change.change !== 'changed') return change.change;
  if (change.rulesFrom === 0 && change.rulesTo > 0) return 'added';
  return change.rulesTo === 0 && change.rulesFrom > 0 ? 'removed' : 'changed';
}
