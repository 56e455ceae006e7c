import { joinHostPort, type Protocol } from '../kernel/address.ts';
import {
  chainsOf,
  chainsOfElement,
  setOf,
  type Expression,
  type NftTable,
  type NftChain,
  expressionsIn,
} from '../kernel/nftables/table.ts';

/** The name of the table in each family (pkg/proxy/nftables/proxier.go). */
export const nftTableName = 'kube-proxy';

export const nftTableComment = 'rules for kube-proxy';

export function isKubeProxyTable(name: string): boolean {
  return name === nftTableName;
}

/** Chains in every table. markForMasquerade exists only without inline-masquerade. */
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
 * Sets and maps in every table, with exceptions: nodePortIPs exists only if node ports listen at certain addresses, hairpinConnections only
 * with hairpin-set, and localhostNodePortRejects only with localhost-node-ports.
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

/** Returns the chain and counter that reject a protocol's node ports on localhost (localhostNodePortRejectChainName). */
export function localhostRejection(protocol: Protocol) {
  const name = protocol.toLowerCase();
  return { chain: `localhost-nodeport-reject-${name}`, counter: `localhost-nodeport-rejected-${name}` };
}

export const nftPrefixes = {
  cluster: 'service-',
  local: 'local-',
  /** Handles all packets to external addresses and node ports. */
  external: 'external-',
  /** Drops packets from outside the source ranges. */
  firewall: 'firewall-',
  /**
   * Sends packets to one endpoint. With session affinity, the chain also stores the client. With direct-dnat, it exists only with session
   * affinity.
   */
  endpoint: 'endpoint-',
  affinity: 'affinity-',
} as const;

/** nft's longest comment, in bytes. kube-proxy stays within this limit only with short-comments. */
export const maxNftComment = 128;

export interface NftName {
  readonly kind: keyof typeof nftPrefixes;
  readonly label: string;
  readonly protocol: Protocol;
  /** "ip:port" if this is an endpoint's chain or set, unless the name was too long to hold it. */
  readonly endpoint: string | undefined;
}

const kinds: ReadonlyMap<string, NftName['kind']> = new Map(
  (Object.keys(nftPrefixes) as readonly NftName['kind'][]).map((kind) => [nftPrefixes[kind], kind]),
);

const namePattern =
  /^([a-z]+-)[A-Z2-7]{8}-([a-z0-9][-a-z0-9]*)\/([a-z0-9][-a-z0-9.]*)\/(tcp|udp|sctp)\/([-a-z0-9]*)(?:__(.*))?$/;

/** Reads kube-proxy's name in nftables mode (servicePortChainNameBase); undefined for other names. */
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

/** Reads "10.244.1.9/8080" or "fd00.244.1..9/8080". Names have dots for colons. */
function parseEndpoint(text: string): string | undefined {
  const [, address, port] = /^([\da-f.]+)\/(\d+)$/.exec(text) ?? [];
  if (address === undefined) return undefined;
  const isIPv4 = /^\d+\.\d+\.\d+\.\d+$/.test(address);
  return joinHostPort(isIPv4 ? address : address.replaceAll('.', ':'), Number(port));
}

const fixedNames: ReadonlySet<string> = new Set([...Object.values(nftChains), ...Object.values(nftSets)]);

export function isFixedNftName(name: string): boolean {
  return fixedNames.has(name);
}

export function isNftServiceName(name: string): boolean {
  return parseNftName(name) !== undefined;
}

/** The priority before DNAT, where packets still have the destination that the client chose. */
const preDnat = -110;

const { firewallCheck, serviceEndpointsCheck, nodePortEndpointsCheck, clusterIPsCheck } = nftChains;

const hooks = [
  [nftChains.filterPreroutingPreDnat, 'filter', 'prerouting', preDnat, [firewallCheck]],
  [nftChains.filterOutputPreDnat, 'filter', 'output', preDnat, [firewallCheck]],
  [nftChains.filterInput, 'filter', 'input', 0, [nodePortEndpointsCheck, serviceEndpointsCheck]],
  [nftChains.filterForward, 'filter', 'forward', 0, [serviceEndpointsCheck, clusterIPsCheck]],
  [nftChains.filterOutput, 'filter', 'output', 0, [serviceEndpointsCheck, clusterIPsCheck]],
  [nftChains.natPrerouting, 'nat', 'prerouting', -100, [nftChains.services]],
  [nftChains.natOutput, 'nat', 'output', -100, [nftChains.services]],
  [nftChains.natPostrouting, 'nat', 'postrouting', 100, [nftChains.masquerading]],
] as const;

const ifNew: Expression = {
  kind: 'match',
  left: [{ name: 'ct state' }],
  right: { elements: [{ key: [{ kind: 'word', text: 'new' }] }] },
};

export function jump(chain: string): Expression {
  return { kind: 'jump', chain };
}

/** The base chains with their jumps (nftablesBaseChains, nftablesJumpChains). Those of type filter match only new connections. */
export const hookedChains: readonly NftChain[] = hooks.map(([name, type, hook, priority, targets]) => ({
  name,
  base: { type, hook, priority },
  rules: targets.map((target) => ({ expressions: type === 'filter' ? [ifNew, jump(target)] : [jump(target)] })),
}));

const fixedChains: readonly Pick<NftChain, 'name' | 'base'>[] = [...hookedChains, { name: nftChains.services }];

/** Finds a chain that a listing of kube-proxy's table lacks, although rules or maps name it or kube-proxy always makes it. */
export function findLackedChain(table: NftTable): string | undefined {
  const elements = [...table.sets.values()].flatMap((set) => set.elements);
  const named = [...elements.map(chainsOfElement), ...expressionsIn(table).map(chainsOf)].flat();
  const chains = [...table.chains.values()];
  // Before 1.33, kube-proxy gave the base chain at the same hook and priority another name.
  const isThere = ({ name, base }: Pick<NftChain, 'name' | 'base'>): boolean =>
    table.chains.has(name) ||
    chains.some((each) => base && each.base?.hook === base.hook && each.base.priority === base.priority);
  return [...named.map((name) => ({ name })), ...fixedChains].find((each) => !isThere(each))?.name;
}

/** Reports whether a listing shows kube-proxy's whole table: the fixed chains, and all chains and sets that rules and maps name. */
export function isWholeNftTable(table: NftTable): boolean {
  const { sets } = table;
  return (
    sets.has(nftSets.serviceIPs) &&
    ![...sets.values()].some(({ isPart }) => isPart) &&
    findLackedChain(table) === undefined &&
    expressionsIn(table)
      .map(setOf)
      .every((set) => set === undefined || sets.has(set))
  );
}

/** Versions of nft that write sets that crash older versions of nft: the version `exactly`, and all versions since `from`. */
const writers = { exactly: '1.0.6.1', from: [1, 1, 2] } as const;

/** The first release whose image has an nft that can read the sets of all later versions. */
export const readsAllNft = '1.37';

export function writesNewSets(version: readonly number[]): boolean {
  if (version.join('.') === writers.exactly) return true;
  const differing = writers.from.findIndex((part, i) => (version[i] ?? 0) !== part);
  return differing < 0 || (version[differing] ?? 0) > (writers.from[differing] ?? 0);
}

export const newSetsWords = `nft ${writers.exactly}, or ${writers.from.join('.')} and newer, on the host writes sets that may crash the nft in the image of a kube-proxy before ${readsAllNft}; then no Service works (kubernetes issues 136786 and 140898)`;
