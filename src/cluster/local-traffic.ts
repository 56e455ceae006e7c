import { parseNetwork, type Network } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { NodeContext } from './model.ts';
import type { ProxySettings } from './objects.ts';

/** How kube-proxy recognises traffic from the node's own Pods. */
export type LocalTraffic =
  | { readonly kind: 'from-network'; readonly network: Network }
  /** By the bridge with this name as input interface. */
  | { readonly kind: 'from-interface'; readonly name: string }
  /** By a prefix of the input interface's name. */
  | { readonly kind: 'from-interfaces'; readonly prefix: string };

/**
 * The detector that detectLocalMode selects for one family (getLocalDetectors in kube-proxy's server_linux.go); undefined if it
 * lacks what it needs, such as a CIDR of that family, or the node.
 */
export function detectLocalTraffic(
  settings: Pick<ProxySettings, 'detectLocal' | 'clusterCIDRs'>,
  node: Pick<NodeContext, 'podCIDRs'>,
  family: Family,
): LocalTraffic | undefined {
  const { detectLocal } = settings;
  switch (detectLocal.mode) {
    case 'ClusterCIDR':
      return fromNetwork(
        settings.clusterCIDRs.map((cidr) => parseNetwork(cidr.trim())),
        family,
      );
    case 'NodeCIDR':
      return fromNetwork(node.podCIDRs, family);
    case 'BridgeInterface':
      return { kind: 'from-interface', name: detectLocal.bridgeInterface };
    case 'InterfaceNamePrefix':
      return { kind: 'from-interfaces', prefix: detectLocal.interfaceNamePrefix };
  }
}

function fromNetwork(networks: readonly (Network | undefined)[], family: Family): LocalTraffic | undefined {
  const network = networks.find((candidate) => candidate?.family === family);
  return network && { kind: 'from-network', network };
}
