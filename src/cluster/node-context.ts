import { uniqueBy } from './grouping.ts';
import {
  type Address,
  compareAddresses,
  contains,
  families,
  type Family,
  hostNetwork,
  isLinkLocal,
  isLoopback,
  joinHostPort,
  loopbackAddresses,
  loopbackNetworks,
  type Network,
  parseAddress,
  parseNetwork,
} from '../kernel/address.ts';
import { modeFacts, isNodePortWord } from '../kube-proxy/modes.ts';
import type { NodeContext, Cluster } from './model.ts';
import type { Node, ProxySettings, Sourced } from './objects.ts';
import { diagnose, type Finding } from '../base/findings/finding.ts';
import type { Behaviours } from '../kube-proxy/releases.ts';

export const zoneLabel = 'topology.kubernetes.io/zone';

/** Returns what kube-proxy knows about the node. Without `hostAddresses` (from `ip -j addr`), uses the Node object's addresses. */
export function describeNode(
  name: string,
  node: Node | undefined,
  hostAddresses: readonly Address[] | undefined,
  settings: Pick<ProxySettings, 'mode' | 'bindAddress' | 'nodePortAddresses'>,
): NodeContext {
  const own = nodeAddresses(node);
  const bind = parseAddress(settings.bindAddress);
  const nodeIPs = Object.fromEntries(
    (['ipv4', 'ipv6'] as const).map((family) => [
      family,
      bind?.family === family ? bind : (own.find((address) => address.family === family) ?? loopbackAddresses[family]),
    ]),
  ) as NodeContext['nodeIPs'];
  return {
    name,
    zone: zoneOf(node),
    podCIDRs: (node?.podCIDRs ?? []).flatMap((cidr) => parseNetwork(cidr) ?? []),
    nodeIPs,
    hostAddresses: uniqueAddresses(hostAddresses ?? [...own, ...askedLoopback(settings, nodeIPs)]),
  };
}

export function zoneOf(node: Node | undefined): string {
  return node?.metadata.labels[zoneLabel] ?? '';
}

/** Returns 127.0.0.1 if --nodeport-addresses includes it. Every node has this address, but no Node object lists it. */
function askedLoopback(
  settings: Pick<ProxySettings, 'mode' | 'nodePortAddresses'>,
  nodeIPs: NodeContext['nodeIPs'],
): readonly Address[] {
  if (!modeFacts[settings.mode].loopbackNodePorts.includes('ipv4')) return [];
  const { matchesAll, networks } = nodePortNetworks(settings, { nodeIPs }, 'ipv4');
  return !matchesAll && networks.some((network) => contains(network, loopbackAddresses.ipv4))
    ? [loopbackAddresses.ipv4]
    : [];
}

/** Lists InternalIPs before ExternalIPs. kube-proxy looks for its node's address in this order (GetNodeHostIPs). */
export function nodeAddresses(node: Node | undefined): readonly Address[] {
  const ofType = (type: string) =>
    (node?.addresses ?? []).filter((address) => address.type === type).flatMap((a) => parseAddress(a.address) ?? []);
  return [...ofType('InternalIP'), ...ofType('ExternalIP')];
}

function uniqueAddresses(addresses: readonly Address[]): readonly Address[] {
  return uniqueBy(addresses, ({ text }) => text).sort(compareAddresses);
}

/** The networks of one family in which node ports listen. A single network of length zero means all addresses. */
export interface NodePortNetworks {
  readonly networks: readonly Network[];
  readonly matchesAll: boolean;
  /** Whether --nodeport-addresses includes all or part of 127.0.0.0/8. Only iptables mode serves node ports there. */
  readonly picksIPv4Loopback: boolean;
  /** All given networks, even if one of them covers all addresses. */
  readonly listed: readonly Network[];
}

const everything: { readonly [F in Family]: string } = { ipv4: '0.0.0.0/0', ipv6: '::/0' };

/**
 * Reads --nodeport-addresses like kube-proxy (expandNodePortAddressKeywords, NewNodePortAddresses). Keywords name networks, a family
 * without a network listens everywhere, and a network of length zero replaces all others of its family.
 */
export function nodePortNetworks(
  settings: Pick<ProxySettings, 'nodePortAddresses'>,
  node: Pick<NodeContext, 'nodeIPs'>,
  family: Family,
): NodePortNetworks {
  const ofFamily = listeningNetworks(settings.nodePortAddresses, node).filter((network) => network.family === family);
  const listed = ofFamily.length > 0 ? ofFamily : [parseNetwork(everything[family])].flatMap((n) => n ?? []);
  const zero = listed.findIndex((network) => network.prefixLength === 0);
  const networks = zero < 0 ? listed : listed.slice(zero, zero + 1);
  const seen = zero < 0 ? listed : listed.slice(0, zero + 1);
  return {
    networks,
    matchesAll: zero >= 0,
    picksIPv4Loopback: seen.some((network) => network.family === 'ipv4' && touchesLoopback(network)),
    listed,
  };
}

/** Returns the node's addresses in the networks, including loopback and link-local ones (kube-proxy's GetNodeIPs). */
export function addressesIn(networks: NodePortNetworks, node: Pick<NodeContext, 'hostAddresses'>): readonly Address[] {
  return node.hostAddresses.filter((address) => networks.networks.some((network) => contains(network, address)));
}

/** Reports whether a given network is a loopback network (ContainsExplicitLoopback); if so, kube-proxy itself listens there. */
export function namesLocalhost({ listed }: Pick<NodePortNetworks, 'listed'>, behaviours: Behaviours): boolean {
  return listed.some((network) =>
    behaviours.has('localhost-within-network')
      ? network.prefixLength > 0 && contains(network, loopbackAddresses[network.family])
      : isLoopback(network.address),
  );
}

export interface NodePortPlan extends Pick<NodePortNetworks, 'picksIPv4Loopback' | 'listed'> {
  /** Sorted, with loopback; undefined if the rules accept every address that is local when a packet arrives. */
  readonly addresses: readonly Address[] | undefined;
}

export function planNodePorts(
  settings: Pick<ProxySettings, 'nodePortAddresses'>,
  node: Pick<NodeContext, 'nodeIPs' | 'hostAddresses'>,
  family: Family,
): NodePortPlan {
  const networks = nodePortNetworks(settings, node, family);
  const { matchesAll, picksIPv4Loopback, listed } = networks;
  return { addresses: matchesAll ? undefined : addressesIn(networks, node), picksIPv4Loopback, listed };
}

/** Returns the node's permanent addresses of one family (isValidForSet), without loopback and IPv6 link-local addresses. */
export function ownAddresses(node: Pick<NodeContext, 'hostAddresses'>, family: Family): readonly Address[] {
  return node.hostAddresses.filter(
    (address) => address.family === family && !isLoopback(address) && !(family === 'ipv6' && isLinkLocal(address)),
  );
}

/**
 * Finds Service addresses that --nodeport-addresses covers. In IPVS mode, kube-proxy binds them to kube-ipvs0 and then treats every address
 * in a given CIDR as the node's own (GetNodeIPs), so from its second sync on, kube-proxy also serves node ports there.
 */
export function findCoveredAddresses(
  settings: Pick<ProxySettings, 'nodePortAddresses'>,
  { servicePorts }: Cluster,
): readonly Finding[] {
  return families.flatMap((family) => {
    const ofFamily = servicePorts.filter((port) => port.family === family);
    const listener = ofFamily.find(({ nodePort }) => nodePort > 0);
    const { networks, matchesAll } = nodePortNetworks(settings, { nodeIPs: loopbackAddresses }, family);
    if (!listener || matchesAll) return [];
    const bound = ofFamily.flatMap(({ clusterIP, externalIPs, loadBalancerIPs }) => [
      clusterIP,
      ...externalIPs,
      ...loadBalancerIPs,
    ]);
    const network = networks.find((each) => bound.some((address) => contains(each, address)));
    const covered = network && bound.find((address) => contains(network, address));
    if (!covered) return [];
    const socket = joinHostPort(covered.text, listener.nodePort);
    return [diagnose('covered-addresses', { network: network.text, socket })];
  });
}

function listeningNetworks(listed: readonly string[], node: Pick<NodeContext, 'nodeIPs'>): readonly Network[] {
  return listed.flatMap((text) => {
    if (!isNodePortWord(text)) return parseNetwork(text) ?? [];
    switch (text) {
      case 'primary':
        return Object.values(node.nodeIPs)
          .filter((address) => !isLoopback(address))
          .map(hostNetwork);
      case 'localhost':
        return Object.values(loopbackNetworks);
      case 'all':
        return Object.values(everything).flatMap((network) => parseNetwork(network) ?? []);
    }
  });
}

function touchesLoopback(network: Network): boolean {
  const loopbackStart: Address = { family: 'ipv4', text: '127.0.0.0', bits: 0x7f000000 };
  return isLoopback(network.address) || contains(network, loopbackStart);
}

export function podNetworksOf(nodes: readonly Sourced<Node>[]): readonly Network[] {
  return nodes.flatMap(({ object }) => object.podCIDRs.flatMap((text) => parseNetwork(text) ?? []));
}
