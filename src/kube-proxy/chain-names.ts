/** Chains that kube-proxy fills on every node, by purpose. Some are in both tables. */
export const baseChains = {
  services: 'KUBE-SERVICES',
  externalServices: 'KUBE-EXTERNAL-SERVICES',
  nodePorts: 'KUBE-NODEPORTS',
  postrouting: 'KUBE-POSTROUTING',
  markMasquerade: 'KUBE-MARK-MASQ',
  forward: 'KUBE-FORWARD',
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  /** IPVS mode has no chain for each node port, but sets. */
  nodePort: 'KUBE-NODE-PORT',
  loadBalancer: 'KUBE-LOAD-BALANCER',
  sourceRangesFirewall: 'KUBE-SOURCE-RANGES-FIREWALL',
  accessFilter: 'KUBE-IPVS-FILTER',
  accessOutFilter: 'KUBE-IPVS-OUT-FILTER',
  /** Userspace mode: packets to Service addresses, from Pods and other hosts, and from the node. */
  portalsContainer: 'KUBE-PORTALS-CONTAINER',
  portalsHost: 'KUBE-PORTALS-HOST',
  /** The same for node ports, and the packets that a firewall must admit for them. */
  nodePortContainer: 'KUBE-NODEPORT-CONTAINER',
  nodePortHost: 'KUBE-NODEPORT-HOST',
  nodePortNonLocal: 'KUBE-NODEPORT-NON-LOCAL',
  /** kubelet's chain; kube-proxy writes the same rule. */
  kubeletFirewall: 'KUBE-FIREWALL',
  /** kubelet's chain up to 1.26, used by kube-proxies of that time. */
  markDrop: 'KUBE-MARK-DROP',
} as const;

/** The chains of userspace mode that lead to kube-proxy itself, in words. */
export const portalChains = 'KUBE-PORTALS-* and KUBE-NODEPORT-*';

/** Prefixes of Service ports' and endpoints' chains (servicePortPolicyClusterChain in iptables/proxier.go). */
const prefixes = {
  cluster: 'KUBE-SVC-',
  local: 'KUBE-SVL-',
  /** Takes all packets to external addresses and node ports. */
  external: 'KUBE-EXT-',
  /** Lets source ranges through to `external`. */
  firewall: 'KUBE-FW-',
  endpoint: 'KUBE-SEP-',
  /** The chain that releases up to 1.23 use instead of `external` under policy Local. */
  oldExternal: 'KUBE-XLB-',
} as const;

export type ServiceChainKind = keyof typeof prefixes;

export function serviceChainName(kind: ServiceChainKind, hash: string): string {
  return prefixes[kind] + hash;
}

const kinds: ReadonlyMap<string, ServiceChainKind> = new Map(
  (Object.keys(prefixes) as readonly ServiceChainKind[]).map((kind) => [prefixes[kind], kind]),
);

/** Reads the name of a Service port's or endpoint's chain; undefined for others. The hash may be any text. */
export function parseServiceChain(
  name: string,
): { readonly kind: ServiceChainKind; readonly hash: string } | undefined {
  const [, prefix = '', hash = ''] = /^(KUBE-[A-Z]+-)(.+)$/.exec(name) ?? [];
  const kind = kinds.get(prefix);
  return kind && { kind, hash };
}
