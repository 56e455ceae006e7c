import type { Protocol } from '../kernel/family.ts';
import { joinHostPort } from '../kernel/address.ts';

/** The name of kube-proxy's tables, one a family (pkg/proxy/nftables/proxier.go). */
export const nftTableName = 'kube-proxy';

/** The comment of kube-proxy's tables. */
export const nftTableComment = 'rules for kube-proxy';

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

/** By kind, how the name of a Service port's own chain or set begins. */
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

/** The longest comment that nft accepts, in bytes. kube-proxy keeps to it only with the behaviour short-comments. */
export const maxNftComment = 128;

/** The parts of the name of a Service port's own chain or set. */
export interface NftName {
  readonly kind: keyof typeof nftPrefixes;
  /** "namespace/name:port". */
  readonly label: string;
  readonly protocol: Protocol;
  /** "ip:port" of an endpoint's chain or set; undefined for others, and where the name was too long to hold it. */
  readonly endpoint: string | undefined;
}

const kinds: ReadonlyMap<string, NftName['kind']> = new Map(
  (Object.keys(nftPrefixes) as readonly NftName['kind'][]).map((kind) => [nftPrefixes[kind], kind]),
);

const namePattern =
  /^([a-z]+-)[A-Z2-7]{8}-([a-z0-9][-a-z0-9]*)\/([a-z0-9][-a-z0-9.]*)\/(tcp|udp|sctp)\/([-a-z0-9]*)(?:__(.*))?$/;

/** Reads a name that kube-proxy gave in nftables mode (servicePortChainNameBase); undefined for any other. */
export function parseNftName(name: string): NftName | undefined {
  const [, prefix = '', namespace, service, protocol = '', port, endpoint] = namePattern.exec(name) ?? [];
  const kind = kinds.get(prefix);
  if (kind === undefined || (endpoint !== undefined) !== (kind === 'endpoint' || kind === 'affinity')) return undefined;
  return {
    kind,
    label: port === '' ? `${namespace}/${service}` : `${namespace}/${service}:${port}`,
    protocol: protocol.toUpperCase() as Protocol,
    endpoint: endpoint === undefined ? undefined : parseEndpoint(endpoint),
  };
}

/** "10.244.1.9/8080", or "fd00.244.1..9/8080": a name may have no colon. */
function parseEndpoint(text: string): string | undefined {
  const [, address, port] = /^([\da-f.]+)\/(\d+)$/.exec(text) ?? [];
  if (address === undefined) return undefined;
  const isIPv4 = /^\d+\.\d+\.\d+\.\d+$/.test(address);
  return joinHostPort(isIPv4 ? address : address.replaceAll('.', ':'), Number(port));
}

const fixedNames: ReadonlySet<string> = new Set([...Object.values(nftChains), ...Object.values(nftSets)]);

/** Whether a chain or set has the name of one that each of kube-proxy's tables has. */
export function isFixedNftName(name: string): boolean {
  return fixedNames.has(name);
}

/** Whether a chain or set has the name of one that belongs to a Service port in nftables mode. */
export function isNftServiceName(name: string): boolean {
  return parseNftName(name) !== undefined;
}
