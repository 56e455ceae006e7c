/** Chains that kube-proxy fills on every node. Some are in both tables. */
export const baseChains = {
  services: 'KUBE-SERVICES',
  externalServices: 'KUBE-EXTERNAL-SERVICES',
  nodePorts: 'KUBE-NODEPORTS',
  postrouting: 'KUBE-POSTROUTING',
  markMasquerade: 'KUBE-MARK-MASQ',
  forward: 'KUBE-FORWARD',
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  /** IPVS mode's chain for node ports. IPVS mode keeps node ports in sets instead of chains. */
  nodePort: 'KUBE-NODE-PORT',
  loadBalancer: 'KUBE-LOAD-BALANCER',
  sourceRangesFirewall: 'KUBE-SOURCE-RANGES-FIREWALL',
  accessFilter: 'KUBE-IPVS-FILTER',
  accessOutFilter: 'KUBE-IPVS-OUT-FILTER',
  /** Userspace mode's chains for packets to Service addresses: from Pods and other hosts, and from the node. */
  portalsContainer: 'KUBE-PORTALS-CONTAINER',
  portalsHost: 'KUBE-PORTALS-HOST',
  /**
   * Userspace mode's chains for node ports: for packets from Pods and other hosts, from the node, and for packets that a firewall must
   * admit.
   */
  nodePortContainer: 'KUBE-NODEPORT-CONTAINER',
  nodePortHost: 'KUBE-NODEPORT-HOST',
  nodePortNonLocal: 'KUBE-NODEPORT-NON-LOCAL',
  /** kubelet's chain. kube-proxy writes the same rule. */
  kubeletFirewall: 'KUBE-FIREWALL',
  /** kubelet's chain up to 1.26, which kube-proxies of that time use. */
  markDrop: 'KUBE-MARK-DROP',
} as const;

/** The words in messages for userspace mode's chains, which lead to kube-proxy itself. */
export const portalChains = 'KUBE-PORTALS-* and KUBE-NODEPORT-*';

/** Prefixes of the chains of Service ports and endpoints (servicePortPolicyClusterChain in iptables/proxier.go). */
const prefixes = {
  cluster: 'KUBE-SVC-',
  local: 'KUBE-SVL-',
  /** Handles all packets to external addresses and node ports. */
  external: 'KUBE-EXT-',
  /** Sends packets from the source ranges to the chain `external`. */
  firewall: 'KUBE-FW-',
  endpoint: 'KUBE-SEP-',
  /** Used instead of `external` under policy Local, in releases up to 1.23. */
  oldExternal: 'KUBE-XLB-',
} as const;

export type ServiceChainKind = keyof typeof prefixes;

export function serviceChainName(kind: ServiceChainKind, hash: string): string {
  return prefixes[kind] + hash;
}

const kinds: ReadonlyMap<string, ServiceChainKind> = new Map(
  (Object.keys(prefixes) as readonly ServiceChainKind[]).map((kind) => [prefixes[kind], kind]),
);

/** Reads the name of a Service port's or endpoint's chain; undefined for other names. The hash may be any text. */
export function parseServiceChain(
  name: string,
): { readonly kind: ServiceChainKind; readonly hash: string } | undefined {
  const [, prefix = '', hash = ''] = /^(KUBE-[A-Z]+-)(.+)$/.exec(name) ?? [];
  const kind = kinds.get(prefix);
  return kind && { kind, hash };
}
