import type { Family } from './family.ts';
import { rulesPlaces, type RulesPlace } from './iptables/iptables-delta.ts';
import { isBuiltInChain, tableNames, type Chain, type Rule, type TableName, type Tables } from './iptables/iptables.ts';
import type { VirtualServer } from './ipvs/ipvs.ts';
import type { LinkAddress } from './link/link.ts';
import type { KernelState } from './state.ts';

/** The part of a state that a program may change. */
export interface Ownership {
  /** For chains that are not built in. */
  chain(name: string, table: TableName, place: RulesPlace): boolean;
  /** For the rules in the built-in chain `chain`. By default, a rule that jumps to an owned chain is owned. */
  jump?(rule: Rule, chain: string, table: TableName, place: RulesPlace): boolean;
  /** The nftables tables that may be owned, including everything in them. */
  table?(name: string, family: Family): boolean;
  set(name: string): boolean;
  virtualServer(server: VirtualServer): boolean;
  /** A link that is not owned is left out, with all its addresses. */
  link(name: string): boolean;
  address(address: LinkAddress, link: string): boolean;
  sysctl(name: string): boolean;
}

/**
 * The owned part of a state. Built-in chains keep the owned jumps and their places between other rules; proxy ports, timeouts and
 * modules stay whole, because they have no owner. If both sides are restricted before they are compared, other programs' objects
 * are neither compared nor touched.
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
  const restricted: { [T in TableName]?: ReadonlyMap<string, Chain> } = {};
  for (const table of tableNames) {
    const chains = tables[table];
    if (!chains) continue;
    const kept = new Map<string, Chain>();
    for (const chain of chains.values()) {
      if (isBuiltInChain(table, chain.name)) {
        const rules = chain.rules.filter((rule) => ownsJump(owns, rule, chain.name, table, place));
        const { whole = chain.rules } = chain;
        if (whole.length > 0) kept.set(chain.name, { ...chain, rules, whole });
      } else if (owns.chain(chain.name, table, place)) kept.set(chain.name, chain);
    }
    restricted[table] = kept;
  }
  return restricted;
}

export function ownsJump(owns: Ownership, rule: Rule, chain: string, table: TableName, place: RulesPlace): boolean {
  if (owns.jump) return owns.jump(rule, chain, table, place);
  const target = jumpChain(rule);
  return target !== undefined && owns.chain(target, table, place);
}

/** The chain that a rule jumps or goes to; undefined for any other target. */
export function jumpChain(rule: Rule): string | undefined {
  for (const arg of rule.args)
    if (arg.kind === 'jump') return arg.target.kind === 'chain' ? arg.target.chain : undefined;
  return undefined;
}
