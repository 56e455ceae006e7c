import { contains, joinHostPort, parseAddress, type Network } from '../kernel/address.ts';
import { equalStates } from '../kernel/delta.ts';
import { families } from '../kernel/family.ts';
import { tableNames, type TableName } from '../kernel/iptables.ts';
import type { IpSet } from '../kernel/ipset.ts';
import { virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { VirtualServer } from '../kernel/ipvs.ts';
import type { Ownership } from '../kernel/restrict.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';

/** The dummy link that a kube-proxy in IPVS mode binds the Services' addresses to. */
export const serviceLink = 'kube-ipvs0';

/** Names of what is ours. Chains with kube-proxy's names and kube-ipvs0 are so without being listed. */
export interface Belongings {
  /** Keys of virtual servers: virtualServerKey. */
  readonly virtualServers: readonly string[];
  readonly sets: readonly string[];
  /** Chains with a kubelet's name, which kube-proxy fills too where a kubelet does not. */
  readonly chains: readonly string[];
}

/** On what grounds things are ours. */
export interface Claims {
  readonly owned: Belongings;
  /** Whether what a kube-proxy left is ours from now on. */
  readonly adopt: boolean;
  /** Virtual servers in here that are not wanted are nobody's business (--ipvs-exclude-cidrs). */
  readonly excluded: readonly Network[];
}

/** Which part of a node's state may be changed, and what stands in the way. */
export interface Share {
  /** What counts: what is ours and is there, and what is wanted. */
  readonly ours: Belongings;
  /** What may be changed: the same, but for what somebody else had made just as it is wanted. */
  readonly touched: Belongings;
  /** Wanted things that are there as somebody else made them, and different. */
  readonly conflicts: readonly Conflict[];
  /** What will be ours once the wanted state is there: all of it but what somebody else had made just so. */
  readonly belongings: Belongings;
  /** Virtual servers on the node that are neither ours nor wanted: "TCP 10.96.0.1:80". */
  readonly foreign: readonly string[];
}

/** `adoptable`: whether --adopt would settle it. */
interface Conflict {
  readonly kind: 'virtual-server' | 'set';
  readonly name: string;
  readonly adoptable: boolean;
}

/** Divides what is on a node, in view of what is wanted there, into ours and theirs. */
export function takeShare(present: KernelState, wanted: KernelState, claims: Claims): Share {
  const servers = shareVirtualServers(present, wanted, claims);
  const sets = shareSets(present, wanted, claims);
  const chains = shareKubeletChains(present, wanted, claims.owned.chains);
  const ours = { virtualServers: [...servers.ours], sets: [...sets.ours], chains: [...chains] };
  return {
    ours,
    touched: {
      virtualServers: ours.virtualServers.filter((key) => !servers.borrowed.has(key)),
      sets: ours.sets.filter((name) => !sets.borrowed.has(name)),
      chains: ours.chains,
    },
    conflicts: [...servers.conflicts, ...sets.conflicts],
    belongings: {
      virtualServers: wanted.virtualServers.map(virtualServerKey).filter((key) => !servers.borrowed.has(key)),
      sets: wanted.sets.map((set) => set.name).filter((name) => !sets.borrowed.has(name)),
      chains: ours.chains,
    },
    foreign: servers.foreign,
  };
}

/** What these names, and the names that kube-proxy uses, cover of a state. */
export function ownershipOf(belongings: Belongings): Ownership {
  const virtualServers = new Set(belongings.virtualServers);
  const sets = new Set(belongings.sets);
  const chains = new Set(belongings.chains);
  return {
    chain: (name, table) => isKubeProxyChain(name) || chains.has(chainKey(table, name)),
    set: (name) => sets.has(name),
    virtualServer: (server) => virtualServers.has(virtualServerKey(server)),
    link: (name) => name === serviceLink,
    // A link that is up gets such an address of its own.
    address: (address) => address.scope !== 'link',
    sysctl: () => true,
  };
}

/** All that is in one or the other. */
export function joinBelongings(a: Belongings, b: Belongings): Belongings {
  return {
    virtualServers: join(a.virtualServers, b.virtualServers),
    sets: join(a.sets, b.sets),
    chains: join(a.chains, b.chains),
  };
}

function join(a: readonly string[], b: readonly string[]): readonly string[] {
  return [...new Set([...a, ...b])];
}

interface KindShare {
  readonly ours: ReadonlySet<string>;
  readonly conflicts: readonly Conflict[];
  readonly borrowed: ReadonlySet<string>;
}

function shareVirtualServers(
  present: KernelState,
  wanted: KernelState,
  claims: Claims,
): KindShare & { readonly foreign: readonly string[] } {
  const ours = new Set(wanted.virtualServers.map(virtualServerKey));
  const conflicts: Conflict[] = [];
  const borrowed = new Set<string>();
  const foreign: string[] = [];
  const owned = new Set(claims.owned.virtualServers);
  const desired = new Map(wanted.virtualServers.map((server) => [virtualServerKey(server), server]));
  const isKubeProxys = recognizeKubeProxy(present);
  for (const server of present.virtualServers) {
    const key = virtualServerKey(server);
    if (owned.has(key) && (desired.has(key) || !isExcluded(server, claims.excluded))) {
      ours.add(key);
      continue;
    }
    const adoptable = !isExcluded(server, claims.excluded) && isKubeProxys(server);
    if (claims.adopt && adoptable) ours.add(key);
    else {
      const twin = desired.get(key);
      const name = describeServer(server);
      if (!twin) foreign.push(name);
      else if (isSameServer(server, twin)) borrowed.add(key);
      else conflicts.push({ kind: 'virtual-server', name, adoptable });
    }
  }
  return { ours, conflicts, borrowed, foreign };
}

function shareSets(present: KernelState, wanted: KernelState, claims: Claims): KindShare {
  const desired = new Map(wanted.sets.map((set) => [set.name, set]));
  const owned = new Set(claims.owned.sets);
  const ours = new Set(desired.keys());
  const conflicts: Conflict[] = [];
  const borrowed = new Set<string>();
  for (const set of present.sets) {
    const adoptable = kubeProxySets.has(set.name);
    if (owned.has(set.name) || (claims.adopt && adoptable)) ours.add(set.name);
    else {
      const twin = desired.get(set.name);
      if (twin && isSameSet(set, twin)) borrowed.add(set.name);
      else if (twin) conflicts.push({ kind: 'set', name: set.name, adoptable });
    }
  }
  return { ours, conflicts, borrowed };
}

/** "TCP 10.96.0.1:80". */
export function describeServer(server: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${server.protocol} ${joinHostPort(server.address, server.port)}`;
}

function isSameServer(a: VirtualServer, b: VirtualServer): boolean {
  return equalStates({ ...emptyState, virtualServers: [a] }, { ...emptyState, virtualServers: [b] });
}

function isSameSet(a: IpSet, b: IpSet): boolean {
  return equalStates({ ...emptyState, sets: [a] }, { ...emptyState, sets: [b] });
}

/** A kubelet's chains in the tables that kube-proxy uses. */
const kubeletChains: ReadonlySet<string> = new Set([
  'KUBE-FIREWALL',
  'KUBE-KUBELET-CANARY',
  'KUBE-IPTABLES-HINT',
  'KUBE-MARK-DROP',
]);

function isKubeProxyChain(name: string): boolean {
  return name.startsWith('KUBE-') && !kubeletChains.has(name);
}

function chainKey(table: TableName, name: string): string {
  return `${table} ${name}`;
}

/** A kubelet's chain is ours where it was so, and where the wanted state has it and nobody else has made it yet. */
function shareKubeletChains(present: KernelState, wanted: KernelState, owned: readonly string[]): ReadonlySet<string> {
  const ours = new Set(owned);
  for (const family of families) {
    for (const table of tableNames) {
      for (const name of wanted.iptables[family]?.[table]?.keys() ?? []) {
        if (kubeletChains.has(name) && !present.iptables[family]?.[table]?.has(name)) ours.add(chainKey(table, name));
      }
    }
  }
  return ours;
}

function isExcluded(server: VirtualServer, networks: readonly Network[]): boolean {
  if (networks.length === 0) return false;
  const address = parseAddress(server.address);
  return address !== undefined && networks.some((network) => contains(network, address));
}

/**
 * kube-proxy's sets: those of ipsetInfo in ipvs/proxier.go, and for IPv6 the same with "6-", cut where ipset ends a
 * name (NewIPSet in ipvs/ipset.go).
 */
const kubeProxySets: ReadonlySet<string> = new Set(
  [
    'LOOP-BACK',
    'CLUSTER-IP',
    'EXTERNAL-IP',
    'EXTERNAL-IP-LOCAL',
    'LOAD-BALANCER',
    'LOAD-BALANCER-FW',
    'LOAD-BALANCER-LOCAL',
    'LOAD-BALANCER-SOURCE-IP',
    'LOAD-BALANCER-SOURCE-CIDR',
    'NODE-PORT-TCP',
    'NODE-PORT-LOCAL-TCP',
    'NODE-PORT-UDP',
    'NODE-PORT-LOCAL-UDP',
    'NODE-PORT-SCTP-HASH',
    'NODE-PORT-LOCAL-SCTP-HASH',
    'HEALTH-CHECK-NODE-PORT',
    'IPVS-IPS',
  ].flatMap((name) => [`KUBE-${name}`, `KUBE-6-${name}`.slice(0, 31)]),
);

/**
 * kube-proxy keeps no record, and takes every virtual server of the node for its own. Other people's are told from its
 * own by what else it leaves: it binds a Service's address to kube-ipvs0, and lists node ports in its sets.
 */
function recognizeKubeProxy(present: KernelState): (server: VirtualServer) => boolean {
  const bound = new Set<string>();
  for (const link of present.links) {
    if (link.name === serviceLink) for (const { address } of link.addresses) bound.add(address);
  }
  const nodePorts = new Set<string>();
  for (const set of present.sets) {
    const protocol = /^KUBE-(?:6-)?NODE-PORT-(TCP|UDP|SCTP)/.exec(set.name)?.[1];
    if (protocol === undefined) continue;
    // "30080", or "192.168.0.1,sctp:30080".
    for (const { value } of set.entries) nodePorts.add(`${protocol} ${value.slice(value.lastIndexOf(':') + 1)}`);
  }
  return ({ address, protocol, port }) => bound.has(address) || nodePorts.has(`${protocol} ${port}`);
}
