import { contains, joinHostPort } from '../kernel/address.ts';
import type { Network } from '../kernel/address.ts';
import { equalStates } from '../kernel/delta.ts';
import type { Rule } from '../kernel/iptables.ts';
import { temporarySetName } from '../kernel/ipset-delta.ts';
import type { IpSet } from '../kernel/ipset.ts';
import { virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { VirtualServer } from '../kernel/ipvs.ts';
import { emptyState } from '../kernel/state.ts';
import type { KernelState } from '../kernel/state.ts';
import { formatEntry } from '../kernel/set-entry.ts';
import { isKubeProxySet } from '../kube-proxy/sets.ts';
import { recognizeVirtualServers } from '../kube-proxy/virtual-servers.ts';
import type { Belongings } from './belongings.ts';
import { shareLinks } from './share-links.ts';
import { shareNftTables } from './share-nftables.ts';
import { shareRules } from './share-rules.ts';
import type { Leftover, NamedShare } from './share-rules.ts';

/**
 * On what grounds things are kpc-apply's: owned are those that it made, by its record; adopted those that a kube-proxy
 * left, where --adopt says so. Both have names that kube-proxy gives. All others are foreign.
 */
export interface Claims {
  readonly owned: Belongings;
  /** Whether what a kube-proxy left is ours from now on. */
  readonly adopt: boolean;
  /** Virtual servers in here that are not wanted are foreign in any case (--ipvs-exclude-cidrs). */
  readonly excluded: readonly Network[];
  /** Wanted addresses that no interface of a node has: connections to the node itself would go to endpoints. */
  readonly clusterIPs?: ReadonlySet<string> | undefined;
}

/** Which part of a node's state may be changed, and what stands in the way. */
export interface Share {
  /** What is wanted, as far as it can be had beside what stays. */
  readonly wanted: KernelState;
  /** What counts: what is ours and is there, and what is wanted. */
  readonly ours: Belongings;
  /** What may be changed: the same, but for what another program had made just as it is wanted. */
  readonly touched: Belongings;
  /** Wanted things that are there as another program made them, and different. */
  readonly conflicts: readonly Conflict[];
  /** What will be owned once the wanted state is there: all of it but what another program had made just so. */
  readonly belongings: Belongings;
  /** Virtual servers on the node that are neither ours nor wanted: "TCP 10.96.0.1:80". */
  readonly foreign: readonly string[];
  /** What looks like kube-proxy's, is not wanted, and stays, since it is not in the record. */
  readonly leftovers: readonly Leftover[];
}

/** `adoptable`: whether --adopt would settle it. */
export interface Conflict {
  readonly kind: 'virtual-server' | 'set' | 'chain' | 'table' | 'link' | 'address';
  readonly name: string;
  readonly adoptable: boolean;
  /** Whether a running program has it to itself, so that the kernel lets no other change it. */
  readonly isHeld?: boolean | undefined;
}

/** "virtual server TCP 10.96.0.1:80". */
export function describeConflict({ kind, name, isHeld }: Omit<Conflict, 'adoptable'>): string {
  const text = kind === 'virtual-server' ? `virtual server ${name}` : `${kind} ${name}`;
  return isHeld ? `${text} (which a running program owns)` : text;
}

/** Divides what is on a node, in view of what is wanted there, into ours and theirs. */
export function takeShare(present: KernelState, wanted: KernelState, claims: Claims): Share {
  const servers = shareVirtualServers(present, wanted, claims);
  const rules = shareRules(present.iptables, wanted.iptables, claims);
  const links = shareLinks(present.links, wanted.links, claims);
  const sets = shareSets(present, wanted, claims, rules.staying);
  const nftables = shareNftTables(present.nftables, wanted.nftables, claims);
  const collect = (list: keyof NamedShare): Belongings => ({
    virtualServers: servers[list],
    sets: sets[list],
    chains: rules.chains[list],
    jumps: rules.jumps[list],
    links: links.links[list],
    addresses: links.addresses[list],
    besideKubelet: rules.besideKubelet,
    nftTables: nftables.tables[list],
  });
  return {
    wanted: { ...wanted, iptables: rules.wanted, links: links.wanted },
    ours: collect('ours'),
    touched: collect('touched'),
    belongings: collect('belongings'),
    conflicts: [
      ...servers.conflicts,
      ...sets.conflicts,
      ...rules.conflicts,
      ...nftables.conflicts,
      ...links.conflicts,
      ...findTaken(present, claims),
    ],
    foreign: servers.foreign,
    leftovers: [...rules.leftovers, ...nftables.leftovers, ...sets.leftovers, ...links.leftovers],
  };
}

/**
 * The cluster IPs that the node itself goes by, whatever the bundle says are its addresses. A dummy link is none of its
 * ways to others: kube-ipvs0 is one, and that of a DNS cache, which answers at a cluster IP on purpose.
 */
function findTaken(present: KernelState, { clusterIPs }: Claims): readonly Conflict[] {
  if (!clusterIPs) return [];
  return present.links
    .filter(({ kind }) => kind !== 'dummy')
    .flatMap(({ name, addresses }) =>
      addresses
        .filter(({ address }) => clusterIPs.has(address.text))
        .map(({ address }): Conflict => ({ kind: 'address', name: `${address.text} of ${name}`, adoptable: false })),
    );
}

function shareVirtualServers(
  present: KernelState,
  wanted: KernelState,
  claims: Claims,
): NamedShare & { readonly conflicts: readonly Conflict[]; readonly foreign: readonly string[] } {
  const ours = new Set(wanted.virtualServers.map(virtualServerKey));
  const conflicts: Conflict[] = [];
  const borrowed = new Set<string>();
  const foreign: string[] = [];
  const owned = new Set(claims.owned.virtualServers);
  const desired = new Map(wanted.virtualServers.map((server) => [virtualServerKey(server), server]));
  const isKubeProxys = recognizeVirtualServers(present, wanted.virtualServers);
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
  return { ...withoutBorrowed(ours, [...desired.keys()], borrowed), conflicts, foreign };
}

function shareSets(
  present: KernelState,
  wanted: KernelState,
  claims: Claims,
  staying: readonly Rule[],
): NamedShare & { readonly conflicts: readonly Conflict[]; readonly leftovers: readonly Leftover[] } {
  const desired = new Map(wanted.sets.map((set) => [set.name, set]));
  const owned = new Set(claims.owned.sets);
  const ours = new Set(desired.keys());
  const conflicts: Conflict[] = [];
  const borrowed = new Set<string>();
  const kept: string[] = [];
  const leftovers: Leftover[] = [];
  const isNeeded = listNeededSets(present, staying);
  for (const set of present.sets) {
    const isKubeProxys = isKubeProxySet(set.name);
    const twin = desired.get(set.name);
    const isOwned = owned.has(set.name) && isKubeProxys;
    if (isOwned || (claims.adopt && isKubeProxys) || set.name === temporarySetName) {
      if (twin || !isNeeded(set.name)) ours.add(set.name);
      // The kernel keeps a set that a rule or another set uses.
      else if (isOwned) kept.push(set.name);
    } else if (twin && isSameSet(set, twin)) borrowed.add(set.name);
    else if (twin) conflicts.push({ kind: 'set', name: set.name, adoptable: isKubeProxys });
    else if (isKubeProxys) leftovers.push({ kind: 'set', name: set.name, isInEffect: false });
  }
  const share = withoutBorrowed(ours, [...desired.keys()], borrowed);
  return { ...share, belongings: [...share.belongings, ...kept], conflicts, leftovers };
}

/** Which sets the rules that stay name, and the sets of sets. */
function listNeededSets(present: KernelState, staying: readonly Rule[]): (name: string) => boolean {
  const needed = new Set<string>();
  for (const { args } of staying) {
    for (const arg of args) {
      if (arg.kind === 'match-set') needed.add(arg.set);
      // Options that kpc does not read, and the target SET, name theirs as a word.
      else if (arg.kind === 'other') for (const word of arg.words) needed.add(word);
      else if (arg.kind === 'jump' && arg.target.kind === 'other')
        for (const word of arg.target.words) needed.add(word);
    }
  }
  for (const { type, entries } of present.sets) {
    if (type === 'list:set') for (const entry of entries) needed.add(formatEntry(entry));
  }
  return (name) => needed.has(name);
}

function withoutBorrowed(
  ours: ReadonlySet<string>,
  wanted: readonly string[],
  borrowed: ReadonlySet<string>,
): NamedShare {
  const isNot = (name: string) => !borrowed.has(name);
  return { ours: [...ours], touched: [...ours].filter(isNot), belongings: wanted.filter(isNot) };
}

/** "TCP 10.96.0.1:80". */
function describeServer(server: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${server.protocol} ${joinHostPort(server.address.text, server.port)}`;
}

function isSameServer(a: VirtualServer, b: VirtualServer): boolean {
  return equalStates({ ...emptyState, virtualServers: [a] }, { ...emptyState, virtualServers: [b] });
}

function isSameSet(a: IpSet, b: IpSet): boolean {
  return equalStates({ ...emptyState, sets: [a] }, { ...emptyState, sets: [b] });
}

function isExcluded(server: VirtualServer, networks: readonly Network[]): boolean {
  return networks.some((network) => contains(network, server.address));
}
