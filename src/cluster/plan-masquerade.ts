import type { Family } from '../kernel/family.ts';
import { detectLocalTraffic, type LocalTraffic } from './local-traffic.ts';
import type { NodeContext } from './model.ts';
import type { ProxySettings } from './objects.ts';

/**
 * The clients whose packets a node masquerades with its own address, besides external paths and endpoints that reach themselves
 * (see TrafficPlan).
 */
export interface MasqueradePlan {
  /** The bit of a packet's mark, as a number, that means: masquerade it. */
  readonly mark: number;
  readonly localTraffic: LocalTraffic | undefined;
  /** Clients whose packets to cluster IPs are masqueraded; `none-known` if pods cannot be recognised. */
  readonly toClusterIPs: Exclude<MasqueradedClients, { readonly kind: 'node' }> | { readonly kind: 'none-known' };
}

/** Clients that endpoints see under the node's address. */
export type MasqueradedClients =
  | { readonly kind: 'all' }
  /** A packet to a cluster IP from outside the cluster may be routed through any node. The answer must come back through the same one. */
  | { readonly kind: 'all-but-pods'; readonly pods: LocalTraffic }
  /** The node itself, when it uses external addresses with policy Local. */
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
