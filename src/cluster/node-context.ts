import {
  compareAddresses,
  contains,
  loopbackAddresses,
  parseAddress,
  parseNetwork,
  type Address,
} from '../kernel/address.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { NodeContext } from './model.ts';
import { nodePortNetworks } from './node-port-addresses.ts';
import type { Node, ProxySettings } from './objects.ts';

/** The label that says which zone a node is in. */
export const zoneLabel = 'topology.kubernetes.io/zone';

/**
 * What kube-proxy would know of the node. Without host addresses (what `ip -j addr` says, kube-ipvs0 left out), the
 * Node object's own addresses replace them, with 127.0.0.1 if node ports are served on it.
 */
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
    zone: node?.metadata.labels[zoneLabel] ?? '',
    podCIDRs: (node?.podCIDRs ?? []).flatMap((cidr) => parseNetwork(cidr) ?? []),
    nodeIPs,
    hostAddresses: sortedUnique(hostAddresses ?? [...own, ...askedLoopback(settings, nodeIPs)]),
  };
}

/** 127.0.0.1 where --nodeport-addresses picks it: each node has it, and no Node object names it. */
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

/** InternalIPs first, then ExternalIPs: the order in which kube-proxy looks for its node's address (GetNodeHostIPs). */
export function nodeAddresses(node: Node | undefined): readonly Address[] {
  const ofType = (type: string) =>
    (node?.addresses ?? []).filter((address) => address.type === type).flatMap((a) => parseAddress(a.address) ?? []);
  return [...ofType('InternalIP'), ...ofType('ExternalIP')];
}

function sortedUnique(addresses: readonly Address[]): readonly Address[] {
  return [...new Map(addresses.map((address) => [address.text, address])).values()].toSorted(compareAddresses);
}
