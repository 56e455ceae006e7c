import { hashName } from '../../base/hash-name.ts';
import type { ServicePort } from '../../cluster/model.ts';

/** Chains that every node has in iptables mode, under kube-proxy's names. Some are in both tables. */
export const baseChains = {
  services: 'KUBE-SERVICES',
  externalServices: 'KUBE-EXTERNAL-SERVICES',
  nodePorts: 'KUBE-NODEPORTS',
  postrouting: 'KUBE-POSTROUTING',
  markMasquerade: 'KUBE-MARK-MASQ',
  forward: 'KUBE-FORWARD',
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  /** kubelet's chain; kube-proxy writes the same rule into it. */
  kubeletFirewall: 'KUBE-FIREWALL',
} as const;

/** The chains that a Service port may have. */
export interface ServiceChainNames {
  /** Spreads packets over the endpoints of policy Cluster. */
  readonly cluster: string;
  /** Spreads packets over the endpoints of policy Local. */
  readonly local: string;
  /** Takes all packets to external addresses and node ports. */
  readonly external: string;
  /** Lets source ranges through to `external`. */
  readonly firewall: string;
}

/** The names of a Service port's chains: a prefix and a hash of its label and protocol (kube-proxy's portProtoHash). */
export function serviceChainNames(port: Pick<ServicePort, 'label' | 'protocol'>): ServiceChainNames {
  const hash = hashName(port.label + port.protocol.toLowerCase(), 16);
  return {
    cluster: `KUBE-SVC-${hash}`,
    local: `KUBE-SVL-${hash}`,
    external: `KUBE-EXT-${hash}`,
    firewall: `KUBE-FW-${hash}`,
  };
}

/** The name of the chain that sends a Service port's packets to one endpoint ("ip:port", servicePortEndpointChainName). */
export function endpointChainName(port: Pick<ServicePort, 'label' | 'protocol'>, endpointLabel: string): string {
  return `KUBE-SEP-${hashName(port.label + port.protocol.toLowerCase() + endpointLabel, 16)}`;
}
