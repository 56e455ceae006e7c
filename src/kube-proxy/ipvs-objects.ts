import type { KernelState } from '../kernel/state.ts';
import { families, type Family, isLoopback, type Protocol, protocols } from '../kernel/address.ts';
import type { IpSet, SetType } from '../kernel/ipset/ipset.ts';
import type { Rule, RuleArg, TableName } from '../kernel/iptables/iptables.ts';
import { baseChains } from './chain-names.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { formatEntry } from '../kernel/ipset/set-entry.ts';

export const serviceLink = 'kube-ipvs0';

export function boundAddresses(state: Pick<KernelState, 'links'>): readonly string[] {
  return state.links
    .filter((link) => link.name === serviceLink)
    .flatMap((link) => link.addresses.map(({ address }) => address.text));
}

/** kube-proxy's sets for IPv4, in its own order (ipsetInfo in ipvs/proxier.go). */
const sets = {
  loopBack: { name: 'KUBE-LOOP-BACK', type: 'hash:ip,port,ip' },
  clusterIP: { name: 'KUBE-CLUSTER-IP', type: 'hash:ip,port' },
  externalIP: { name: 'KUBE-EXTERNAL-IP', type: 'hash:ip,port' },
  externalIPLocal: { name: 'KUBE-EXTERNAL-IP-LOCAL', type: 'hash:ip,port' },
  loadBalancer: { name: 'KUBE-LOAD-BALANCER', type: 'hash:ip,port' },
  loadBalancerFirewall: { name: 'KUBE-LOAD-BALANCER-FW', type: 'hash:ip,port' },
  loadBalancerLocal: { name: 'KUBE-LOAD-BALANCER-LOCAL', type: 'hash:ip,port' },
  sourceIP: { name: 'KUBE-LOAD-BALANCER-SOURCE-IP', type: 'hash:ip,port,ip' },
  sourceCIDR: { name: 'KUBE-LOAD-BALANCER-SOURCE-CIDR', type: 'hash:ip,port,net' },
  nodePortTCP: { name: 'KUBE-NODE-PORT-TCP', type: 'bitmap:port' },
  nodePortLocalTCP: { name: 'KUBE-NODE-PORT-LOCAL-TCP', type: 'bitmap:port' },
  nodePortUDP: { name: 'KUBE-NODE-PORT-UDP', type: 'bitmap:port' },
  nodePortLocalUDP: { name: 'KUBE-NODE-PORT-LOCAL-UDP', type: 'bitmap:port' },
  // The kernel's bitmap:port does not support SCTP, so the sets for SCTP are hashes.
  nodePortSCTP: { name: 'KUBE-NODE-PORT-SCTP-HASH', type: 'hash:ip,port' },
  nodePortLocalSCTP: { name: 'KUBE-NODE-PORT-LOCAL-SCTP-HASH', type: 'hash:ip,port' },
  healthCheckNodePort: { name: 'KUBE-HEALTH-CHECK-NODE-PORT', type: 'bitmap:port' },
  ipvsAddresses: { name: 'KUBE-IPVS-IPS', type: 'hash:ip' },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly type: SetType }>>;

export type SetId = keyof typeof sets;

export const setIds = Object.keys(sets) as readonly SetId[];

/** The maximum number of entries in kube-proxy's hash sets, which is the kernel's default. */
export const usualSetSize = 65_536;

/** The longest name in ipset. kube-proxy cuts longer names, and kpc must too. */
const longestName = 31;

/** Returns a set's name in a family. For IPv6, the prefix is "KUBE-6-" (NewIPSet in ipvs/ipset.go). */
export function setName(set: SetId, family: Family): string {
  const { name } = sets[set];
  return family === 'ipv4' ? name : name.replace('KUBE-', 'KUBE-6-').slice(0, longestName);
}

interface NamedSet {
  readonly set: SetId;
  readonly family: Family;
}

const byName: ReadonlyMap<string, NamedSet> = new Map(
  families.flatMap((family) => setIds.map((set) => [setName(set, family), { set, family }] as const)),
);

export function parseSetName(name: string): NamedSet | undefined {
  return byName.get(name);
}

export function setType(set: SetId): SetType {
  return sets[set].type;
}

/** Returns one `dst` for each part of an entry that the destination must match: port, address or both. */
export function setDirections(id: SetId): readonly 'dst'[] {
  const type = setType(id);
  return type === 'bitmap:port' || type === 'hash:ip' ? ['dst'] : ['dst', 'dst'];
}

export function setMatch(
  id: SetId,
  family: Family,
  directions: readonly ('src' | 'dst')[] = setDirections(id),
): RuleArg {
  return { kind: 'match-set', set: setName(id, family), directions };
}

/** Returns a set's family. Only kube-proxy's name shows the family of a port bitmap. */
export function setFamily({ name, family }: Pick<IpSet, 'name' | 'family'>): Family {
  return family === 'inet6' || parseSetName(name)?.family === 'ipv6' ? 'ipv6' : 'ipv4';
}

/** The sets of node ports, by protocol. `local` has only the node ports of Services with external policy Local. */
export const nodePortSets = {
  TCP: { all: 'nodePortTCP', local: 'nodePortLocalTCP' },
  UDP: { all: 'nodePortUDP', local: 'nodePortLocalUDP' },
  SCTP: { all: 'nodePortSCTP', local: 'nodePortLocalSCTP' },
} as const satisfies Readonly<Record<Protocol, { readonly all: SetId; readonly local: SetId }>>;

export function nodePortProtocol(set: SetId): Protocol | undefined {
  return protocols.find((protocol) => set === nodePortSets[protocol].all || set === nodePortSets[protocol].local);
}

/** Returns the sets that contain a health check node port. A kernel shows nothing else about this port, not even its Service. */
export function findHealthCheckSets({ sets: all }: Pick<KernelState, 'sets'>, port: number): readonly IpSet[] {
  return all.filter(
    ({ name, entries }) =>
      parseSetName(name)?.set === 'healthCheckNodePort' && entries.some((entry) => entry.port === port),
  );
}

/**
 * The chain that closes addresses on kube-ipvs0 to all traffic except to Services. Otherwise programs that listen on all addresses would
 * answer there.
 */
export const accessFilter = {
  table: 'filter',
  from: 'INPUT',
  chain: baseChains.accessFilter,
  comment: 'kubernetes ipvs access filter',
} as const satisfies { readonly table: TableName } & Readonly<Record<string, string>>;

/** The chain, called from OUTPUT, that closes load balancers to a node that their source ranges exclude. */
export const accessOutFilterChain = baseChains.accessOutFilter;

export const openSets = [
  'loadBalancer',
  'clusterIP',
  'externalIP',
  'externalIPLocal',
] as const satisfies readonly SetId[];

/** Returns rules that refuse new connections to addresses in ipvsAddresses, except those in the open sets. */
export function accessFilterRules(family: Family, open: readonly SetId[]): readonly Rule[] {
  return [
    ...open.map((id): Rule => ({ args: [setMatch(id, family), { kind: 'jump', target: { kind: 'return' } }] })),
    {
      args: [
        { kind: 'conntrack-state', states: ['NEW'] },
        setMatch('ipvsAddresses', family),
        { kind: 'jump', target: { kind: 'reject' } },
      ],
    },
  ];
}

/** Other objects that kube-proxy makes for its virtual servers. Addresses are texts. */
interface ServerMarks {
  readonly bound: ReadonlySet<string>;
  /** The node's own addresses, where node ports listen. Empty if the state has no links. */
  readonly own: ReadonlySet<string>;
  readonly listed: ReadonlySet<string>;
  /**
   * Node ports in sets, as "TCP 30080" and "ipv4 TCP 30080". An entry of a bitmap has only the port; an entry of SCTP's set also has an
   * address.
   */
  readonly nodePorts: ReadonlySet<string>;
  /** Endpoints on the node. */
  readonly local: readonly string[];
}

const addressSets: ReadonlySet<SetId> = new Set([
  'clusterIP',
  'externalIP',
  'externalIPLocal',
  'loadBalancer',
  'loadBalancerFirewall',
  'loadBalancerLocal',
]);

export function readServerMarks(state: KernelState): ServerMarks {
  const ownSets = state.sets.flatMap((set) => {
    const named = parseSetName(set.name);
    return named ? [{ ...set, id: named.set }] : [];
  });
  const lists = ownSets.filter(({ id, type }) => type === 'hash:ip,port' && addressSets.has(id));
  const nodePorts = ownSets.flatMap((set) => {
    const protocol = nodePortProtocol(set.id);
    if (protocol === undefined) return [];
    return set.entries.flatMap(({ port }) => [`${protocol} ${port}`, `${setFamily(set)} ${protocol} ${port}`]);
  });
  const others = state.links.filter(({ name }) => name !== serviceLink).flatMap((link) => link.addresses);
  return {
    bound: new Set(boundAddresses(state)),
    own: new Set(others.flatMap(({ address }) => (isLoopback(address) ? [] : [address.text]))),
    listed: new Set(lists.flatMap(({ entries }) => entries.map(formatEntry))),
    nodePorts: new Set(nodePorts),
    local: ownSets
      .filter(({ id }) => id === 'loopBack')
      .flatMap(({ entries }) => entries.map((entry) => formatEntry({ ...entry, source: undefined }))),
  };
}

const usualNodePorts = { first: 30000, last: 32767 };

export function isUsualNodePort(port: number): boolean {
  return port >= usualNodePorts.first && port <= usualNodePorts.last;
}

/**
 * Finds the virtual servers of node ports. They are at the node's own addresses, and at Service addresses that --nodeport-addresses covers,
 * because kube-proxy treats all addresses on kube-ipvs0 as the node's. Decides by kube-proxy's sets; without sets, by the addresses;
 * without both, by the usual range of node ports.
 */
export function findNodePortServers(
  state: KernelState,
): (server: Pick<VirtualServer, 'address' | 'protocol' | 'port'>) => boolean {
  const { bound, own, listed, nodePorts } = readServerMarks(state);
  const hasSets = state.sets.some(({ name }) => parseSetName(name));
  const onOwn = state.virtualServers.filter(({ address }) => own.has(address.text) && !bound.has(address.text));
  const portsOnOwn = new Set(onOwn.map(({ protocol, port }) => `${protocol} ${port}`));
  return (server) => {
    if (listed.has(formatServerSocket(server))) return false;
    const port = `${server.protocol} ${server.port}`;
    if (bound.has(server.address.text)) return listed.size > 0 ? nodePorts.has(port) : portsOnOwn.has(port);
    if (nodePorts.has(port)) return true;
    if (own.size > 0) return own.has(server.address.text);
    return !hasSets && isUsualNodePort(server.port);
  };
}

export function formatServerSocket({
  address,
  protocol,
  port,
}: Pick<VirtualServer, 'address' | 'protocol' | 'port'>): string {
  return formatEntry({ address, protocol, port });
}
