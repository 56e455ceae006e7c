import { diffIpSets, splitSetsDelta, type IpSet } from './ipset/ipset.ts';
import type { IpvsTimeouts, VirtualServer } from './ipvs/ipvs.ts';
import { diffProxyPorts, type ProxyPort } from './balancer/balancer.ts';
import { diffLinks, splitLinksDelta, type Link, type LinkAddress } from './link/link.ts';
import type { NftTable } from './nftables/table.ts';
import { diffFamilyTables, rulesPlaces, type FamilyTables, type RulesPlace } from './iptables/iptables-delta.ts';
import { diffTimeouts, diffVirtualServers } from './ipvs/ipvs-delta.ts';
import { diffModules, diffSysctls } from './sysctls-and-modules.ts';
import { diffNftTables, splitNftDelta } from './nftables/nft-delta.ts';
import { partition } from './compare.ts';
import type { Family } from './address.ts';
import { isBuiltInChain, type Chain, type Rule, type TableName, type Tables, mapTables } from './iptables/iptables.ts';

/** The objects that kube-proxy programs. A family without iptables state was not compiled, or not dumped. */
export interface KernelState {
  readonly iptables: FamilyTables;
  /** The tables of both families, IPv4 before IPv6. Family and name identify a table. */
  readonly nftables: readonly NftTable[];
  /** In creation order. */
  readonly sets: readonly IpSet[];
  /** Sorted by compareVirtualServers. */
  readonly virtualServers: readonly VirtualServer[];
  /** The ports that the balancer serves in userspace mode, sorted by compareProxyPorts. */
  readonly proxyPorts: readonly ProxyPort[];
  readonly links: readonly Link[];
  /** Sysctl name with dots → value, as the kernel prints it. */
  readonly sysctls: ReadonlyMap<string, string>;
  /** Undefined if kpc sets none. */
  readonly ipvsTimeouts: IpvsTimeouts | undefined;
  readonly modules: readonly string[];
}

export const emptyState: KernelState = {
  iptables: {},
  nftables: [],
  sets: [],
  virtualServers: [],
  proxyPorts: [],
  links: [],
  sysctls: new Map(),
  ipvsTimeouts: undefined,
  modules: [],
};

export type ObjectKind = keyof KernelState;

/**
 * Finds the changes between two lists of each kind. kpc-apply adds kinds in this order, each kind after the kinds it uses, and removes them
 * in reverse.
 */
const diffByKind = {
  modules: diffModules,
  sysctls: diffSysctls,
  ipvsTimeouts: diffTimeouts,
  // nftables mode's table comes before other modes' rules and virtual servers, because it takes over from them or hands over to them.
  nftables: diffNftTables,
  proxyPorts: diffProxyPorts,
  sets: diffIpSets,
  iptables: diffFamilyTables,
  virtualServers: diffVirtualServers,
  links: diffLinks,
} as const satisfies { readonly [K in ObjectKind]: (from: KernelState[K], to: KernelState[K]) => unknown };

export const objectKinds = Object.keys(diffByKind) as readonly ObjectKind[];

export type KernelDelta = { readonly [K in ObjectKind]: ReturnType<(typeof diffByKind)[K]> };

const rows: { readonly [K in ObjectKind]: (from: KernelState[K], to: KernelState[K]) => KernelDelta[K] } = diffByKind;

/** Finds the changes between two states. Ignores origins and the order of chains, sets and entries; the order of rules counts. */
export function diffStates(from: KernelState, to: KernelState): KernelDelta {
  const diff = <K extends ObjectKind>(kind: K): KernelDelta[K] => rows[kind](from[kind], to[kind]);
  return Object.fromEntries(objectKinds.map((kind) => [kind, diff(kind)])) as KernelDelta;
}

export function isEmptyDelta(delta: KernelDelta): boolean {
  return objectKinds.every((kind) => Object.keys(delta[kind] ?? {}).length === 0);
}

export function equalStates(a: KernelState, b: KernelState): boolean {
  return isEmptyDelta(diffStates(a, b));
}

/**
 * Splits the changes of kinds whose objects are added and removed one by one. iptables rules need no split, because iptables-restore
 * changes a whole table at once.
 */
export function splitDelta({ nftables, sets, virtualServers, links }: KernelDelta) {
  return {
    nftables: splitNftDelta(nftables),
    sets: splitSetsDelta(sets),
    virtualServers: partition(virtualServers, ({ to }) => to === undefined),
    links: splitLinksDelta(links),
  };
}

export interface Ownership {
  /** Decides about chains that are not built in. */
  chain(name: string, table: TableName, place: RulesPlace): boolean;
  /** Decides about rules in a built-in chain. By default, a rule is owned if it jumps to an owned chain. */
  jump?(rule: Rule, chain: string, table: TableName, place: RulesPlace): boolean;
  /** Decides about nftables tables; everything in an owned table is owned. */
  table?(name: string, family: Family): boolean;
  set(name: string): boolean;
  virtualServer(server: VirtualServer): boolean;
  /** Decides about links. A link that is not owned is left out with all its addresses. */
  link(name: string): boolean;
  address(address: LinkAddress, link: string): boolean;
  sysctl(name: string): boolean;
}

/**
 * Returns the owned part of a state. Built-in chains keep the owned jumps and their places. Proxy ports, timeouts and modules have no owner
 * and are kept. Restrict both states before comparing them, so that foreign objects are neither compared nor changed.
 */
export function restrictState(state: KernelState, owns: Ownership): KernelState {
  const iptables = rulesPlaces.flatMap((place) => {
    const tables = state.iptables[place];
    return tables ? [[place, restrictTables(tables, place, owns)] as const] : [];
  });
  return {
    iptables: Object.fromEntries(iptables),
    nftables: state.nftables.filter(({ name, family }) => owns.table?.(name, family) ?? false),
    sets: state.sets.filter((set) => owns.set(set.name)),
    virtualServers: state.virtualServers.filter((server) => owns.virtualServer(server)),
    proxyPorts: state.proxyPorts,
    links: state.links
      .filter((link) => owns.link(link.name))
      .map(({ name, kind, addresses }) => {
        return { name, kind, addresses: addresses.filter((address) => owns.address(address, name)) };
      }),
    sysctls: new Map([...state.sysctls].filter(([name]) => owns.sysctl(name))),
    ipvsTimeouts: state.ipvsTimeouts,
    modules: state.modules,
  };
}

function restrictTables(tables: Tables, place: RulesPlace, owns: Ownership): Tables {
  return mapTables(tables, (chains, table) => {
    const kept = new Map<string, Chain>();
    for (const chain of chains.values()) {
      if (isBuiltInChain(table, chain.name)) {
        const rules = chain.rules.filter((rule) => ownsJump(owns, rule, chain.name, table, place));
        const { whole = chain.rules } = chain;
        if (whole.length > 0) kept.set(chain.name, { ...chain, rules, whole });
      } else if (owns.chain(chain.name, table, place)) kept.set(chain.name, chain);
    }
    return kept;
  });
}

export function ownsJump(owns: Ownership, rule: Rule, chain: string, table: TableName, place: RulesPlace): boolean {
  if (owns.jump) return owns.jump(rule, chain, table, place);
  const target = jumpChain(rule);
  return target !== undefined && owns.chain(target, table, place);
}

export function jumpChain(rule: Rule): string | undefined {
  for (const arg of rule.args)
    if (arg.kind === 'jump') return arg.target.kind === 'chain' ? arg.target.chain : undefined;
  return undefined;
}
