import type { Names } from '../by-name.ts';
import { compareText } from '../../kernel/compare-text.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { nodeAddresses } from '../node-context.ts';
import type { Node, Owner, Pod, PodSpec, Service, Sourced, Workload } from '../objects.ts';
import { hash } from '../pick-by-hash.ts';
import { contains, parseAddress, parseNetwork, type Address, type Network } from '../../kernel/address.ts';
import { families } from '../../kernel/family.ts';
import { choosePodAddresses, claimKey, roomFor, type Claim } from './pod-addresses.ts';
import { PodIndex } from './pod-index.ts';
import { findSelecting, hasEndpoints } from './services-and-pods.ts';
import { standalonePods, ownerKey, uncontrolledWorkloads } from './uncontrolled.ts';

/** What Pods are assumed of. */
export interface Assumption {
  readonly workloads: readonly Sourced<Workload>[];
  readonly pods: readonly Sourced<Pod>[];
  readonly nodes: readonly Sourced<Node>[];
  readonly services: readonly Sourced<Service>[];
  /** Networks of the flag's own, one of each family at most: they win over those of the Nodes that lie outside. */
  readonly networks: readonly Network[];
  /** The Pods' networks as kube-proxy knows them. */
  readonly clusterCIDRs: readonly Network[];
  /** The Services, "namespace/name" each, that need no Pods. */
  readonly given: Names;
  /** Addresses that endpoints of the input have. */
  readonly taken: ReadonlySet<string>;
}

export interface AssumedPods {
  /** Those of the input that have a status, and those that are assumed. */
  readonly pods: readonly Sourced<Pod>[];
  /** Workloads with no replicas: a Service may select them. */
  readonly idle: readonly Workload[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Kubernetes supports no more Pods in a cluster. */
const maxPods = 150_000;

/** The Pods of one workload, or one Pod that nothing controls. */
interface PodSet {
  readonly key: string;
  readonly owner: Owner;
  readonly template: { readonly metadata: Pod['metadata']; readonly spec: PodSpec };
  readonly source: Sourced<Pod>['source'];
  /** Whether there may be more of them tomorrow. */
  readonly scales: boolean;
  readonly places: (count: number) => readonly Place[];
  readonly replicas: number;
}

/** Where the Pod with this index runs, and its name. */
interface Place {
  readonly index: number;
  readonly name: string;
  /** The name that it would have if no flag renamed an assumed Node. */
  readonly seat: string;
  readonly node: Node | undefined;
}

/**
 * Ready Pods for the workloads of the input and for its Pods without a status, spread over the Nodes, at addresses of the
 * Pods' networks. What the input holds itself wins: a workload that one of its Pods with a status belongs to has no others,
 * and an object that another one of the input controls does not count beside it.
 */
export function assumePods(assumption: Assumption): AssumedPods {
  const pods = nameAll(assumption.pods);
  const workloads = nameAll(assumption.workloads);
  const real = pods.filter(({ object }) => object.status !== undefined);
  const nodes = assumption.nodes.map(({ object }) => object);
  const sorted = nodes.toSorted((a, b) => compareText(seatName(a), seatName(b)));
  const keyed = [
    ...uncontrolledWorkloads(workloads, real).map((workload) => podSetOfWorkload(workload, sorted)),
    ...standalonePods(pods, workloads).map((pod) => podSetOfPod(pod, sorted)),
  ].toSorted((a, b) => compareText(a.key, b.key));
  const total = keyed.reduce((sum, { replicas }) => sum + replicas, 0);
  if (total > maxPods) return { pods: real, idle: [], diagnostics: [describeTooMany(keyed, total)] };
  const podSets = withoutKinds(keyed);
  const networksOf = (node: Node | undefined): readonly Network[] => chooseNetworks(node, assumption);
  const taken = new Set([
    ...assumption.taken,
    ...real.flatMap(({ object }) => object.status?.addresses.map(({ text }) => text) ?? []),
    ...nodes.flatMap((node) => nodeAddresses(node).map(({ text }) => text)),
  ]);
  const addresses = choosePodAddresses((least) => claimsOf(podSets, least, networksOf), taken);
  const placed = podSets.flatMap((podSet) => placePods(podSet, networksOf, addresses));
  return {
    pods: [...real, ...placed.map(({ pod }) => pod)],
    idle: workloads.filter(({ object }) => object.replicas === 0).map(({ object }) => object),
    diagnostics: describeLacks(placed, assumption),
  };
}

/** Names those that leave their name to the API server, by their content, so that their order does not matter. */
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

/** An assumed Node keeps what it has if a flag gives it another name. */
function seatName({ metadata, assumedAs }: Node): string {
  return assumedAs ?? metadata.name;
}

/**
 * The same with keys that do not name the kind, so that a Deployment that becomes a StatefulSet keeps its addresses; the kind is
 * named only where two kinds share a name.
 */
function withoutKinds(podSets: readonly PodSet[]): readonly PodSet[] {
  const seen = new Set<string>();
  return podSets.map((podSet) => {
    const key = nameKey(podSet.template.metadata.namespace, podSet.owner.name);
    if (seen.has(key)) return podSet;
    seen.add(key);
    return { ...podSet, key };
  });
}

function nameKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

function podSetOfWorkload({ object: workload, source }: Sourced<Workload>, nodes: readonly Node[]): PodSet {
  const { kind, metadata, template } = workload;
  const key = ownerKey(metadata.namespace, { kind, name: metadata.name });
  const base = {
    key,
    owner: { kind, name: metadata.name },
    template: { metadata: { ...metadata, labels: template.labels }, spec: template.spec },
    source,
  };
  if (workload.replicas === undefined) {
    const each = nodes.length === 0 ? [undefined] : nodes;
    const places = each.map((node, index) => ({
      index,
      name: `${metadata.name}-${node?.metadata.name ?? '0'}`,
      seat: `${metadata.name}-${node ? seatName(node) : '0'}`,
      node,
    }));
    return { ...base, scales: false, replicas: places.length, places: () => places };
  }
  const nodeOf = spread(metadata, template.spec, nodes);
  const places = (count: number): readonly Place[] =>
    Array.from({ length: count }, (_, index) => {
      const name = `${metadata.name}-${workload.firstOrdinal + index}`;
      return { index, name, seat: name, node: nodeOf(index) };
    });
  return { ...base, scales: true, replicas: workload.replicas, places };
}

function podSetOfPod({ object: pod, source }: Sourced<Pod>, nodes: readonly Node[]): PodSet {
  const { metadata, spec } = pod;
  const key = ownerKey(metadata.namespace, { kind: 'Pod', name: metadata.name });
  const places = [{ index: 0, name: metadata.name, seat: metadata.name, node: spread(metadata, spec, nodes)(0) }];
  const owner = { kind: 'Pod', name: metadata.name };
  return { key, owner, template: { metadata, spec }, source, scales: false, replicas: 1, places: () => places };
}

/** One Node after the other, from where the name points; the one that the spec names, if it does. */
function spread(
  { namespace, name }: Pod['metadata'],
  { nodeName }: PodSpec,
  nodes: readonly Node[],
): (index: number) => Node | undefined {
  if (nodeName !== '') {
    const named = nodes.find((node) => node.metadata.name === nodeName);
    return () => named;
  }
  const start = hash(nameKey(namespace, name));
  return (index) => nodes[(start + index) % nodes.length];
}

/** Of each family at most one network: that of the Node, the flag's or the cluster's. */
function chooseNetworks(node: Node | undefined, { networks, clusterCIDRs }: Assumption): readonly Network[] {
  const own = (node?.podCIDRs ?? []).flatMap((text) => parseNetwork(text) ?? []);
  return families.flatMap((family) => {
    const ofFamily = (list: readonly Network[]): Network | undefined => list.find((each) => each.family === family);
    const named = ofFamily(networks);
    const ofNode = ofFamily(own);
    if (named) return ofNode && isInside(ofNode, named) ? ofNode : named;
    return ofNode ?? ofFamily(clusterCIDRs) ?? [];
  });
}

function isInside(inner: Network, outer: Network): boolean {
  return inner.prefixLength >= outer.prefixLength && contains(outer, inner.address);
}

function claimsOf(
  podSets: readonly PodSet[],
  least: number,
  networksOf: (node: Node | undefined) => readonly Network[],
): readonly Claim[] {
  return podSets.flatMap(({ key, template, scales, replicas, places }) => {
    if (template.spec.hostNetwork) return [];
    const room = scales ? roomFor(replicas, least) : replicas;
    return places(room).flatMap(({ index, node, seat }) => {
      // The Pod of a DaemonSet is named by its Node: another Node must not change its address.
      const [workload, at] = scales ? [key, index] : [`${key}/${seat}`, 0];
      return networksOf(node).map((network) => ({ network, workload, index: at, wanted: index < replicas }));
    });
  });
}

/** A Pod with the addresses that it got. */
interface PlacedPod {
  readonly pod: Sourced<Pod>;
  readonly onHost: boolean;
  readonly networks: readonly Network[];
}

function placePods(
  { key, owner, template, source, scales, replicas, places }: PodSet,
  networksOf: (node: Node | undefined) => readonly Network[],
  chosen: ReadonlyMap<string, Address>,
): readonly PlacedPod[] {
  const { hostNetwork } = template.spec;
  return places(replicas).map(({ index, name, seat, node }) => {
    const networks = networksOf(node);
    const [workload, at] = scales ? [key, index] : [`${key}/${seat}`, 0];
    const addresses = hostNetwork
      ? hostAddresses(node)
      : networks.flatMap((network) => chosen.get(claimKey({ network, workload, index: at })) ?? []);
    return { pod: makePod(template, owner, source, name, node, addresses), onHost: hostNetwork, networks };
  });
}

/** As the kubelet reports them: the first address of each family. */
function hostAddresses(node: Node | undefined): readonly Address[] {
  const own = nodeAddresses(node);
  return families.flatMap((family) => own.find((address) => address.family === family) ?? []);
}

function makePod(
  { metadata, spec }: PodSet['template'],
  owner: Owner,
  source: PodSet['source'],
  name: string,
  node: Node | undefined,
  addresses: readonly Address[],
): Sourced<Pod> {
  const isStateful = owner.kind === 'StatefulSet';
  const ordinal = name.slice(owner.name.length + 1);
  const added = isStateful
    ? { 'statefulset.kubernetes.io/pod-name': name, 'apps.kubernetes.io/pod-index': ordinal }
    : undefined;
  const object: Pod = {
    metadata: { ...metadata, name, labels: { ...metadata.labels, ...added } },
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

function describeTooMany(podSets: readonly PodSet[], total: number): Diagnostic {
  const [largest] = podSets.toSorted((a, b) => b.replicas - a.replicas);
  const most = largest && { name: largest.key, count: largest.replicas };
  const details = { of: 'workloads', count: total, limit: maxPods, largest: most } as const;
  return diagnose('too-many', details, largest?.source.place(['spec', 'replicas']));
}

/** Pods without an address. */
function describeLacks(all: readonly PlacedPod[], { services, nodes, given }: Assumption): readonly Diagnostic[] {
  // A Pod that no Service selects needs no address.
  const index = new PodIndex(all.map(({ pod }) => pod));
  const selecting = findSelecting(services, index).filter(({ service }) => !hasEndpoints(service, given));
  // Services that select the same by one label share the list.
  const lists = new Set(selecting.map(({ pods }) => pods));
  const selected = new Set<Sourced<Pod>>();
  for (const list of lists) for (const pod of list) selected.add(pod);
  const placed = all.filter(({ pod }) => selected.has(pod));
  const nameOf = ({ pod: { object } }: PlacedPod): string => `${object.metadata.namespace}/${object.metadata.name}`;
  const without = placed.filter(({ pod }) => pod.object.status?.addresses.length === 0);
  const onHost = without.filter((each) => each.onHost);
  const homeless = without.filter((each) => !each.onHost && each.networks.length === 0);
  const crowded = placed.filter(
    ({ pod, onHost: host, networks }) => !host && (pod.object.status?.addresses.length ?? 0) < networks.length,
  );
  const wanted = families.filter((family) => selecting.some(({ service }) => hasFamily(service.object, family)));
  const missing = placed.some((each) => each.networks.length > 0)
    ? wanted.filter((family) => !placed.some(({ networks }) => networks.some((network) => network.family === family)))
    : [];
  const networksOf = ({ networks }: PlacedPod): readonly string[] => networks.map(({ text }) => text);
  return [
    ...(homeless.length === 0 ? [] : [diagnose('no-pod-cidr', { problem: 'assumed-pods' })]),
    ...(crowded.length === 0
      ? []
      : [
          diagnose('no-pod-address', {
            problem: 'range-is-full',
            networks: distinct(crowded.flatMap(networksOf)),
            pods: crowded.map(nameOf),
          }),
        ]),
    ...missing.map((family) => diagnose('no-pod-cidr', { problem: 'assumed-pods-of-family', family })),
    ...(onHost.length === 0
      ? []
      : [
          diagnose('no-pod-address', {
            problem: 'host-network',
            lack: nodes.length === 0 ? 'Node' : 'address',
            pods: onHost.map(nameOf),
          }),
        ]),
  ];
}

function distinct(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}

function hasFamily({ spec }: Service, family: Address['family']): boolean {
  if (spec.ipFamilies.length > 0) return spec.ipFamilies.some((each) => each.toLowerCase() === family);
  return parseAddress(spec.clusterIP)?.family === family;
}
