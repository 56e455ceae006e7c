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

export const zoneLabel = 'topology.kubernetes.io/zone';

/**
 * What kube-proxy would know about the node. Without host addresses (the output of `ip -j addr` except kube-ipvs0), uses the Node
 * object's addresses, plus 127.0.0.1 if node ports are served on it.
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
    zone: zoneOf(node),
    podCIDRs: (node?.podCIDRs ?? []).flatMap((cidr) => parseNetwork(cidr) ?? []),
    nodeIPs,
    hostAddresses: sortedUnique(hostAddresses ?? [...own, ...askedLoopback(settings, nodeIPs)]),
  };
}

/** '' if it has no zone. */
export function zoneOf(node: Node | undefined): string {
  return node?.metadata.labels[zoneLabel] ?? '';
}

/** 127.0.0.1 if --nodeport-addresses includes it: every node has it, but no Node object lists it. */
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

/** InternalIPs first, then ExternalIPs, which is the order in which kube-proxy looks for its node's address (GetNodeHostIPs). */
export function nodeAddresses(node: Node | undefined): readonly Address[] {
  const ofType = (type: string) =>
    (node?.addresses ?? []).filter((address) => address.type === type).flatMap((a) => parseAddress(a.address) ?? []);
  return [...ofType('InternalIP'), ...ofType('ExternalIP')];
}

function sortedUnique(addresses: readonly Address[]): readonly Address[] {
  return [...new Map(addresses.map((address) => [address.text, address])).values()].toSorted(compareAddresses);
}
