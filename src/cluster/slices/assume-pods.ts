import type { Names } from '../grouping.ts';
import { compareText } from '../../kernel/compare.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { nodeAddresses } from '../node-context.ts';
import {
  fullName,
  type Node,
  type Owner,
  type Pod,
  type PodSpec,
  type Service,
  type Sourced,
  type Workload,
  type Labels,
  addressesOfPod,
  type EndpointObjects,
} from '../objects.ts';
import { hash } from '../service-ranges.ts';
import type { Place } from '../../kernel/place.ts';
import {
  type Address,
  contains,
  families,
  type Family,
  type Network,
  parseAddress,
  parseNetwork,
} from '../../kernel/address.ts';
import {
  admitsPods,
  daemonTolerations,
  describeUnmet,
  suitsPods,
  choosePodAddresses,
  claimKey,
  roomForReplicas,
  type AddressClaim,
  areEndpointsGiven,
  selectPods,
} from './place-pods.ts';

interface Assumption extends Pick<EndpointObjects, 'workloads' | 'pods' | 'nodes' | 'services'> {
  /** The networks from --assume-endpoints, at most one for each family. They override Node networks that are outside them. */
  readonly networks: readonly Network[];
  readonly clusterCIDRs: readonly Network[];
  readonly given: Names;
  readonly taken: ReadonlySet<string>;
}

interface AssumedPods {
  readonly pods: readonly Sourced<Pod>[];
  /** Whether there is a workload without Pods, which a Service may select. */
  readonly hasIdle: boolean;
  readonly scaledDown: readonly Sourced<Pod>[];
  readonly pending: readonly Pending[];
  /** Owners ("Deployment default/web") whose requirements no assumed Node meets, so their Pods are assumed on any Node. */
  readonly unplaced: readonly string[];
  readonly diagnostics: readonly Finding[];
}

/** A workload whose Pods a scheduler would leave Pending. */
export interface Pending {
  readonly owner: string;
  readonly pods: readonly Sourced<Pod>[];
  /** The requirement that no Node meets, such as "pool=web". */
  readonly wanted: string;
  readonly place: Place;
}

/** The most Pods that Kubernetes supports in a cluster. */
const maxPods = 150_000;

/** The Pods of one workload, or one Pod without a controller. */
interface PodSet {
  readonly key: string;
  readonly owner: Owner;
  readonly template: { readonly metadata: Pod['metadata']; readonly spec: PodSpec };
  readonly source: Sourced<Pod>['source'];
  readonly scales: boolean;
  readonly replicas: number;
  readonly place: (index: number) => PodSlot;
}

interface PodSlot {
  readonly name: string;
  readonly seat: string;
  readonly node: Node | undefined;
}

const nothing = { hasIdle: false, scaledDown: [], pending: [], unplaced: [] } as const;

/**
 * Assumes ready Pods for workloads, and for Pods without a status. Spreads them over the Nodes, with addresses in the Pod networks. Given
 * Pods take precedence: a workload with a Pod that has a status gets no assumed Pods. An object whose controller is in the input is not
 * counted itself.
 */
export function assumePods(assumption: Assumption): AssumedPods {
  const pods = nameAll(assumption.pods).filter(({ object }) => object.status !== undefined || !isOfHook(object));
  const workloads = nameAll(assumption.workloads).filter(({ object }) => !(object.kind === 'Job' && isOfHook(object)));
  const real = pods.filter(({ object }) => object.status !== undefined);
  const nodes = assumption.nodes.map(({ object }) => object).toSorted((a, b) => compareText(seatName(a), seatName(b)));
  const uncontrolled = findUncontrolled(workloads, pods);
  const keyed = [
    ...uncontrolled.workloads.map((workload) => podSetOfWorkload(workload, nodes)),
    ...uncontrolled.pods.map((pod) => podSetOfPod(pod, nodes)),
  ].toSorted((a, b) => compareText(a.key, b.key));
  const total = keyed.reduce((sum, { replicas }) => sum + replicas, 0);
  if (total > maxPods) return { ...nothing, pods: real, diagnostics: [describeTooMany(keyed, total)] };
  // Assumed Nodes have few labels, but given Nodes may have the requested ones.
  const areGiven = nodes.some(({ assumedAs }) => assumedAs === undefined);
  const unplaced = keyed.filter(({ replicas, template }) => replicas > 0 && lacksNode(template.spec, nodes));
  const pending = areGiven ? unplaced : [];
  const podSets = withoutKinds(keyed.filter((each) => !pending.includes(each)));
  const taken = new Set([
    ...assumption.taken,
    ...real.flatMap(({ object }) => addressesOfPod(object)),
    ...nodes.flatMap((node) => nodeAddresses(node).map(({ text }) => text)),
  ]);
  const claims = (least: number) => podSets.flatMap((podSet) => claimsOf(podSet, least, assumption));
  const addresses = choosePodAddresses(claims, taken);
  const placed = podSets.flatMap((podSet) => placePods(podSet, assumption, addresses));
  return {
    pods: [...real, ...placed.map(({ pod }) => pod)],
    hasIdle: pending.length > 0 || workloads.some(({ object }) => object.replicas === 0),
    scaledDown: uncontrolled.workloads.filter(({ object }) => isScaledDown(object)).flatMap(asPods),
    pending: pending.map((podSet) => describePendingPods(podSet, nodes, assumption)),
    unplaced: areGiven ? [] : unplaced.map(({ key }) => key),
    diagnostics: describeLacks(placed, assumption),
  };
}

function isOfHook({ metadata }: Pod | Workload): boolean {
  return Object.hasOwn(metadata.annotations, 'helm.sh/hook');
}

export function ownerKey(namespace: string, { kind, name }: Owner): string {
  return `${kind} ${namespace}/${name}`;
}

/** Returns workloads that have no Pods and no controller in the input, and Pods without a status or controller. */
function findUncontrolled(
  workloads: readonly Sourced<Workload>[],
  pods: readonly Sourced<Pod>[],
): Pick<Assumption, 'workloads' | 'pods'> {
  const keyOf = ({ kind, metadata }: Workload): string => ownerKey(metadata.namespace, { kind, name: metadata.name });
  const byKey = new Map(workloads.map(({ object }) => [keyOf(object), object]));
  const served = new Set(pods.flatMap(({ object }) => (object.status ? ownersOf(object, byKey) : [])));
  return {
    workloads: workloads.filter(({ object }) => {
      const { metadata, owner } = object;
      return !(owner && byKey.has(ownerKey(metadata.namespace, owner))) && !served.has(keyOf(object));
    }),
    pods: pods.filter(({ object }) => !object.status && !ownersOf(object, byKey).some((key) => byKey.has(key))),
  };
}

/** The label that the Pods and the ReplicaSet of a Deployment's template share. */
const templateHashLabel = 'pod-template-hash';

/**
 * Returns the Pod's controller and the controller of this controller. For a ReplicaSet outside the input, takes the Deployment from the
 * ReplicaSet's name.
 */
function ownersOf({ metadata, owner }: Pod, byKey: ReadonlyMap<string, Workload>): readonly string[] {
  if (!owner) return [];
  const { namespace, labels } = metadata;
  const key = ownerKey(namespace, owner);
  const above = byKey.get(key)?.owner;
  if (above) return [key, ownerKey(namespace, above)];
  const suffix = `-${labels[templateHashLabel] ?? ''}`;
  if (owner.kind !== 'ReplicaSet' || suffix === '-' || !owner.name.endsWith(suffix)) return [key];
  return [key, ownerKey(namespace, { kind: 'Deployment', name: owner.name.slice(0, -suffix.length) })];
}

/** Names nameless objects (generateName) by their content, so that the input's order has no effect. */
function nameAll<T extends Pod | Workload>(objects: readonly Sourced<T>[]): readonly Sourced<T>[] {
  const nameless = objects.filter(({ object }) => object.metadata.name === '');
  if (nameless.length === 0) return objects;
  const texts = new Map(nameless.map((each) => [each, JSON.stringify(each.object)]));
  const sorted = nameless.toSorted((a, b) => compareText(texts.get(a) ?? '', texts.get(b) ?? ''));
  const names = new Map(sorted.map((each, i) => [each, `generated-${i}`]));
  return objects.map((each) => {
    const name = names.get(each);
    if (name === undefined) return each;
    return { ...each, object: { ...each.object, metadata: { ...each.object.metadata, name } } };
  });
}

function seatName({ metadata, assumedAs }: Node): string {
  return assumedAs ?? metadata.name;
}

/** Drops the kind from keys that are unique without it, so that a Deployment turned into a StatefulSet keeps its addresses. */
function withoutKinds(podSets: readonly PodSet[]): readonly PodSet[] {
  const seen = new Set<string>();
  return podSets.map((podSet) => {
    const key = fullName({ namespace: podSet.template.metadata.namespace, name: podSet.owner.name });
    if (seen.has(key)) return podSet;
    seen.add(key);
    return { ...podSet, key };
  });
}

function podSetOfWorkload({ object: workload, source }: Sourced<Workload>, nodes: readonly Node[]): PodSet {
  const { kind, metadata, template, replicas, firstOrdinal } = workload;
  const owner = { kind, name: metadata.name };
  const base = {
    key: ownerKey(metadata.namespace, owner),
    owner,
    template: { metadata: { ...metadata, labels: template.labels }, spec: template.spec },
    source,
  };
  if (replicas === undefined) {
    const own = nodesFor({ ...template.spec, tolerations: daemonTolerations(template.spec) }, nodes);
    const place = (index: number): PodSlot => {
      const node = own[index];
      const [name, seat] = node ? [node.metadata.name, seatName(node)] : ['0', '0'];
      return { name: `${metadata.name}-${name}`, seat: `${metadata.name}-${seat}`, node };
    };
    return { ...base, scales: false, replicas: Math.max(1, own.length), place };
  }
  const nodeOf = spread(metadata, template.spec, nodes);
  const place = (index: number): PodSlot => {
    const name = `${metadata.name}-${firstOrdinal + index}`;
    return { name, seat: name, node: nodeOf(index) };
  };
  return { ...base, scales: true, replicas, place };
}

/**
 * Returns the suitable Nodes whose taints the Pods tolerate. If no Node is suitable, considers all Nodes. If no Node's taints are
 * tolerated, ignores taints.
 */
function nodesFor(spec: Pick<PodSpec, 'nodeTerms' | 'tolerations'>, nodes: readonly Node[]): readonly Node[] {
  const suiting = nodes.filter((node) => suitsPods(node, spec));
  const own = suiting.length === 0 ? nodes : suiting;
  const fitting = own.filter((node) => admitsPods(node, spec.tolerations));
  return fitting.length === 0 ? own : fitting;
}

export function lacksNode(spec: PodSpec, nodes: readonly Node[]): boolean {
  return nodes.length > 0 && spec.nodeName === '' && !nodes.some((node) => suitsPods(node, spec));
}

function describePendingPods(podSet: PodSet, nodes: readonly Node[], assumption: Assumption): Pending {
  const { owner, template, source } = podSet;
  const { namespace } = template.metadata;
  const spec = owner.kind === 'Pod' ? ['spec'] : ['spec', 'template', 'spec'];
  const { words, first } = describeUnmet(nodes, template.spec);
  const field =
    first?.of === 'nodeSelector'
      ? ['nodeSelector', first.key]
      : ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution'];
  return {
    owner: ownerKey(namespace, owner),
    pods: placePods(podSet, assumption, new Map()).map(({ pod }) => pod),
    wanted: words,
    place: source.place([...spec, ...field]),
  };
}

function podSetOfPod({ object: { metadata, spec }, source }: Sourced<Pod>, nodes: readonly Node[]): PodSet {
  const { name, namespace } = metadata;
  const owner = { kind: 'Pod', name };
  const place = (): PodSlot => ({ name, seat: name, node: spread(metadata, spec, nodes)(0) });
  const key = ownerKey(namespace, owner);
  return { key, owner, template: { metadata, spec }, source, scales: false, replicas: 1, place };
}

/** Returns a function that assigns Nodes in turn, starting from a hash of the name. A Node named in the spec takes precedence. */
function spread(
  metadata: Pod['metadata'],
  { nodeName, ...spec }: PodSpec,
  nodes: readonly Node[],
): (index: number) => Node | undefined {
  if (nodeName !== '') {
    const named = nodes.find((node) => node.metadata.name === nodeName);
    return () => named;
  }
  const own = nodesFor(spec, nodes);
  const start = hash(fullName(metadata));
  return (index) => own[(start + index) % own.length];
}

/** Chooses at most one network for each family: the Node's, the flag's or the cluster's. */
function chooseNetworks(node: Node | undefined, { networks, clusterCIDRs }: Assumption): readonly Network[] {
  const own = (node?.podCIDRs ?? []).flatMap((text) => parseNetwork(text) ?? []);
  return families.flatMap((family) => {
    const ofFamily = (list: readonly Network[]): Network | undefined => list.find((each) => each.family === family);
    const named = ofFamily(networks);
    const ofNode = ofFamily(own);
    if (named) return ofNode && isSubnet(ofNode, named) ? ofNode : named;
    return ofNode ?? ofFamily(clusterCIDRs) ?? [];
  });
}

function isSubnet(inner: Network, outer: Network): boolean {
  return inner.prefixLength >= outer.prefixLength && contains(outer, inner.address);
}

/** Makes a seat for each of a workload's Pods. Names a DaemonSet's seats after their Nodes, so that they do not depend on other Nodes. */
function seatsOf({ key, scales, place }: PodSet, count: number, assumption: Assumption) {
  return Array.from({ length: count }, (_, index) => {
    const where = place(index);
    const claimant = scales ? { workload: key, index } : { workload: `${key}/${where.seat}`, index: 0 };
    return { ...where, ...claimant, networks: chooseNetworks(where.node, assumption) };
  });
}

function claimsOf(podSet: PodSet, least: number, assumption: Assumption): readonly AddressClaim[] {
  const { template, scales, replicas } = podSet;
  if (template.spec.hostNetwork) return [];
  return seatsOf(podSet, scales ? roomForReplicas(replicas, least) : replicas, assumption).flatMap(
    ({ networks, workload, index }, at) =>
      networks.map((network) => ({ workload, index, network, wanted: at < replicas })),
  );
}

interface PlacedPod {
  readonly pod: Sourced<Pod>;
  readonly onHost: boolean;
  readonly networks: readonly Network[];
}

function placePods(podSet: PodSet, assumption: Assumption, chosen: ReadonlyMap<string, Address>): readonly PlacedPod[] {
  const { hostNetwork: onHost } = podSet.template.spec;
  return seatsOf(podSet, podSet.replicas, assumption).map((seat) => {
    const { node, networks, workload, index } = seat;
    const addresses = onHost
      ? hostAddresses(node)
      : networks.flatMap((network) => chosen.get(claimKey({ workload, index, network })) ?? []);
    return { pod: makePod(podSet, seat, addresses), onHost, networks };
  });
}

/** Returns the first address of each family, as the kubelet reports them. */
function hostAddresses(node: Node | undefined): readonly Address[] {
  const own = nodeAddresses(node);
  return families.flatMap((family) => own.find((address) => address.family === family) ?? []);
}

function makePod(
  { template: { metadata, spec }, owner, source }: PodSet,
  { name, node }: PodSlot,
  addresses: readonly Address[],
): Sourced<Pod> {
  const isStateful = owner.kind === 'StatefulSet';
  const object: Pod = {
    metadata: {
      ...metadata,
      name,
      labels: { ...metadata.labels, ...(isStateful ? ordinalLabels(owner.name, name) : {}) },
    },
    spec: {
      ...spec,
      nodeName: node?.metadata.name ?? spec.nodeName,
      hostname: isStateful ? name : spec.hostname,
    },
    owner,
    terminating: false,
    status: { ended: false, ready: true, addresses },
    assumed: true,
  };
  return { object, source };
}

export function ordinalLabels(statefulSet: string, pod: string): Readonly<Record<string, string>> {
  return {
    'statefulset.kubernetes.io/pod-name': pod,
    'apps.kubernetes.io/pod-index': pod.slice(statefulSet.length + 1),
  };
}

/** Reports whether a workload was scaled to zero. A Job without Pods does not count, because it has finished or is suspended. */
export function isScaledDown({ kind, replicas }: Workload): boolean {
  return replicas === 0 && kind !== 'Job';
}

/** Returns a workload's template as a Pod that it owns; for a StatefulSet, one Pod for each ordinal. */
export function asPods({ object: workload, source }: Sourced<Workload>): readonly Sourced<Pod>[] {
  const { kind, metadata, template, replicas = 1, firstOrdinal } = workload;
  const { labels, spec } = template;
  const owner = { kind, name: metadata.name };
  const podOf = (name: string, added: Labels): Sourced<Pod> => ({
    object: {
      metadata: { ...metadata, name, labels: { ...labels, ...added } },
      spec,
      owner,
      terminating: false,
      status: undefined,
      assumed: true,
    },
    source,
  });
  if (kind !== 'StatefulSet') return [podOf(metadata.name, {})];
  return Array.from({ length: Math.max(1, replicas) }, (_, i) => {
    const name = `${metadata.name}-${firstOrdinal + i}`;
    return podOf(name, ordinalLabels(metadata.name, name));
  });
}

function describeTooMany(podSets: readonly PodSet[], count: number): Finding {
  const largest = podSets.reduce((most, each) => (each.replicas > most.replicas ? each : most));
  const details = { of: 'workloads', count, limit: maxPods, largest: largest.key, most: largest.replicas };
  return diagnose('too-many-pods', details, largest.source.place(['spec', 'replicas']));
}

function describeLacks(all: readonly PlacedPod[], { services, given }: Assumption): readonly Finding[] {
  // A Pod that no Service selects needs no address.
  const selecting = selectPods(
    services,
    all.map(({ pod }) => pod),
  ).filter(({ service }) => !areEndpointsGiven(service, given));
  // Services with the same one-label selector share one list of Pods.
  const lists = new Set(selecting.map(({ pods }) => pods));
  const selected = new Set<Sourced<Pod>>();
  for (const list of lists) for (const pod of list) selected.add(pod);
  const placed = all.filter(({ pod }) => selected.has(pod));
  const ownOf = ({ pod }: PlacedPod): number => pod.object.status?.addresses.length ?? 0;
  const namesOf = (pods: readonly PlacedPod[]) => pods.map(({ pod }) => fullName(pod.object.metadata));
  const lacks: Finding[] = [];
  if (placed.some((each) => !each.onHost && each.networks.length === 0)) {
    lacks.push(diagnose('no-pod-address', { problem: 'no-network' }));
  }
  const crowded = placed.filter((each) => !each.onHost && ownOf(each) < each.networks.length);
  if (crowded.length > 0) {
    const networks = [...new Set(crowded.flatMap((each) => each.networks.map(({ text }) => text)))];
    lacks.push(diagnose('range-is-full', { what: 'podIP', ranges: networks, pods: namesOf(crowded) }));
  }
  const known = new Set(placed.flatMap(({ networks }) => networks.map(({ family }) => family)));
  for (const family of families) {
    if (known.size === 0 || known.has(family)) continue;
    if (!selecting.some(({ service }) => hasFamily(service.object, family))) continue;
    lacks.push(diagnose('no-pod-address', { problem: 'no-network-of-family', family }));
  }
  const onHost = placed.filter((each) => each.onHost && ownOf(each) === 0);
  if (onHost.length > 0) {
    lacks.push(diagnose('no-pod-address', { problem: 'host-network', pods: namesOf(onHost) }));
  }
  return lacks;
}

function hasFamily({ spec }: Service, family: Family): boolean {
  if (spec.ipFamilies.length > 0) return spec.ipFamilies.some((each) => each.toLowerCase() === family);
  return parseAddress(spec.clusterIP)?.family === family;
}
