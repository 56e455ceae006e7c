import type { Protocol } from '../kernel/family.ts';

/** The name of kube-proxy's tables, one a family (pkg/proxy/nftables/proxier.go). */
export const nftTableName = 'kube-proxy';

/** What kube-proxy writes beside its tables. */
export const nftTableComment = 'rules for kube-proxy';

/** Whether a table has the name of kube-proxy's. */
export function isKubeProxyTable(name: string): boolean {
  return name === nftTableName;
}

/** The chains that each of the tables has, whatever the Services; markForMasquerade without inline-masquerade alone. */
export const nftChains = {
  filterPreroutingPreDnat: 'filter-prerouting-pre-dnat',
  filterOutputPreDnat: 'filter-output-pre-dnat',
  filterInput: 'filter-input',
  filterForward: 'filter-forward',
  filterOutput: 'filter-output',
  natPrerouting: 'nat-prerouting',
  natOutput: 'nat-output',
  natPostrouting: 'nat-postrouting',
  services: 'services',
  serviceEndpointsCheck: 'service-endpoints-check',
  nodePortEndpointsCheck: 'nodeport-endpoints-check',
  reject: 'reject-chain',
  clusterIPsCheck: 'cluster-ips-check',
  firewallCheck: 'firewall-check',
  masquerading: 'masquerading',
  markForMasquerade: 'mark-for-masquerade',
} as const;

/**
 * The sets and maps that each of the tables has; nodePortIPs only where node ports do not listen on all addresses,
 * hairpinConnections only with the behaviour hairpin-set, localhostNodePortRejects only with localhost-node-ports.
 */
export const nftSets = {
  clusterIPs: 'cluster-ips',
  hairpinConnections: 'hairpin-connections',
  nodePortIPs: 'nodeport-ips',
  firewallIPs: 'firewall-ips',
  noEndpointNodePorts: 'no-endpoint-nodeports',
  noEndpointServices: 'no-endpoint-services',
  serviceIPs: 'service-ips',
  serviceNodePorts: 'service-nodeports',
  localhostNodePortRejects: 'localhost-nodeport-reject-ports',
} as const;

/** The chain that rejects packets to node ports of a protocol on localhost, and its counter (localhostNodePortRejectChainName). */
export function localhostRejection(protocol: Protocol): { readonly chain: string; readonly counter: string } {
  const name = protocol.toLowerCase();
  return { chain: `localhost-nodeport-reject-${name}`, counter: `localhost-nodeport-rejected-${name}` };
}

/** What the names of a Service port's own chains and sets begin with. */
export const nftPrefixes = {
  /** Spreads packets over the endpoints of policy Cluster. */
  cluster: 'service-',
  /** Spreads packets over the endpoints of policy Local. */
  local: 'local-',
  /** Takes all packets to external addresses and node ports. */
  external: 'external-',
  /** Drops packets that come from outside the source ranges. */
  firewall: 'firewall-',
  /** Sends packets to one endpoint, and remembers their client with session affinity; only then with direct-dnat. */
  endpoint: 'endpoint-',
  /** The clients that an endpoint chain remembers. */
  affinity: 'affinity-',
} as const;

/** The longest comment that nft takes, in bytes. Only with the behaviour short-comments kube-proxy looks to it. */
export const maxNftComment = 128;
