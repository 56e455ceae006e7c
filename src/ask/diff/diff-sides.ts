import { type OtherPart, otherParts } from '../../base/findings/answers.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { type Cluster, portAddresses, type ServiceInfo, serviceName, type ShownPort } from '../../cluster/model.ts';
import { fullName } from '../../cluster/objects.ts';
import { isForeignDoubt } from '../../dumps/dump.ts';
import type { Rule } from '../../kernel/iptables/iptables.ts';
import { diffStates, jumpChain, type KernelState } from '../../kernel/state.ts';
import { parseServiceChain } from '../../kube-proxy/chain-names.ts';
import { modeOfState } from '../../kube-proxy/evidence.ts';
import { findLeftChains } from '../../kube-proxy/left-behind.ts';
import { findOwners, indexChains, type Owners, type SideOwners } from '../../kube-proxy/owners.ts';
import { dnatEndpoint } from '../../snapshot/decompile-iptables.ts';
import { decompile } from '../../snapshot/decompile.ts';
import { type DecompiledPort, nodePortPlace } from '../../snapshot/decompiled-port.ts';
import { nameServers, weighServersOfSides } from '../../snapshot/server-owners.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { ChangeKind, KernelChange } from '../changes/kernel-change.ts';
import { listKernelChanges } from '../changes/list-changes.ts';
import { alignSides, diffAligned, diffNodeAddresses, diffSettings, dropUnusedFamily } from './align-sides.ts';
import { coverForServices, separate, type StatePair } from './foreign-items.ts';
import { type ComparisonGap, type Extent, extentOf, findGaps } from './not-compared.ts';
import { diffServices, type ServicePortChange } from './service-changes.ts';
import {
  diffEndpointStates,
  diffFields,
  type EndpointState,
  findNodePortReasons,
  type ServiceReason,
  uniqueReasons,
} from './service-reasons.ts';

interface ReadChanges {
  readonly changes: readonly ServicePortChange[];
  readonly compared: { readonly all: number; readonly withoutEndpoints: number };
  readonly shown: Readonly<Record<'from' | 'to', ReadonlyMap<string, readonly ShownPort[]>>>;
  readonly follows: (change: KernelChange, reasons: readonly ServiceReason[]) => boolean;
}

/**
 * Compares the Service ports of two sides as their states show them. This serves sides that do not record their Services, such as dumps.
 * Facts about a port that a state hides do not count as differences.
 */
function compareReadBack(from: Snapshot, to: Snapshot, owners: SideOwners): ReadChanges {
  const weighServer = weighServersOfSides(from, to);
  const read = (side: Snapshot, own: Owners) =>
    groupBy(decompile(coverForServices(side), own, weighServer, side.coverage).ports, ({ label }) => label);
  const [before, after] = [read(from, owners.from), read(to, owners.to)];
  const changes: ServicePortChange[] = [];
  const compared = { all: 0, withoutEndpoints: 0 };
  for (const [label, ports] of after) {
    const reasons = ports.flatMap((port) => {
      const old = before.get(label)?.find(({ family }) => family === port.family);
      if (!old) return [];
      compared.all++;
      if (![old, port].every(({ endpoints = [] }) => endpoints.length > 0)) compared.withoutEndpoints++;
      return [...diffFields(old, port), ...diffEndpoints(old, port)];
    });
    if (reasons.length === 0) continue;
    changes.push({ label, change: 'changed', reasons: uniqueReasons(reasons), place: undefined });
  }
  return { changes, compared, shown: { from: before, to: after }, follows };
}

/** An endpoint as a kernel shows it. A kernel shows only endpoints in use. */
const usedEndpoint: EndpointState = { condition: 'ready', node: undefined, hints: [], used: true };
const drainingEndpoint: EndpointState = { ...usedEndpoint, condition: 'draining', used: false };

function diffEndpoints(from: DecompiledPort, to: DecompiledPort): readonly ServiceReason[] {
  if (!from.endpoints || !to.endpoints) return [];
  const statesOf = (endpoints: NonNullable<DecompiledPort['endpoints']>) =>
    new Map(endpoints.map(({ label, draining }) => [label, draining ? drainingEndpoint : usedEndpoint]));
  return diffEndpointStates(statesOf(endpointsBeside(from, to)), statesOf(endpointsBeside(to, from)));
}

/**
 * Returns a port's endpoints for comparison with another port. If either port may have addresses that are not shown, returns only the
 * endpoints at addresses that both ports have.
 */
function endpointsBeside({ endpoints = [], hidesAddresses }: DecompiledPort, other: DecompiledPort) {
  if (!hidesAddresses && !other.hidesAddresses) return endpoints;
  const places = portAddresses(other).map(({ address }) => address.text);
  const known = new Set(other.nodePort ? [...places, nodePortPlace] : places);
  return endpoints.filter(({ at }) => at === undefined || at.some((place) => known.has(place)));
}

/**
 * Reports whether these reasons fully explain a kernel change. They can explain only changes to endpoints' chains, or to rules that choose
 * among endpoints.
 */
function follows(edit: KernelChange, reasons: readonly ServiceReason[]): boolean {
  if (edit.kind !== 'chain' || edit.fields.shared || edit.fields.reordered) return false;
  const { change, fields, edited = [] } = edit;
  const endpoints = new Set(
    reasons.flatMap((each) =>
      each.kind === 'endpoint-added' || each.kind === 'endpoint-removed' ? [each.endpoint] : [],
    ),
  );
  if (endpoints.size === 0) return false;
  const kind = parseServiceChain(fields.chain)?.kind;
  if (kind === 'cluster' || kind === 'local') {
    const leadsTo = (rule: Rule) => parseServiceChain(jumpChain(rule) ?? '')?.kind;
    return change === 'changed' && edited.every((rule) => leadsTo(rule) === 'endpoint');
  }
  if (kind !== 'endpoint' || change === 'changed') return false;
  return endpoints.has(dnatEndpoint(edited)?.label ?? '');
}

export interface SideDiff extends Readonly<Record<OtherPart, readonly KernelChange[]>> {
  readonly servicePorts: readonly ServicePortDiff[];
  readonly isReadBack: boolean;
  /** The number of rules that differ only in comments and so count as equal. */
  readonly comments: number;
  readonly gaps: readonly ComparisonGap[];
  readonly extent: Extent;
  readonly compared: ReadChanges['compared'] | undefined;
}

export interface ServicePortDiff extends ServicePortChange {
  /** "namespace/name", or the port's label if the Service is unknown. */
  readonly service: string;
  readonly kernel: readonly KernelChange[];
  /** Kernel changes that are not in `kernel`, because the reasons fully explain them. */
  readonly follows: readonly KernelChange[];
}

interface DiffChoices {
  readonly foreign: boolean;
}

export function diffSides(one: Snapshot, other: Snapshot, options: DiffChoices): SideDiff {
  const { from, to, unshownSysctls } = alignSides(one, other);
  const { own, foreign, unshown, whole } = separate(from, to);
  const changed = from.kind !== 'dump' && to.kind !== 'dump' ? diffServices(from, to) : undefined;
  const renames = changed?.flatMap(({ label, formerLabel }) =>
    formerLabel === undefined ? [] : [[formerLabel, label] as const],
  );
  const states = statesWithNames(from, to);
  const chains = indexChains(states);
  const owners = {
    from: findOwners(states, new Map(renames), chains),
    to: findOwners(statesWithNames(to, from), new Map(), chains),
  };
  const listPair = (pair: StatePair) => listKernelChanges(diffStates(pair.from, pair.to), owners);
  const { delta, comments } = diffAligned(own);
  const changes = listKernelChanges(delta, owners);
  const leftOf = findLeftovers(from, to);
  const ofNode = changes.filter((change) => leftOf(change) === undefined);
  const kept = dropUnusedFamily(ofNode, from, to);
  const read = changed ? undefined : compareReadBack(from, to, owners);
  const reasons = changed ?? read?.changes ?? [];
  const labels = new Set(reasons.map(({ label }) => label));
  const isExplained = ({ owner }: KernelChange): boolean => !changed && owner !== undefined && labels.has(owner);
  const doubtful = listPair(unshown);
  const reported = groupBy([...kept.changes, ...doubtful.filter(isExplained)], ({ owner = '' }) => owner);
  const ofNodeAddresses = diffNodeAddresses(from, to);
  const found = findGaps({ from, to, whole, unshownSysctls, changes: changed });
  const gaps = [...found, ...kept.gaps, ...ofNodeAddresses.gaps].filter(
    ({ doubt }) => options.foreign || !doubt || !isForeignDoubt(doubt),
  );
  const extent = extentOf(gaps, own, from, to);
  const isRead = extent === 'nothing' && read !== undefined && read.compared.withoutEndpoints < read.compared.all;
  const portsAlone = isRead ? read.compared : undefined;
  return {
    servicePorts: listServicePorts(reported, reasons, from, to, read),
    base: [...(reported.get('') ?? []), ...ofNodeAddresses.changes, ...diffSettings(from, to)],
    foreign: options.foreign ? listPair(foreign()) : [],
    dead: changes.filter((change) => leftOf(change) === 'dead'),
    live: changes.filter((change) => leftOf(change) === 'live'),
    unaccounted: doubtful.filter((each) => !isExplained(each)),
    isReadBack: read !== undefined,
    comments,
    gaps,
    extent: portsAlone ? 'part' : extent,
    compared: portsAlone,
  };
}

export function areSidesSame(diff: SideDiff): boolean {
  return diff.servicePorts.length === 0 && otherParts.every((part) => diff[part].length === 0);
}

function statesWithNames(side: Snapshot, other: Snapshot): readonly KernelState[] {
  const states = [side.labels ?? [], side.state, other.labels ?? [], other.state].flat();
  // If virtual servers had no names here, a change of mode would look as if all Services were removed and added again.
  const isUnnamed = side.kind === 'dump' && side.state.virtualServers.length > 0;
  if (!isUnnamed || other.state.virtualServers.length > 0) return states;
  return [...states, nameServers(side.state, other.ports)];
}

/**
 * Finds iptables mode's leftovers on the dump's node: `dead` chains, which nothing jumps to, and `live` chains, which packets still reach.
 */
function findLeftovers(from: Snapshot, to: Snapshot): (change: KernelChange) => 'dead' | 'live' | undefined {
  const left = new Map(
    [from, to]
      .filter(({ kind }) => kind === 'dump')
      .flatMap(({ state }) => findLeftChains(state, modeOfState(state)))
      .map(({ family, table, chain, reachedFrom }) => [
        `${family} ${table} ${chain.name}`,
        reachedFrom.length > 0 ? ('live' as const) : ('dead' as const),
      ]),
  );
  return ({ kind, fields }) =>
    kind === 'chain' ? left.get(`${fields.family} ${fields.table} ${fields.chain}`) : undefined;
}

function listServicePorts(
  byOwner: ReadonlyMap<string, readonly KernelChange[]>,
  reasons: readonly ServicePortChange[],
  from: Snapshot,
  to: Snapshot,
  read: ReadChanges | undefined,
): readonly ServicePortDiff[] {
  const explained = new Map(reasons.map((each) => [each.label, each]));
  const before = from.cluster ? portsByLabel(from.cluster) : read?.shown.from;
  const after = to.cluster ? portsByLabel(to.cluster) : read?.shown.to;
  const types = { from: typesByName(from), to: typesByName(to) };
  const written = [from, to].flatMap(({ cluster }) => cluster?.servicePorts ?? []);
  const places = new Map(written.flatMap(({ label, places: own }) => (own ? [[label, own.port] as const] : [])));
  const nodePortReasons = findNodePortReasons(from, to);
  const listening = [...(read?.shown.to ?? [])].flatMap(([label, ports]) =>
    nodePortReasons(before?.get(label), ports).length > 0 ? [label] : [],
  );
  const labels = [...new Set([...explained.keys(), ...byOwner.keys(), ...listening])].filter(Boolean).toSorted();
  return labels.map((label): ServicePortDiff => {
    const own = byOwner.get(label) ?? [];
    const known = explained.get(label);
    const [old, fresh] = [before?.get(known?.formerLabel ?? label), after?.get(label)];
    const change = known?.change ?? kindOfPort(own, before?.has(label) === true, fresh !== undefined);
    const isFollowing = (each: KernelChange) => known !== undefined && read?.follows(each, known.reasons) === true;
    const [ports, typesOfSide] = change === 'added' ? [fresh, types.to] : [before?.get(label), types.from];
    const [one] = fresh ?? old ?? [];
    return {
      service: one ? serviceName(one) : label,
      label,
      formerLabel: known?.formerLabel,
      change,
      reasons: [
        ...(known?.reasons ?? []),
        ...nodePortReasons(old, fresh),
        ...(ports?.[0] && change !== 'changed'
          ? [{ kind: 'facts', ports, type: typesOfSide.get(serviceName(ports[0])) } as const]
          : []),
      ],
      kernel: own.filter((each) => !isFollowing(each)),
      follows: own.filter(isFollowing),
      place: known?.place ?? places.get(label),
    };
  });
}

function typesByName({ cluster }: Snapshot): ReadonlyMap<string, ServiceInfo['type']> {
  return new Map((cluster?.services ?? []).map((service) => [fullName(service), service.type]));
}

function portsByLabel({ servicePorts }: Cluster): ReadonlyMap<string, readonly ShownPort[]> {
  return groupBy(servicePorts, ({ label }) => label);
}

/**
 * Returns the kind of change for a Service port that is not among the compared Services. The port is new if all its kernel objects are new,
 * unless a part that was not compared, such as another mode's, had the port before.
 */
function kindOfPort(changes: readonly KernelChange[], wasThere: boolean, isThere: boolean): ChangeKind {
  const [first, ...others] = new Set(changes.map(effectOf));
  if (others.length > 0 || (first === 'added' && wasThere) || (first === 'removed' && isThere)) return 'changed';
  return first ?? 'changed';
}

/** The change of a shared chain says nothing about a single Service port. Only the port's own rules show what changed. */
function effectOf({ kind, change, fields }: KernelChange): ChangeKind {
  if (kind !== 'chain' || change !== 'changed' || fields.rulesFrom + fields.rulesTo === 0) return change;
  if (fields.rulesFrom === 0) return 'added';
  return fields.rulesTo === 0 ? 'removed' : 'changed';
}
