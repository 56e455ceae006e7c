import {
  hasLabels,
  meetsRequirement,
  requirementWords,
  type LabelRequirement,
  type Node,
  type PodSpec,
  type Taint,
  type Toleration,
  fullName,
  type Pod,
  type Service,
  type Sourced,
  addressesOfPod,
} from '../objects.ts';
import { pickAddress, poolSize } from '../service-ranges.ts';
import { compareText } from '../../kernel/compare.ts';
import type { Address, Network } from '../../kernel/address.ts';
import type { Names } from '../grouping.ts';

/** Taints that the DaemonSet controller makes its Pods tolerate (AddOrUpdateDaemonPodTolerations). */
const ofDaemons = ['not-ready', 'unreachable', 'disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'];

export function daemonTolerations({ tolerations, hostNetwork }: PodSpec): readonly Toleration[] {
  const keys = hostNetwork ? [...ofDaemons, 'network-unavailable'] : ofDaemons;
  const added = keys.map((key) => ({ key: `node.kubernetes.io/${key}`, value: '', effect: '', isOfAny: true }));
  return [...tolerations, ...added];
}

export function suitsPods(node: Node, { nodeTerms }: Pick<PodSpec, 'nodeTerms'>): boolean {
  const terms = nodeTerms ?? [[]];
  return terms.some((term) => term.every((requirement) => hasRequired(node, requirement)));
}

function hasRequired({ metadata: { name, labels }, isWindows }: Node, requirement: LabelRequirement): boolean {
  // kubelet labels each Node so (initialNode): a Node without these labels was written by hand.
  const os = isWindows ? 'windows' : 'linux';
  const ofKubelet = { 'kubernetes.io/os': os, 'beta.kubernetes.io/os': os, 'kubernetes.io/hostname': name };
  return meetsRequirement(requirement, { ...ofKubelet, ...labels, 'metadata.name': name }) === true;
}

/**
 * Returns the requirements that no Node meets ("pool=web"), and the first one. If a term fails only as a whole, returns all its
 * requirements together.
 */
export function describeUnmet(nodes: readonly Node[], { nodeTerms = [] }: Pick<PodSpec, 'nodeTerms'>) {
  const terms = nodeTerms.map((term) => {
    const unmet = term.filter((requirement) => !nodes.some((node) => hasRequired(node, requirement)));
    return unmet.length === 0 ? term : unmet;
  });
  const words = terms.map((term) => term.map(requirementWords).join(','));
  return { words: [...new Set(words)].join(' or '), first: terms[0]?.[0] };
}

export function admitsPods({ taints }: Pick<Node, 'taints'>, tolerations: readonly Toleration[]): boolean {
  return taints.every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)));
}

function tolerates({ key, value, effect, isOfAny }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key === '') return isOfAny;
  return key === taint.key && (isOfAny || value === taint.value);
}

export interface AddressClaim {
  readonly network: Network;
  readonly workload: string;
  readonly index: number;
  /** Whether the Pod exists. If not, the claim reserves an address for a future Pod. */
  readonly wanted: boolean;
}

/** The block sizes to reserve for a workload, in Pods. The first that fits is used. */
const rooms = [16, 8, 4, 2, 1] as const;

export function roomForReplicas(replicas: number, least: number): number {
  return Math.max(least, 2 ** Math.ceil(Math.log2(Math.max(1, replicas))));
}

/**
 * Gives each Pod an address by its workload's name and its number. The first Pods of all workloads choose first, and addresses are reserved
 * for future Pods, so a new replica does not change another Pod's address, and a new workload rarely does. Never assigns an address in
 * `taken`. The result omits claims that get no address.
 */
export function choosePodAddresses(
  claimsWithRoom: (least: number) => readonly AddressClaim[],
  taken: ReadonlySet<string>,
): ReadonlyMap<string, Address> {
  // Networks may be nested, so an assigned address counts in all of them, but a reserved address only in its own.
  const used = new Set(taken);
  const keptOf = new Map<string, Set<string>>();
  const full = new Set<string>();
  const chosen = new Map<string, Address>();
  for (const claim of chooseRoom(claimsWithRoom).toSorted(compareClaims)) {
    const { network, wanted } = claim;
    if (full.has(network.text)) continue;
    const kept = keptOf.get(network.text) ?? new Set();
    keptOf.set(network.text, kept);
    const key = claimKey(claim);
    const address = pickAddress(key, network, { skipped: 2 }, (text) => !kept.has(text) && !used.has(text));
    if (!address) {
      full.add(network.text);
      continue;
    }
    kept.add(address.text);
    if (!wanted) continue;
    used.add(address.text);
    chosen.set(key, address);
  }
  return chosen;
}

export function claimKey({ network, workload, index }: Omit<AddressClaim, 'wanted'>): string {
  return `${workload}/${index}/${network.family}`;
}

/** Adds claims that reserve addresses for more Pods, as long as no network is more than half full. */
function chooseRoom(claimsWithRoom: (least: number) => readonly AddressClaim[]): readonly AddressClaim[] {
  for (const least of rooms) {
    const claims = claimsWithRoom(least);
    if (isHalfEmpty(claims)) return claims;
  }
  return claimsWithRoom(1).filter(({ wanted }) => wanted);
}

function isHalfEmpty(claims: readonly AddressClaim[]): boolean {
  const counts = new Map<string, number>();
  for (const { network } of claims) counts.set(network.text, (counts.get(network.text) ?? 0) + 1);
  return claims.every(({ network }) => (counts.get(network.text) ?? 0) <= poolSize(network) / 2);
}

function compareClaims(a: AddressClaim, b: AddressClaim): number {
  return a.index - b.index || compareText(a.workload, b.workload);
}

type Pods = readonly Sourced<Pod>[];

export interface Selecting {
  readonly service: Sourced<Service>;
  readonly label: string;
  readonly pods: Pods;
}

export function selectPods(services: readonly Sourced<Service>[], pods: Pods): readonly Selecting[] {
  const index = new PodIndex(pods);
  return services
    .flatMap((service): Selecting[] => {
      const { metadata, spec } = service.object;
      if (!spec.selector || spec.type === 'ExternalName') return [];
      const label = fullName(metadata);
      return [{ service, label, pods: index.select(metadata.namespace, spec.selector) }];
    })
    .toSorted((a, b) => compareText(a.label, b.label));
}

export function areEndpointsGiven({ object: { metadata } }: Sourced<Service>, given: Names): boolean {
  return given.has(metadata.namespace, metadata.name);
}

const noLabel = ['', ''] as const;

class PodIndex {
  readonly #byLabel = new Map<string, Sourced<Pod>[]>();

  constructor(pods: Pods) {
    for (const pod of pods.toSorted(comparePods)) {
      const { namespace, labels } = pod.object.metadata;
      for (const [name, value] of [noLabel, ...Object.entries(labels)]) {
        const key = labelKey(namespace, name, value);
        const list = this.#byLabel.get(key);
        if (list) list.push(pod);
        else this.#byLabel.set(key, [pod]);
      }
    }
  }

  select(namespace: string, selector: Readonly<Record<string, string>>): Pods {
    const wanted = Object.entries(selector);
    const lists = (wanted.length === 0 ? [noLabel] : wanted).map(
      ([key, value]) => this.#byLabel.get(labelKey(namespace, key, value)) ?? [],
    );
    const [shortest = [], ...others] = lists.toSorted((a, b) => a.length - b.length);
    if (others.length === 0) return shortest;
    return shortest.filter(({ object: { metadata } }) => hasLabels(metadata.labels, wanted));
  }
}

function labelKey(namespace: string, key: string, value: string): string {
  return `${namespace}\n${key}\n${value}`;
}

function comparePods({ object: a }: Sourced<Pod>, { object: b }: Sourced<Pod>): number {
  return (
    compareText(a.metadata.namespace, b.metadata.namespace) ||
    compareNaturally(a.metadata.name, b.metadata.name) ||
    // Order Pods without names, which the API server will generate, by address.
    compareText(addressesOfPod(a).join(), addressesOfPod(b).join())
  );
}

/** Orders names by their numbers: web-2 before web-10. */
export function compareNaturally(a: string, b: string): number {
  const theirs = b.match(pieces) ?? [];
  for (const [i, piece] of (a.match(pieces) ?? []).entries()) {
    const other = theirs[i] ?? '';
    const areNumbers = startsWithDigit.test(piece) && startsWithDigit.test(other);
    const difference = areNumbers ? compareNumbers(piece, other) : compareText(piece, other);
    if (difference !== 0) return difference;
  }
  return compareText(a, b);
}

const pieces = /\d+|\D+/g;
const startsWithDigit = /^\d/;

/** Compares digits as text, because no number type holds all of them. */
function compareNumbers(a: string, b: string): number {
  const [one, other] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return one.length - other.length || compareText(one, other);
}
