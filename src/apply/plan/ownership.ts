import { contains, joinHostPort, type Network } from '../../kernel/address.ts';
import { equalStates } from '../../kernel/delta.ts';
import type { Rule } from '../../kernel/iptables/iptables.ts';
import { type IpSet, temporarySetName } from '../../kernel/ipset/ipset.ts';
import type { ObjectKind } from '../../kernel/kinds.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
import { formatEntry } from '../../kernel/ipset/set-entry.ts';
import { isKubeProxySet, mayKubeProxyMake } from '../../kube-proxy/sets.ts';
import { recognizeVirtualServers } from '../../kube-proxy/virtual-servers.ts';
import { noBelongings, type Belongings } from '../state/belongings.ts';
import { shareLinks, type LinkShare } from './own-links.ts';
import { shareNftTables } from './own-nftables.ts';
import { shareRules, type RuleShare } from './own-rules.ts';
import type { Leftover, NamedShare, Claims, Conflict } from './conflicts.ts';

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

/** How the objects of one kind divide. */
interface KindShare {
  /** Names of what is ours, by the list of belongings that has them. */
  readonly names: { readonly [List in keyof Belongings]?: NamedShare };
  readonly conflicts?: readonly Conflict[];
  readonly foreign?: readonly string[];
  readonly leftovers?: readonly Leftover[];
}

/** A node, and what is wanted there. */
interface Division {
  readonly present: KernelState;
  readonly wanted: KernelState;
  readonly claims: Claims;
  /** Of these two, not all that is wanted can be had beside what stays. The kernel keeps a set that a rule uses. */
  readonly rules: RuleShare;
  readonly links: LinkShare;
}

/** How each kind divides, in the order in which people are to read of what is in the way. */
const shareKinds: { readonly [K in ObjectKind]: (division: Division) => KindShare } = {
  virtualServers: ({ present, wanted, claims }) => {
    const { conflicts, foreign, ...names } = shareVirtualServers(present, wanted, claims);
    return { names: { virtualServers: names }, conflicts, foreign };
  },
  iptables: ({ rules: { chains, jumps, besideKubelet, conflicts, leftovers } }) => ({
    names: { chains, jumps, besideKubelet: { ours: besideKubelet, touched: besideKubelet, belongings: besideKubelet } },
    conflicts,
    leftovers,
  }),
  nftables: ({ present, wanted, claims }) => {
    const { tables, conflicts, leftovers } = shareNftTables(present.nftables, wanted.nftables, claims);
    return { names: { nftTables: tables }, conflicts, leftovers };
  },
  sets: ({ present, wanted, claims, rules }) => {
    const { conflicts, leftovers, ...names } = shareSets(present, wanted, claims, rules.staying);
    return { names: { sets: names }, conflicts, leftovers };
  },
  links: ({ present, claims, links: { links, addresses, conflicts, leftovers } }) => ({
    names: { links, addresses },
    conflicts: [...conflicts, ...findTaken(present, claims)],
    leftovers,
  }),
  // No program's own: the last one to set them is right.
  sysctls: () => ({ names: {} }),
  ipvsTimeouts: () => ({ names: {} }),
  modules: () => ({ names: {} }),
};

const sharingOrder = Object.keys(shareKinds) as readonly ObjectKind[];

/** Divides what is on a node, in view of what is wanted there, into ours and theirs. */
export function takeShare(present: KernelState, wanted: KernelState, claims: Claims): Share {
  const rules = shareRules(present.iptables, wanted.iptables, claims);
  const links = shareLinks(present.links, wanted.links, claims);
  const division = { present, wanted, claims, rules, links };
  const shares = sharingOrder.map((kind) => shareKinds[kind](division));
  const collect = (which: keyof NamedShare): Belongings => {
    const lists = shares.flatMap(({ names }) =>
      Object.entries(names).map(([list, share]) => [list, share[which]] as const),
    );
    return { ...noBelongings, ...Object.fromEntries(lists) };
  };
  return {
    wanted: { ...wanted, iptables: rules.wanted, links: links.wanted },
    ours: collect('ours'),
    touched: collect('touched'),
    belongings: collect('belongings'),
    conflicts: shares.flatMap(({ conflicts = [] }) => conflicts),
    foreign: shares.flatMap(({ foreign = [] }) => foreign),
    leftovers: shares.flatMap(({ leftovers = [] }) => leftovers),
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
    const isKubeProxys = mayKubeProxyMake(set);
    const twin = desired.get(set.name);
    const isOwned = owned.has(set.name) && isKubeProxySet(set.name);
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
