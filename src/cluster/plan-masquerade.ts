import type { Family } from '../kernel/family.ts';
import { detectLocalTraffic, type LocalTraffic } from './local-traffic.ts';
import type { NodeContext } from './model.ts';
import type { ProxySettings } from './objects.ts';

/**
 * The clients on whose packets a node puts its own address as the source, besides external paths and endpoints that
 * reach themselves (see TrafficPlan).
 */
export interface MasqueradePlan {
  /** The bit of a packet's mark, as a number, that says to masquerade it. */
  readonly mark: number;
  readonly localTraffic: LocalTraffic | undefined;
  /** Whose packets to cluster IPs are masqueraded; `none-known` if pods cannot be recognised. */
  readonly toClusterIPs: Exclude<MasqueradedClients, { readonly kind: 'node' }> | { readonly kind: 'none-known' };
}

/** Clients that endpoints see with the node's address. */
export type MasqueradedClients =
  | { readonly kind: 'all' }
  /**
   * A packet to a cluster IP from outside the cluster could be routed through any node. The answer must come back
   * through the same one.
   */
  | { readonly kind: 'all-but-pods'; readonly pods: LocalTraffic }
  /** The node itself, on its way to external addresses of policy Local. */
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
    toClusterIPs: masqueradedClients(settings.masqueradeAll, localTraffic),
  };
}

function masqueradedClients(masqueradeAll: boolean, pods: LocalTraffic | undefined): MasqueradePlan['toClusterIPs'] {
  if (masqueradeAll) return { kind: 'all' };
  return pods ? { kind: 'all-but-pods', pods } : { kind: 'none-known' };
}
