import {
  assignedPorts,
  lacksAnything,
  lacksLoadBalancer,
  type AssignmentRanges,
} from '../../cluster/assign-addresses.ts';
import type { Node, ProxySettings, Service, Sourced } from '../../cluster/objects.ts';
import type { AssumedValues } from '../../base/findings/services.ts';
import { diagnose, placeAtLine, type Finding } from '../../base/findings/finding.ts';
import type { Inputs } from '../../input/read-inputs.ts';
import { addressAfter, contains, parseAddress, parseNetwork, type Network } from '../../kernel/address.ts';
import { families as bothFamilies, type Family } from '../../kernel/family.ts';
import { chooseFamilies, type IpFamilyChoice } from './choose-families.ts';
import type { CompiledSnapshot } from '../snapshot.ts';

/**
 * The cluster assumed for manifests from git, unless they or a flag say otherwise: kubeadm's networks and node ports, and
 * addresses that no network uses (RFC 5737, RFC 3849).
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

/** Replacements for what the input lacks. */
export interface Assumptions {
  readonly ranges: AssignmentRanges;
  /** Pod networks for Nodes that do not state theirs. */
  readonly podNetworks: readonly Network[];
  /** Empty if the input shows which nodes exist. */
  readonly nodes: readonly Sourced<Node>[];
  /** The networks by which kube-proxy recognises Pods of assumed Nodes, as kubeadm configures them; empty if others are configured. */
  readonly clusterCIDRs: readonly string[];
}

interface KnownSettings {
  readonly settings: ProxySettings;
  /** Whether flags or a configuration say how kube-proxy recognises Pods. */
  readonly isConfigured: boolean;
}

/**
 * What to assume about the cluster, beyond the ranges in flags and configurations and the Pod networks of --assume-endpoints. It
 * depends only on the input, so it is the same in every run.
 */
export function assumeCluster(
  inputs: Inputs,
  nodeNames: readonly string[],
  ipFamily: IpFamilyChoice,
  { settings, isConfigured }: KnownSettings,
  ranges: AssignmentRanges,
  podNetworks: readonly Network[],
): Assumptions {
  const { clusterCIDRs, hostnameOverride, detectLocal } = settings;
  const isTold = ranges.clusterIPs.length > 0 || inputs.serviceCidrs.length > 0;
  const families = familiesOf(inputs, ranges, ipFamily);
  const networks = (of: keyof (typeof assumedCluster)['ipv4']): readonly Network[] =>
    families.flatMap((family) => parseNetwork(assumedCluster[family][of]) ?? []);
  const pods = [...podNetworks, ...clusterCIDRs.flatMap((text) => parseNetwork(text) ?? []), ...networks('pods')];
  const nodes = needsNodes(inputs) ? makeNodes(inputs, [...nodeNames, hostnameOverride], families, pods) : [];
  const lacksNetworks = nodes.length > 0 && !isConfigured && detectLocal.mode === 'ClusterCIDR';
  return {
    ranges: {
      ...ranges,
      clusterIPs: isTold ? ranges.clusterIPs : networks('services'),
      nodePorts: ranges.nodePorts ?? assumedNodePorts,
      ...(ranges.loadBalancerIPs ? {} : { loadBalancerIPs: networks('balancers'), sparesPending: true }),
    },
    podNetworks: pods,
    nodes,
    clusterCIDRs: lacksNetworks
      ? families.flatMap((family) => pods.find((network) => network.family === family)?.text ?? [])
      : [],
  };
}

function familiesOf({ services, serviceCidrs }: Inputs, ranges: AssignmentRanges, ipFamily: IpFamilyChoice) {
  const declared = [...ranges.clusterIPs, ...serviceCidrs.flatMap(({ object }) => object.cidrs)];
  if (declared.length > 0)
    return bothFamilies.filter((family) => declared.some((network) => network.family === family));
  return chooseFamilies(ipFamily, () => (services.some(({ object }) => wantsIpv6(object)) ? bothFamilies : ['ipv4']));
}

function wantsIpv6({ spec: { ipFamilies, ipFamilyPolicy, clusterIPs } }: Service): boolean {
  return (
    ipFamilies.includes('IPv6') ||
    ipFamilyPolicy === 'RequireDualStack' ||
    clusterIPs.some((text) => parseAddress(text)?.family === 'ipv6')
  );
}

/** Nodes are assumed if something else of the cluster is missing, but not if the input says anything about nodes. */
function needsNodes({ services, slices, endpoints, nodes, pods, workloads }: Inputs): boolean {
  const saysNode =
    nodes.length > 0 ||
    slices.some(({ object }) => object.endpoints.some(({ status }) => status.nodeName !== undefined)) ||
    endpoints.some(({ object }) =>
      object.subsets.some(({ addresses, notReadyAddresses }) =>
        [...addresses, ...notReadyAddresses].some(({ nodeName }) => nodeName !== undefined),
      ),
    ) ||
    pods.some(({ object }) => object.status !== undefined);
  if (saysNode || services.length === 0) return false;
  const lacksAddress = (service: Service): boolean =>
    lacksAnything(service) || (lacksLoadBalancer(service) && service.spec.clusterIP === '');
  return workloads.length + pods.length > 0 || services.some(({ object }) => lacksAddress(object));
}

function makeNodes(
  { pods, workloads }: Inputs,
  nodeNames: readonly string[],
  families: readonly Family[],
  networks: readonly Network[],
): readonly Sourced<Node>[] {
  const ofSpecs = [...pods.map(({ object }) => object.spec), ...workloads.map(({ object }) => object.template.spec)];
  const ofObjects = new Set(ofSpecs.map(({ nodeName }) => nodeName).toSorted());
  ofObjects.delete('');
  const spare: readonly string[] = assumedNodes
    .filter((name) => !ofObjects.has(name))
    .slice(0, Math.max(0, assumedNodes.length - ofObjects.size));
  const usual = [...ofObjects, ...spare];
  // A node named in a flag replaces an assumed Node; adding one would move everything that depends on the Nodes.
  const others = [...new Set(nodeNames)].filter((name) => name !== '' && !usual.includes(name));
  const free = spare.filter((name) => !nodeNames.includes(name));
  const renamed = new Map(free.slice(0, others.length).map((name, i) => [name, others[i] ?? name]));
  const seats = [...usual, ...others.slice(free.length)];
  return seats.map((seat, i) => ({
    object: makeNode(renamed.get(seat) ?? seat, seat, i, families, networks),
    source: { place: () => nowhere },
  }));
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

/** A Node's share of the Pod network of a family; undefined if the network is too small to be split that often. */
function partOf(networks: readonly Network[], family: Family, at: number): string | undefined {
  const [network, length] = [networks.find((each) => each.family === family), nodePrefix[family]];
  if (!network || network.prefixLength >= length) return undefined;
  const start = addressAfter(network.address, at * 2 ** ((family === 'ipv4' ? 32 : 128) - length));
  return contains(network, start) ? `${start.text}/${length}` : undefined;
}

export function describeAssumptions(
  { ranges, podNetworks, nodes, clusterCIDRs }: Assumptions,
  { assigned, assumedEndpoints = [] }: Pick<CompiledSnapshot, 'assigned' | 'assumedEndpoints'>,
  isDefault: boolean,
): readonly Finding[] {
  const pods = assumedEndpoints.flatMap((workload) => workload.pods);
  const clusterIPs = assigned.flatMap((service) => service.clusterIPs);
  const balancers = assigned.flatMap(({ loadBalancerIPs = [] }) => loadBalancerIPs);
  const podAddresses = pods.flatMap(({ addresses }) => addresses);
  const all: readonly AssumedValues[] = [
    drawn('cluster IP', clusterIPs, ranges.clusterIPs),
    drawn('node port', assigned.flatMap(assignedPorts).map(String), []),
    drawn('load balancer address', balancers, ranges.loadBalancerIPs ?? []),
    { ...drawn('ready Pod', podAddresses, podNetworks), count: pods.length },
    { what: 'clusterCIDR', count: clusterCIDRs.length, from: clusterCIDRs },
    { what: 'Node', count: nodes.length, from: [] },
  ];
  const values = all.filter(({ count }) => count > 0);
  if (values.length === 0) return [];
  return [diagnose('assumed', { values, nodes: nodes.map(({ object }) => object.metadata.name), isDefault })];
}

/** The number of assumed values, and the networks they come from. */
function drawn(what: AssumedValues['what'], texts: readonly string[], networks: readonly Network[]): AssumedValues {
  const addresses = texts.flatMap((text) => parseAddress(text) ?? []);
  const used = networks.filter((network) => addresses.some((address) => contains(network, address)));
  return { what, count: texts.length, from: [...new Set(used.map(({ text }) => text))] };
}
