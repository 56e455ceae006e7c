// Differences between two sides that affect packets, but that neither the kernel's state nor single traced packets show.
import { wantsBothFamilies } from '../../cluster/assign-addresses.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { nodePortNetworks, zoneOf } from '../../cluster/node-context.ts';
import { serviceOfSlice } from '../../cluster/endpoints.ts';
import { keyOfPort, serviceName, type ServiceInfo, type ShownPort } from '../../cluster/model.ts';
import {
  changedSources,
  controllerAnnotations,
  fullName,
  titleOfObject,
  usualSources,
  workloadKinds,
  type Ingress,
  type Service,
  type SourceName,
} from '../../cluster/objects.ts';
import { isSameValue } from '../../base/json/same-value.ts';
import { unseenDifferences } from '../../settings/table.ts';
import { hostNetwork, isLoopback } from '../../kernel/address.ts';
import { compareText } from '../../kernel/compare.ts';
import { programs } from '../../kube-proxy/modes.ts';
import type { CompiledSnapshot, Snapshot, SnapshotObjects } from '../../snapshot/snapshot.ts';
import { selectsWorkload, stalePortsOf } from '../../cluster/stale-slices.ts';
import { isUngiven, sourceFields, zoneFields, type ServiceChange } from './service-changes.ts';

export type BeyondKernel =
  /** The number of objects of a kind that differ. kube-proxy does not read this kind. */
  | ({ readonly kind: 'objects' } & CountedKind)
  /** The number of unchanged objects of a kind that lead to a changed Service. */
  | ({ readonly kind: 'ways' } & CountedKind)
  /** What kustomizations on either side take from outside the input. */
  | { readonly kind: 'untaken'; readonly of: SnapshotObjects['untaken'] }
  /** Objects that were left out because of errors. */
  | { readonly kind: 'left-out' }
  /** Facts in the manifests of one side that the other side, a bundle or golden, does not record. */
  | { readonly kind: 'unrecorded'; readonly objects: readonly CountedKind[]; readonly fields: readonly FieldOf[] }
  /** What two bundles or goldens never record. `selectors`: the Services whose selectors at least one side does not record. */
  | { readonly kind: 'never-recorded'; readonly selectors: readonly string[] }
  /** Packets from Pods on the node, which are not compared if no node is named. */
  | { readonly kind: 'pods-on-node' }
  /** The Services, workloads, Nodes or settings that were not compared fully. */
  | { readonly kind: NamedBeyond; readonly names: readonly string[] };

export interface CountedKind {
  readonly of: string;
  readonly count: number;
}

/** A field of Services, or the workloads that they select. `readiness` is a field of workloads' Pods. */
interface FieldOf {
  readonly field: SourceName | 'readiness' | 'workloads';
  readonly names: readonly string[];
}

interface FieldOfOne extends Pick<FieldOf, 'field'> {
  readonly name: string;
}

type NamedBeyond =
  /** Services without a cluster IP, which kpc skips on all sides. */
  | 'skipped'
  /** Services without endpoints on both sides that differ in the fields that endpoints are made from. */
  | 'endpoints'
  /** Services that differ in ports or in the fields that endpoints are made from, while their EndpointSlices fit only one side. */
  | 'kept-slices'
  /** Services with different session affinity, which affects only a client's later connections. */
  | 'later-connections'
  /** Services whose virtual servers use another scheduler to choose endpoints. */
  | 'schedulers'
  /** Settings of kube-proxy itself that differ, such as where it reports its health. */
  | 'own-settings'
  /** Settings of kube-proxy itself that only one side records. */
  | 'unrecorded-settings'
  /** Settings that differ, but whose effect no single packet shows. */
  | 'settings'
  /** Services that differ in their preference for near endpoints, if nothing shows a Node's zone. */
  | 'zones'
  /** Services that differ and that are headless or of type ExternalName on at least one side, and Services with a renamed port. */
  | 'dns'
  /** Services with one family that now ask for both families. The API server adds the second one if the cluster has it. */
  | 'second-family'
  /** Services that are of type LoadBalancer on only one side, with addresses that the API server clears on the other. */
  | 'cleared-status'
  /** Services of type LoadBalancer with other annotations or another class, which the load balancer's controller reads. */
  | 'load-balancers'
  /** Nodes that only one side has. */
  | 'nodes'
  /** The other Nodes of a side, if only one node is compared. */
  | 'other-nodes'
  /** Services with ports in a family for which neither side has rules. */
  | 'other-family'
  /** Files of goldens with other rules than those that kpc compiles from the Services there, which are compared. */
  | 'edited'
  /** Services with node ports whose sides listen in different networks, or whose Node has other addresses: the node may have more. */
  | 'node-ports'
  /** All Nodes, if no node is named and the sides' Nodes differ or one side records none. */
  | 'unnamed-node'
  /** Workloads whose Pods both sides assume to be ready, although the Pods' probes or readiness gates differ. */
  | 'readiness';

/** Lists differences that the kernel's state does not show. `changes`: how the sides' Services differ, as far as both sides show them. */
export function beyondKernel(
  from: Snapshot,
  to: Snapshot,
  changes: readonly ServiceChange[] = [],
): readonly BeyondKernel[] {
  const ofSources = changedIn(sourceFields, changes);
  const stale = new Set(namesOfStale(from, to));
  return [
    ...(from.kind === 'manifests' && to.kind === 'manifests'
      ? [
          ...beyondServices(from.objects, to.objects, changes),
          ...namedBeyond('second-family', awaitingFamily(from, to)),
          ...namedBeyond('cleared-status', [...clearedStatus(from, to), ...clearedStatus(to, from)]),
          ...namedBeyond('load-balancers', differingBalancers(from, to)),
          ...namedBeyond('readiness', differingReadiness(from, to)),
          ...namedBeyond('unnamed-node', differingUnnamed(from, to, changes)),
        ]
      : []),
    ...leftOut(from, to),
    ...namedBeyond(
      'edited',
      [from, to].flatMap((side) => (side.kind === 'bundle' ? side.edited : [])),
    ),
    ...(from.kind === 'bundle' && to.kind === 'manifests' ? unrecorded(to, servicesWithoutSources(from)) : []),
    ...(from.kind === 'manifests' && to.kind === 'bundle' ? unrecorded(from, servicesWithoutSources(to)) : []),
    ...(from.kind === 'bundle' && to.kind === 'bundle' ? neverRecorded(from, to) : []),
    ...namedBeyond(
      'endpoints',
      ofSources.filter(
        (name) => !stale.has(name) && [from, to].every((side) => side.kind !== 'dump' && isUngiven(name, side)),
      ),
    ),
    ...namedBeyond('kept-slices', [...stale]),
    ...namedBeyond('later-connections', changedIn(['sessionAffinity'], changes)),
    ...(isUnnamed(from, to) ? [] : namedBeyond('node-ports', listeningElsewhere(from, to))),
    ...beyondSettings(from, to),
    ...namedBeyond(
      'zones',
      changedIn(zoneFields, changes).filter((name) => !stale.has(name) && [from, to].every(lacksZones)),
    ),
  ];
}

/** Lists the Services for which DNS may answer differently: those that kube-proxy does not program, and those with a renamed port (SRV). */
export function beyondPackets(
  from: Snapshot,
  to: Snapshot,
  changes: readonly ServiceChange[],
): readonly BeyondKernel[] {
  const isOfDns = (service: string, side: Snapshot): boolean => {
    const skipped = side.kind === 'dump' ? undefined : side.info(service)?.skipped;
    return skipped === 'headless' || skipped === 'external-name';
  };
  const names = changes.flatMap(({ service, reasons }) => {
    const isRenamed = reasons.some(({ kind }) => kind === 'port-renamed');
    return isRenamed || [from, to].some((side) => isOfDns(service, side)) ? service : [];
  });
  return namedBeyond('dns', [...new Set(names)]);
}

/** Lists the Nodes that a comparison of one node leaves out. `compared`: Nodes that it covers too. `isChanged`: some Service changed. */
export function otherNodes(
  from: Snapshot,
  to: Snapshot,
  isChanged: boolean,
  compared: readonly string[] = assumedOnBoth(from, to),
): readonly BeyondKernel[] {
  if (from.kind === 'dump' || to.kind === 'dump') return [];
  if (from.kind === 'bundle' || to.kind === 'bundle')
    return [from, to].flatMap((side) => otherNodesOf(side, isChanged));
  const others = new Set([...from.otherNodes, ...to.otherNodes]);
  return namedBeyond('other-nodes', [...others].filter((name) => !compared.includes(name)).toSorted(compareText));
}

/** Returns the Nodes that kpc assumed on both sides. kpc diff compares these too. */
function assumedOnBoth(...sides: readonly Snapshot[]): readonly string[] {
  const [own = [], other = []] = sides.map((side) =>
    side.kind !== 'dump' && side.assumed.node ? side.otherNodes : [],
  );
  return own.filter((name) => other.includes(name));
}

/** Lists a side's other Nodes, beside a side for one node. Assumed Nodes are listed only if something changed. */
export function otherNodesOf(
  { assumed, otherNodes: others }: CompiledSnapshot,
  isChanged: boolean,
): readonly BeyondKernel[] {
  return assumed.node && !isChanged ? [] : namedBeyond('other-nodes', others);
}

/** Reports that no compared packet is from a Pod on the node, because no node is named. Returns nothing if `others` already says so. */
export function unaskedPods(from: Snapshot, to: Snapshot, others: readonly BeyondKernel[]): readonly BeyondKernel[] {
  const isNamed = [from, to].some((side) => side.kind === 'dump' || side.nodeName !== '');
  return isNamed || others.some(({ kind }) => kind === 'unnamed-node') ? [] : [{ kind: 'pods-on-node' }];
}

/**
 * Lists what the sides lack: objects with errors, Services that kpc skips on all sides, and what kustomizations take from outside the input. A folder that is on both sides is
 * listed once, as on the last side.
 */
export function leftOut(...sides: readonly Snapshot[]): readonly BeyondKernel[] {
  const all = sides.flatMap(({ objects }) => objects.untaken);
  const of = [...new Map(all.map((each) => [JSON.stringify([each.below, each.lacks]), each])).values()];
  return [
    ...(sides.some(({ objects }) => objects.leavesOut) ? [{ kind: 'left-out' } as const] : []),
    ...namedBeyond('skipped', listSkipped(...sides)),
    ...(of.length === 0 ? [] : [{ kind: 'untaken', of } as const]),
  ];
}

export function listSkipped(...sides: readonly Snapshot[]): readonly string[] {
  const [own, ...others] = sides.map(({ cluster }) => {
    const skipped = (cluster?.services ?? []).filter((each) => each.skipped === 'no-cluster-ip');
    return new Set(skipped.map(fullName));
  });
  return [...(own ?? [])].filter((name) => others.every((each) => each.has(name)));
}

function namesOfStale(from: Snapshot, to: Snapshot): readonly string[] {
  const stale = [...stalePortsOf(from, to).values(), ...stalePortsOf(to, from).values()];
  return stale.map(({ service }) => service).toSorted(compareText);
}

/** Lists what differs between two sides with the same manifests: schedulers, and settings of kube-proxy itself. */
export function beyondSettings(from: Snapshot, to: Snapshot): readonly BeyondKernel[] {
  return [
    ...namedBeyond('schedulers', differingSchedulers(from, to)),
    ...namedBeyond('own-settings', from.kind === 'dump' || to.kind === 'dump' ? [] : differingOwn(from, to)),
  ];
}

/** Lists settings of kube-proxy itself that differ. A side without a configuration follows the other side's configuration. */
function differingOwn(from: CompiledSnapshot, to: CompiledSnapshot): readonly string[] {
  const [old, fresh] = [from.ownFields, to.ownFields];
  const names = old && fresh ? [...new Set([...Object.keys(old), ...Object.keys(fresh)])] : [];
  return [
    ...unseenDifferences(from.settings, to.settings, 'own'),
    ...names.filter((name) => !isSameValue(old?.[name], fresh?.[name])),
  ].toSorted(compareText);
}

function differingSchedulers(from: Snapshot, to: Snapshot): readonly string[] {
  if (![from, to].every(({ mode }) => mode && programs(mode, 'virtualServers'))) return [];
  const before = new Map(from.ports.map((port) => [keyOfPort(port), schedulerOf(port, from)]));
  const differing = to.ports.filter((port) => {
    const [old, fresh] = [before.get(keyOfPort(port)), schedulerOf(port, to)];
    return old !== undefined && fresh !== undefined && old !== fresh;
  });
  return [...new Set(differing.map(serviceName))].toSorted(compareText);
}

function schedulerOf({ scheduler }: ShownPort, { settings }: Snapshot): string | undefined {
  return scheduler || settings?.ipvs.scheduler;
}

/** Reports whether nothing shows a Node's zone, so that preferring a zone has no effect. */
function lacksZones({ kind, objects, node }: Snapshot): boolean {
  return kind !== 'dump' && node?.zone === '' && objects.nodes.length === 0;
}

/** Returns the Nodes if none is named, and the Nodes or what depends on a Node's addresses differ. */
function differingUnnamed(
  from: CompiledSnapshot,
  to: CompiledSnapshot,
  changes: readonly ServiceChange[],
): readonly string[] {
  if (!isUnnamed(from, to)) return [];
  const [before, after] = [nodesAsText(from), nodesAsText(to)];
  const isSame = countUnknown(before, after) + countUnknown(after, before) === 0;
  const changed = new Set(changes.map(({ service }) => service));
  const listens = (side: Snapshot): boolean =>
    side.ports.some((port) => (port.nodePort ?? 0) > 0 && changed.has(serviceName(port)));
  const touchesNodes = listens(from) || listens(to) || listeningElsewhere(from, to).length > 0;
  return isSame && !touchesNodes ? [] : namesOfNodes(from, to);
}

function isUnnamed(...sides: readonly Snapshot[]): boolean {
  return sides.every(({ nodeName }) => nodeName === '');
}

/** Returns what kube-proxy reads from each Node, as text. */
function nodesAsText({ objects }: Snapshot): readonly string[] {
  return objects.nodes.map(({ object }) => {
    return JSON.stringify([object.metadata.name, zoneOf(object), object.podCIDRs, object.addresses]);
  });
}

function namesOfNodes(...sides: readonly Snapshot[]): readonly string[] {
  const nodes = sides.flatMap(({ objects }) => objects.nodes);
  return [...new Set(nodes.map(({ object }) => object.metadata.name))].toSorted(compareText);
}

function differingReadiness(from: CompiledSnapshot, to: CompiledSnapshot): readonly string[] {
  const [before, after] = [readinessByWorkload(from), readinessByWorkload(to)];
  return [...before].flatMap(([workload, readiness]) => {
    const other = after.get(workload);
    return other === undefined || other === readiness ? [] : workload;
  });
}

function readinessByWorkload({ pods, assumedEndpoints = [] }: CompiledSnapshot): ReadonlyMap<string, string> {
  const serving = new Set(assumedEndpoints.map(({ workload }) => workload));
  const all = [...pods.values()].flatMap(({ assumed, owner, metadata, spec }) =>
    assumed && owner ? [[`${owner.kind} ${fullName({ ...metadata, name: owner.name })}`, spec.readiness] as const] : [],
  );
  return new Map(all.filter(([workload]) => serving.has(workload)));
}

function awaitingFamily({ written: before }: Snapshot, after: CompiledSnapshot): readonly string[] {
  const got = new Set(after.assigned.flatMap(({ service, clusterIPs }) => (clusterIPs.length > 0 ? service : [])));
  return [...after.written].flatMap(([name, { spec }]) => {
    const old = before.get(name)?.spec;
    const isAsked = wantsBothFamilies(spec.ipFamilyPolicy) && old && old.ipFamilyPolicy !== spec.ipFamilyPolicy;
    const isSingle = spec.ipFamilies.length <= 1 && spec.clusterIPs.length === 1 && spec.clusterIP !== 'None';
    return isAsked && isSingle && !got.has(name) ? name : [];
  });
}

function clearedStatus({ written: own }: Snapshot, { written: other }: Snapshot): readonly string[] {
  return [...own].flatMap(([name, { spec, ingress }]) => {
    const isCleared = spec.type !== 'LoadBalancer' && other.get(name)?.spec.type === 'LoadBalancer';
    return isCleared && ingress.length > 0 ? name : [];
  });
}

function differingBalancers({ written: before }: Snapshot, { written: after }: Snapshot): readonly string[] {
  const settingsOf = ({ metadata, spec }: Service): unknown => [
    spec.loadBalancerClass,
    controllerAnnotations(metadata),
  ];
  return [...after].flatMap(([name, service]) => {
    const old = before.get(name);
    if (old?.spec.type !== 'LoadBalancer' || service.spec.type !== 'LoadBalancer') return [];
    return isSameValue(settingsOf(old), settingsOf(service)) ? [] : name;
  });
}

/** A Node object lists neither a bridge's addresses nor one that the node had before and may still have. */
function listeningElsewhere(from: Snapshot, to: Snapshot): readonly string[] {
  if (from.kind === 'dump' || to.kind === 'dump') return [];
  const isOneNode = from.nodeName === to.nodeName;
  const shared = from.families.filter((family) => to.families.includes(family));
  const places = [from, to].map(({ settings, node }) => {
    const networks = shared.flatMap((family) => nodePortNetworks(settings, node, family).networks);
    const asked = networks.filter(({ address }) => isLoopback(address));
    // The node itself also lists its loopback addresses. A Node object lists none.
    const isTold = asked.length === 0 && node.hostAddresses.some(isLoopback);
    const own = node.hostAddresses.map((address) => hostNetwork(address).text);
    const others = networks.flatMap((each) => (asked.includes(each) || own.includes(each.text) ? [] : each.text));
    return isTold ? undefined : [...(isOneNode ? own : []), ...others.toSorted()].join();
  });
  if (places[0] === places[1] || places.includes(undefined)) return [];
  const before = new Set(from.ports.map(({ nodePort }) => nodePort));
  const kept = to.cluster.servicePorts.filter(({ nodePort }) => nodePort > 0 && before.has(nodePort));
  return [...new Set(kept.map(serviceName))];
}

function servicesWithoutSources({ cluster }: CompiledSnapshot): ReadonlySet<string> {
  return new Set(cluster.services.flatMap((info) => (info.sources ? [] : [fullName(info)])));
}

function neverRecorded(from: CompiledSnapshot, to: CompiledSnapshot): readonly BeyondKernel[] {
  const [old, fresh] = [servicesWithoutSources(from), servicesWithoutSources(to)];
  const shared = from.cluster.services.map(fullName).filter((name) => to.info(name) !== undefined);
  return [{ kind: 'never-recorded', selectors: shared.filter((name) => old.has(name) || fresh.has(name)) }];
}

/** Returns facts in the manifests that a bundle does not record. `lacking`: Services whose endpoint sources the bundle lacks. */
export function unrecorded(side: CompiledSnapshot, lacking: ReadonlySet<string>): readonly BeyondKernel[] {
  const { besideRules, kustomized } = side.objects;
  const kinds = besideRules.map(({ kind }) => kind);
  const objects = countKinds([...kinds, ...kustomized.map(() => 'Kustomization')]);
  const given = servicesOfSlices(side.objects);
  const showsEffect = effectsShown(side, given);
  const used = side.cluster.services.flatMap((info): readonly FieldOfOne[] => {
    const { sources } = info;
    if (!sources?.selector || !lacking.has(fullName(info))) return [];
    const fields = changedSources(sources, usualSources).filter((field) => !showsEffect(info, field));
    return fields.map((field) => ({ field, name: fullName(info) }));
  });
  const probed = [...readinessByWorkload(side)].flatMap(([name, readiness]): readonly FieldOfOne[] =>
    readiness === '' ? [] : [{ field: 'readiness', name }],
  );
  const scaled = [...side.written].flatMap(([name, service]): readonly FieldOfOne[] =>
    given.has(name) && side.objects.workloads.some(({ object }) => selectsWorkload(service, object))
      ? [{ field: 'workloads', name }]
      : [],
  );
  const fields = [...groupBy([...used, ...scaled, ...probed], ({ field }) => field).values()].flatMap((own) =>
    own[0] ? [{ field: own[0].field, names: own.map(({ name }) => name) }] : [],
  );
  return [
    ...(objects.length + fields.length > 0 ? [{ kind: 'unrecorded', objects, fields } as const] : []),
    ...namedBeyond(
      'unrecorded-settings',
      Object.keys(side.ownFields ?? {}).filter((name) => name !== 'hostnameOverride' && name !== 'clientConnection'),
    ),
    ...(side.nodeName === '' ? namedBeyond('unnamed-node', namesOfNodes(side)) : []),
  ];
}

/** Returns the Services whose endpoints are given, so that neither their Pods nor their workloads determine these. */
function servicesOfSlices({ slices, endpoints }: SnapshotObjects): ReadonlySet<string> {
  return new Set([
    ...slices.map(({ object }) => serviceOfSlice(object)),
    ...endpoints.map(({ object }) => fullName(object.metadata)),
  ]);
}

/** Reports whether a Service's endpoints show the effect of a field. They do if kpc made the endpoints from Pods. */
function effectsShown(
  side: CompiledSnapshot,
  given: ReadonlySet<string>,
): (info: ServiceInfo, field: SourceName) => boolean {
  const [knowsZones, assumesPods] = [!lacksZones(side), side.assumed.pods.size > 0];
  return (info, field) => {
    if (info.endpointsGiven === false || given.has(fullName(info))) return false;
    if (field === 'selector') return true;
    return field === 'publishNotReadyAddresses' ? !assumesPods : knowsZones;
  };
}

function beyondServices(
  from: SnapshotObjects,
  to: SnapshotObjects,
  changes: readonly ServiceChange[],
): readonly BeyondKernel[] {
  // Two inputs whose workloads were not read have endpoints of their own, such as a cluster's.
  const indexOf = ({ besideRules }: SnapshotObjects) =>
    new Map(besideRules.flatMap((object) => (isWorkload(object) ? [] : [[titleOfObject(object), object] as const])));
  const [before, after] = [indexOf(from), indexOf(to)];
  const isSame = (name: string): boolean => isSameValue(before.get(name)?.fields, after.get(name)?.fields);
  const differing = [...new Map([...before, ...after])].flatMap(([name, { kind }]) => (isSame(name) ? [] : kind));
  const changed = new Set(changes.map(({ service }) => service));
  const leading = to.ingresses.flatMap(({ object }) => {
    return isSame(titleOfObject(object)) && leadsTo(changed, object) ? [object.kind] : [];
  });
  const kustomized = Math.max(
    countUnknown(from.kustomized, to.kustomized),
    countUnknown(to.kustomized, from.kustomized),
  );
  const ofKustomize = Array.from({ length: kustomized }, () => 'Kustomization');
  return [
    ...countKinds([...differing, ...ofKustomize]).map((each) => ({ kind: 'objects', ...each }) as const),
    ...countKinds(leading).map((each) => ({ kind: 'ways', ...each }) as const),
  ];
}

function isWorkload({ kind }: SnapshotObjects['besideRules'][number]): boolean {
  return workloadKinds.some((each) => each === kind);
}

function countUnknown(texts: readonly string[], known: readonly string[]): number {
  return texts.filter((text) => !known.includes(text)).length;
}

function leadsTo(services: ReadonlySet<string>, { routes }: Ingress): boolean {
  const backends = routes.flatMap((route) => route.backends);
  return backends.some(
    ({ service, namespace }) => service !== undefined && services.has(fullName({ namespace, name: service })),
  );
}

function countKinds(kinds: readonly string[]): readonly CountedKind[] {
  const byKind = groupBy(kinds.toSorted(compareText), (each) => each);
  return [...byKind].map(([of, own]) => ({ of, count: own.length }));
}

function changedIn(fields: readonly string[], changes: readonly ServiceChange[]): readonly string[] {
  const own = changes.filter(({ reasons }) =>
    reasons.some((reason) => reason.kind === 'field' && fields.includes(reason.field)),
  );
  return [...new Set(own.map(({ service }) => service))];
}

/** Lists the Services with ports in a family for which neither side was compiled. */
export function inOtherFamilies(...sides: readonly Snapshot[]): readonly BeyondKernel[] {
  const compiled = sides.flatMap((side) => (side.kind === 'dump' ? [] : side));
  const families = new Set(compiled.flatMap((side) => side.families));
  const left = compiled.flatMap(({ cluster }) => cluster.servicePorts.filter(({ family }) => !families.has(family)));
  return namedBeyond('other-family', [...new Set(left.map(serviceName))].toSorted(compareText));
}

export function namedBeyond(kind: NamedBeyond, names: readonly string[]): readonly BeyondKernel[] {
  return names.length === 0 ? [] : [{ kind, names }];
}
