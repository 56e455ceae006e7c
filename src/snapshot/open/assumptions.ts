import { diagnose, type Finding, placeAtLine } from '../../base/findings/finding.ts';
import type { AssumedValues, DualStack } from '../../base/findings/services.ts';
import { type AssignmentRanges, lacksAnything, lacksLoadBalancer } from '../../cluster/assign-addresses.ts';
import { unplacedOf } from '../../cluster/model.ts';
import { podNetworksOf } from '../../cluster/node-context.ts';
import { fullName, type Node, type ProxySettings, type Service, type Sourced } from '../../cluster/objects.ts';
import { pick } from '../../cluster/service-ranges.ts';
import type { Inputs } from '../../input/read-inputs.ts';
import {
  addressAfter,
  addressBits,
  contains,
  families as bothFamilies,
  type Family,
  familyNames,
  type Network,
  parseAddress,
  parseNetwork,
} from '../../kernel/address.ts';
import { compareText } from '../../kernel/compare.ts';
import type { CompiledSnapshot } from '../snapshot.ts';

/** Values of --ip-family. "auto" means the families that the Services and the node use. */
export const ipFamilyChoices = ['auto', 'ipv4', 'ipv6', 'dual'] as const;

export type IpFamilyChoice = (typeof ipFamilyChoices)[number];

export function chooseFamilies(choice: IpFamilyChoice, used: () => readonly Family[]): readonly Family[] {
  switch (choice) {
    case 'ipv4':
    case 'ipv6':
      return [choice];
    case 'dual':
      return bothFamilies;
    case 'auto':
      return used();
  }
}

/**
 * The cluster that kpc assumes for manifests from git, unless the manifests or a flag say otherwise. Its cluster IPs, Pod networks and node
 * ports are those that kubeadm uses. Its other addresses are documentation addresses, which no network uses (RFC 5737, RFC 3849).
 */
const assumedCluster = {
  ipv4: { services: '10.96.0.0/12', pods: '10.244.0.0/16', balancers: '192.0.2.0/24', nodes: '198.51.100.0/24' },
  ipv6: {
    services: 'fd00:10:96::/112',
    pods: 'fd00:10:244::/56',
    balancers: '2001:db8::/64',
    nodes: '2001:db8:1::/64',
  },
} as const;
const assumedNodePorts = { first: 30000, last: 32767 } as const;
const assumedNodes = ['node-1', 'node-2'] as const;

const nodePrefix = { ipv4: 24, ipv6: 64 } as const;

export interface Assumptions {
  readonly ranges: AssignmentRanges;
  readonly podNetworks: readonly Network[];
  readonly families: readonly Family[];
  readonly dualStack: DualStack | undefined;
  /** Whether kpc chose the families itself, because no flag or network shows them. */
  readonly choosesFamilies: boolean;
  /** The assumed Nodes. Empty if the input shows which nodes exist. */
  readonly nodes: readonly Sourced<Node>[];
  /** kubeadm's Pod networks, by which kube-proxy recognises Pods on assumed Nodes. Empty if other networks are configured. */
  readonly clusterCIDRs: readonly string[];
}

export interface AskedCluster {
  readonly node?: string | readonly string[] | undefined;
  readonly ipFamily: IpFamilyChoice;
  /** The name of the other side of a comparison, if that side's cluster is dual-stack. The assumed cluster is then dual-stack too. */
  readonly dualStackAs?: string | undefined;
  /** The nodes that the other side's Pods name, if that side assumes Nodes. Both sides then assume the same Nodes. */
  readonly nodesBeside?: readonly string[] | undefined;
}

interface ToldFacts {
  readonly settings: ProxySettings;
  readonly isConfigured: boolean;
  readonly ranges: AssignmentRanges;
  readonly podNetworks: readonly Network[];
}

/**
 * Assumes what is given neither by the input, nor by ranges in flags and configurations, nor by the Pod networks of --assume-endpoints.
 * Depends only on the input, so every run makes the same assumptions.
 */
export function assumeCluster(
  inputs: Inputs,
  options: AskedCluster,
  { settings, isConfigured, ranges, podNetworks }: ToldFacts,
): Assumptions {
  const { clusterCIDRs, hostnameOverride, detectLocal } = settings;
  const isTold = ranges.clusterIPs.length > 0 || inputs.serviceCidrs.length > 0;
  const known = [...podNetworks, ...clusterCIDRs.flatMap((text) => parseNetwork(text) ?? [])];
  const { families, dualStack, choosesFamilies } = assumeFamilies(inputs, ranges, known, options);
  const networks = (of: keyof (typeof assumedCluster)['ipv4']): readonly Network[] =>
    families.flatMap((family) => parseNetwork(assumedCluster[family][of]) ?? []);
  const pods = [...known, ...networks('pods')];
  const flagged = [options.node ?? [], hostnameOverride].flat();
  const named = [...nodesOfPods(inputs), ...(options.nodesBeside ?? [])];
  const nodes = needsNodes(inputs, options) ? makeNodes(named, flagged, families, pods) : [];
  const lacksNetworks = nodes.length > 0 && !isConfigured && detectLocal.mode === 'ClusterCIDR';
  return {
    ranges: {
      ...ranges,
      clusterIPs: isTold ? ranges.clusterIPs : networks('services'),
      nodePorts: ranges.nodePorts ?? assumedNodePorts,
      ...(ranges.loadBalancerIPs ? {} : { loadBalancerIPs: networks('balancers'), sparesPending: true }),
    },
    podNetworks: pods,
    families,
    dualStack,
    choosesFamilies,
    nodes,
    clusterCIDRs: lacksNetworks
      ? families.flatMap((family) => pods.find((network) => network.family === family)?.text ?? [])
      : [],
  };
}

/**
 * Finds the families of the cluster, its Nodes and each PreferDualStack Service. The Services' networks or a flag decide, or else the Pods'
 * networks, or else the family is IPv4. The cluster has both families if a Service needs the other one or the other side is dual-stack.
 */
function assumeFamilies(
  { services, serviceCidrs, nodes }: Inputs,
  { clusterIPs }: AssignmentRanges,
  podNetworks: readonly Network[],
  { ipFamily, dualStackAs }: Pick<AskedCluster, 'ipFamily' | 'dualStackAs'>,
): Pick<Assumptions, 'families' | 'dualStack' | 'choosesFamilies'> {
  const told = { dualStack: undefined, choosesFamilies: false };
  const declared = familiesAmong([...clusterIPs, ...serviceCidrs.flatMap(({ object }) => object.cidrs)]);
  if (declared.length > 0) return { families: declared, ...told };
  const shown = familiesAmong([...podNetworks, ...podNetworksOf(nodes)]);
  if (ipFamily !== 'auto') return { families: chooseFamilies(ipFamily, () => shown), ...told };
  const own = shown.length > 0 ? shown : (['ipv4'] as const);
  const lacking = bothFamilies.find((family) => !own.includes(family));
  if (lacking === undefined) return { families: own, ...told };
  const asking = services.filter(({ object }) => needsFamily(object, lacking));
  const [service] = asking.map(({ object }) => fullName(object.metadata)).toSorted(compareText);
  const both = { families: bothFamilies, choosesFamilies: true };
  if (service !== undefined) return { ...both, dualStack: { by: 'service', name: service, family: lacking } };
  if (dualStackAs !== undefined) return { ...both, dualStack: { by: 'side', name: dualStackAs } };
  return { families: own, dualStack: undefined, choosesFamilies: shown.length === 0 };
}

function familiesAmong(networks: readonly Network[]): readonly Family[] {
  return bothFamilies.filter((family) => networks.some((network) => network.family === family));
}

/** Reports whether the API server accepts the Service only in a cluster that has this family. */
function needsFamily({ spec: { ipFamilies, ipFamilyPolicy, clusterIPs } }: Service, family: Family): boolean {
  return (
    ipFamilies.includes(familyNames[family]) ||
    ipFamilyPolicy === 'RequireDualStack' ||
    clusterIPs.some((text) => parseAddress(text)?.family === family)
  );
}

/**
 * Reports whether to assume Nodes. kpc assumes them if the input says nothing about nodes and also lacks other parts of a cluster, or if
 * the other side assumes Nodes.
 */
function needsNodes(inputs: Inputs, { nodesBeside }: Pick<AskedCluster, 'nodesBeside'>): boolean {
  const { services, pods, workloads } = inputs;
  if (saysNode(inputs)) return false;
  if (nodesBeside) return true;
  if (services.length === 0) return false;
  const lacksAddress = (service: Service): boolean =>
    lacksAnything(service) || (lacksLoadBalancer(service) && service.spec.clusterIP === '');
  return workloads.length + pods.length > 0 || services.some(({ object }) => lacksAddress(object));
}

export function saysNode({ slices, endpoints, nodes, pods }: Inputs): boolean {
  return (
    nodes.length > 0 ||
    slices.some(({ object }) => object.endpoints.some(({ status }) => status.nodeName !== undefined)) ||
    endpoints.some(({ object }) =>
      object.subsets.some(({ addresses, notReadyAddresses }) =>
        [...addresses, ...notReadyAddresses].some(({ nodeName }) => nodeName !== undefined),
      ),
    ) ||
    pods.some(({ object }) => object.status !== undefined)
  );
}

export function nodesOfPods({ pods, workloads }: Pick<Inputs, 'pods' | 'workloads'>): readonly string[] {
  const specs = [...pods.map(({ object }) => object.spec), ...workloads.map(({ object }) => object.template.spec)];
  return [...new Set(specs.flatMap(({ nodeName }) => nodeName || []))];
}

function makeNodes(
  named: readonly string[],
  flagged: readonly string[],
  families: readonly Family[],
  networks: readonly Network[],
): readonly Sourced<Node>[] {
  const ofPods = [...new Set(named)].toSorted(compareText);
  const spare: readonly string[] = assumedNodes
    .filter((name) => !ofPods.includes(name))
    .slice(0, Math.max(0, assumedNodes.length - ofPods.length));
  const usual = [...ofPods, ...spare];
  // A node that a flag names replaces an assumed Node. An additional Node would change everything that depends on the number of Nodes.
  const others = [...new Set(flagged)].filter((name) => name !== '' && !usual.includes(name));
  const free = spare.filter((name) => !flagged.includes(name));
  const renamed = new Map(free.slice(0, others.length).map((name, i) => [name, others[i] ?? name]));
  const seats = [...usual, ...others.slice(free.length)];
  const numbers = numberNodes(seats, families, networks);
  return seats.map((seat) => ({
    object: makeNode(renamed.get(seat) ?? seat, seat, numbers.get(seat) ?? 0, families, networks),
    source: { place: () => nowhere },
  }));
}

const mostNumbers = 254;

/**
 * Gives each Node a number, which determines its address and Pod network. The number depends only on the Node's name, unless two names have
 * the same hash. A new Node therefore leaves the others unchanged. Nodes that do not fit into the Pod networks get the last numbers.
 */
function numberNodes(
  names: readonly string[],
  families: readonly Family[],
  networks: readonly Network[],
): ReadonlyMap<string, number> {
  const rooms = families.flatMap((family) => {
    const network = networks.find((each) => each.family === family);
    return network ? 2 ** Math.max(0, nodePrefix[family] - network.prefixLength) : [];
  });
  const size = Math.min(mostNumbers, ...rooms);
  const most = Math.max(mostNumbers, names.length);
  const usual = assumedNodes.filter((name) => names.includes(name));
  const numbers = new Map<string, number>(usual.map((name) => [name, assumedNodes.indexOf(name)]));
  const taken = new Set(numbers.values());
  for (const name of names.toSorted(compareText)) {
    const isFree = (each: number): boolean => !taken.has(each);
    const number =
      numbers.get(name) ?? pick(name, size, assumedNodes.length, isFree) ?? pick(name, most, size, isFree) ?? 0;
    numbers.set(name, number);
    taken.add(number);
  }
  return numbers;
}

const nowhere = placeAtLine('assumed');

function makeNode(
  name: string,
  assumedAs: string,
  at: number,
  families: readonly Family[],
  networks: readonly Network[],
): Node {
  return {
    metadata: { name, namespace: 'default', labels: {}, annotations: {} },
    assumedAs,
    kubernetesVersion: '',
    podCIDRs: families.flatMap((family) => partOf(networks, family, at) ?? []),
    addresses: families.map((family) => {
      const network = parseNetwork(assumedCluster[family].nodes);
      return { type: 'InternalIP', address: network ? addressAfter(network.address, at + 1).text : '' };
    }),
    ready: true,
    nanoCPUs: 0n,
    taints: [],
  };
}

/** Returns a Node's part of the Pod network in a family. Undefined if the network is too small for that many Nodes. */
function partOf(networks: readonly Network[], family: Family, at: number): string | undefined {
  const [network, length] = [networks.find((each) => each.family === family), nodePrefix[family]];
  if (!network || network.prefixLength >= length) return undefined;
  const start = addressAfter(network.address, at * 2 ** (addressBits[family] - length));
  return contains(network, start) ? `${start.text}/${length}` : undefined;
}

export function assumesAnything({ nodes }: Assumptions, { assigned, assumedEndpoints = [] }: WhatIsAssumed): boolean {
  return nodes.length + assigned.length + assumedEndpoints.length > 0;
}

type WhatIsAssumed = Pick<CompiledSnapshot, 'assigned' | 'assumedEndpoints'>;

export function describeAssumptions(
  { ranges, podNetworks, dualStack, nodes, clusterCIDRs }: Assumptions,
  { assigned, assumedEndpoints = [], inputs }: WhatIsAssumed & { readonly inputs: Pick<Inputs, 'nodes'> },
  isDefault: boolean,
): readonly Finding[] {
  const pods = assumedEndpoints.flatMap((workload) => workload.pods);
  const clusterIPs = assigned.flatMap((service) => service.clusterIPs);
  const balancers = assigned.flatMap(({ loadBalancerIPs = [] }) => loadBalancerIPs);
  const podAddresses = pods.flatMap(({ addresses }) => addresses);
  const all: readonly AssumedValues[] = [
    drawn('clusterIP', clusterIPs, ranges.clusterIPs),
    drawn('nodePort', assigned.flatMap(({ nodePorts }) => Object.values(nodePorts)).map(String), []),
    drawn(
      'healthCheckNodePort',
      assigned.flatMap(({ healthCheckNodePort = [] }) => healthCheckNodePort).map(String),
      [],
    ),
    drawn('loadBalancerIP', balancers, ranges.loadBalancerIPs ?? []),
    { ...drawn('readyPod', podAddresses, [...podNetworksOf(inputs.nodes), ...podNetworks]), count: pods.length },
    { what: 'clusterCIDR', count: clusterCIDRs.length, from: clusterCIDRs },
    { what: 'Node', count: nodes.length, from: [] },
  ];
  const values = all.filter(({ count }) => count > 0);
  if (values.length === 0) return [];
  return [
    diagnose('assumed', {
      values,
      dualStack,
      unplaced: unplacedOf(assumedEndpoints),
      nodes: nodes.map(({ object }) => object.metadata.name),
      isDefault,
    }),
  ];
}

/** Returns how many values were assumed, and from which networks. If several networks contain an address, only the first counts. */
function drawn(what: AssumedValues['what'], texts: readonly string[], networks: readonly Network[]): AssumedValues {
  const addresses = texts.flatMap((text) => parseAddress(text) ?? []);
  const used = new Set(addresses.flatMap((address) => networks.find((network) => contains(network, address)) ?? []));
  return { what, count: texts.length, from: [...new Set(Array.from(used, ({ text }) => text))] };
}
