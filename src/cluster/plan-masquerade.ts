import type { Family } from '../kernel/family.ts';
import { detectLocalTraffic, type LocalTraffic } from './local-traffic.ts';
import type { NodeContext } from './model.ts';
import type { ProxySettings } from './objects.ts';

/**
 * Whose packets leave a node with the node's address for their source, besides those of external paths and of
 * endpoints that reach themselves (see TrafficPlan).
 */
export interface MasqueradePlan {
  /** The bit of a packet's mark, as a number, that says to masquerade it. */
  readonly mark: number;
  /** How kube-proxy recognises traffic of the node's own Pods; undefined if it cannot. */
  readonly localTraffic: LocalTraffic | undefined;
  /** Whose packets to cluster IPs are masqueraded. */
  readonly toClusterIPs: MasqueradedClients;
}

type MasqueradedClients =
  | { readonly kind: 'all' }
  /** Packets to a cluster IP from outside the cluster could be routed through any node, so the answer must be, too. */
  | { readonly kind: 'all-but-pods'; readonly pods: LocalTraffic }
  /** Pods cannot be recognised. */
  | { readonly kind: 'none-known' };

/** Decides for one family of a node. */
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

function masqueradedClients(masqueradeAll: boolean, pods: LocalTraffic | undefined): MasqueradedClients {
  if (masqueradeAll) return { kind: 'all' };
  return pods ? { kind: 'all-but-pods', pods } : { kind: 'none-known' };
}
