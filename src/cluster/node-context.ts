import type { Address } from '../kernel/address.ts';
import { compareAddresses, parseAddress, parseNetwork } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { NodeContext } from './model.ts';
import type { Node, ProxySettings } from './objects.ts';

/** The label that says which zone a node is in. */
export const zoneLabel = 'topology.kubernetes.io/zone';

const loopback: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: '127.0.0.1', number: 0x7f000001 },
  ipv6: { family: 'ipv6', text: '::1', groups: [0, 0, 0, 0, 0, 0, 0, 1] },
};

/**
 * What kube-proxy would know of the node. Without host addresses (what `ip -j addr` says, kube-ipvs0 left out), the
 * Node object's own addresses stand in for them.
 */
export function describeNode(
  name: string,
  node: Node | undefined,
  hostAddresses: readonly Address[] | undefined,
  settings: Pick<ProxySettings, 'bindAddress'>,
): NodeContext {
  const own = nodeAddresses(node);
  const bind = parseAddress(settings.bindAddress);
  const nodeIPs = Object.fromEntries(
    (['ipv4', 'ipv6'] as const).map((family) => [
      family,
      bind?.family === family ? bind : (own.find((address) => address.family === family) ?? loopback[family]),
    ]),
  ) as NodeContext['nodeIPs'];
  return {
    name,
    zone: node?.metadata.labels[zoneLabel] ?? '',
    podCIDRs: (node?.podCIDRs ?? []).flatMap((cidr) => parseNetwork(cidr) ?? []),
    nodeIPs,
    hostAddresses: sortedUnique(hostAddresses ?? own),
  };
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
