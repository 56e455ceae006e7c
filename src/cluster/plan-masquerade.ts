import { type Family, type Network, parseNetwork } from '../kernel/address.ts';
import type { NodeContext } from './model.ts';
import type { ProxySettings } from './objects.ts';

export type LocalTraffic =
  | { readonly kind: 'from-network'; readonly network: Network }
  | { readonly kind: 'from-interface'; readonly name: string }
  | { readonly kind: 'from-interfaces'; readonly prefix: string };

/**
 * Returns the detector of detectLocalMode (getLocalDetectors in server_linux.go); undefined if the detector lacks a CIDR or node that it
 * needs.
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

/** The senders whose packets a node masquerades. A TrafficPlan adds two cases: external paths, and endpoints that connect to themselves. */
export interface MasqueradePlan {
  /** The bit of a packet's mark that requests masquerading, as a number. */
  readonly mark: number;
  readonly localTraffic: LocalTraffic | undefined;
  readonly toClusterIPs: Exclude<MasqueradedClients, { readonly kind: 'node' }> | { readonly kind: 'none-known' };
}

export type MasqueradedClients =
  | { readonly kind: 'all' }
  /** A packet from outside to a cluster IP may enter by any node, and the answer must return through the same node. */
  | { readonly kind: 'all-but-pods'; readonly pods: LocalTraffic }
  /** The node itself, for its packets to external addresses under policy Local. */
  | { readonly kind: 'node' };

export function planMasquerade(
  settings: Pick<ProxySettings, 'detectLocal' | 'clusterCIDRs' | 'masqueradeAll' | 'masqueradeBit'>,
  node: Pick<NodeContext, 'podCIDRs'>,
  family: Family,
): MasqueradePlan {
  const localTraffic = detectLocalTraffic(settings, node, family);
  return {
    mark: 2 ** settings.masqueradeBit,
    localTraffic,
    toClusterIPs: planMasqueradedClients(settings.masqueradeAll, localTraffic),
  };
}

function planMasqueradedClients(
  masqueradeAll: boolean,
  pods: LocalTraffic | undefined,
): MasqueradePlan['toClusterIPs'] {
  if (masqueradeAll) return { kind: 'all' };
  return pods ? { kind: 'all-but-pods', pods } : { kind: 'none-known' };
}
