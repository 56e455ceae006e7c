import { parseNetwork } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { RuleArg } from '../kernel/iptables.ts';
import type { NodeContext } from './model.ts';
import type { ProxySettings } from './objects.ts';

/** How a rule tells traffic of the node's pods from other traffic: one argument of a rule. */
export interface LocalTraffic {
  readonly ifLocal: RuleArg;
  readonly ifNotLocal: RuleArg;
}

/**
 * What detectLocalMode makes of the settings and the node for one family; undefined where nothing tells (no CIDR of
 * that family, no node). As getLocalDetectors in kube-proxy's server_linux.go.
 */
export function detectLocalTraffic(
  settings: Pick<ProxySettings, 'detectLocal' | 'clusterCIDRs'>,
  node: Pick<NodeContext, 'podCIDRs'>,
  family: Family,
): LocalTraffic | undefined {
  const { detectLocal } = settings;
  switch (detectLocal.mode) {
    case 'ClusterCIDR':
      return bySource(
        settings.clusterCIDRs.map((cidr) => parseNetwork(cidr.trim())),
        family,
      );
    case 'NodeCIDR':
      return bySource(node.podCIDRs, family);
    case 'BridgeInterface':
      return byInterface(detectLocal.bridgeInterface);
    case 'InterfaceNamePrefix':
      return byInterface(`${detectLocal.interfaceNamePrefix}+`);
  }
}

function bySource(networks: readonly (NodeContext['podCIDRs'][number] | undefined)[], family: Family) {
  const network = networks.find((candidate) => candidate?.family === family);
  if (!network) return undefined;
  return {
    ifLocal: { kind: 'source', cidr: network.text },
    ifNotLocal: { kind: 'source', cidr: network.text, negated: true },
  } satisfies LocalTraffic;
}

function byInterface(name: string): LocalTraffic {
  return { ifLocal: { kind: 'in-interface', name }, ifNotLocal: { kind: 'in-interface', name, negated: true } };
}
