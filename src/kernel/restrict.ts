import { families, type Family } from './family.ts';
import { isBuiltInChain, tableNames, type Chain, type Rule, type TableName, type Tables } from './iptables/iptables.ts';
import type { VirtualServer } from './ipvs/ipvs.ts';
import type { LinkAddress } from './link/link.ts';
import type { KernelState } from './state.ts';

/** What of a state a program may change. */
export interface Ownership {
  /** Of chains that are not the kernel's own. */
  chain(name: string, table: TableName, family: Family): boolean;
  /** Of the rules in the kernel's own chains: `chain` is the one that the rule is in. Else those that jump to an owned chain. */
  jump?(rule: Rule, chain: string, table: TableName, family: Family): boolean;
  /** The nftables tables that may be owned, with all that is in them. */
  table?(name: string, family: Family): boolean;
  set(name: string): boolean;
  virtualServer(server: VirtualServer): boolean;
  /** A link that is not owned is left out with all its addresses. */
  link(name: string): boolean;
  address(address: LinkAddress, link: string): boolean;
  sysctl(name: string): boolean;
}

/**
 * The part of a state that is owned. Of the kernel's own chains that is the owned jumps; the timeouts and modules are of no
 * owner in particular. Restrict both sides before diffing them, and what belongs to other programs is neither compared nor
 * touched.
 */
export function restrictState(state: KernelState, owns: Ownership): KernelState {
  const iptables = families.flatMap((family) => {
    const tables = state.iptables[family];
    return tables ? [[family, restrictTables(tables, family, owns)] as const] : [];
  });
  return {
    iptables: Object.fromEntries(iptables),
    nftables: state.nftables.filter(({ name, family }) => owns.table?.(name, family) ?? false),
    sets: state.sets.filter((set) => owns.set(set.name)),
    virtualServers: state.virtualServers.filter((server) => owns.virtualServer(server)),
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

function restrictTables(tables: Tables, family: Family, owns: Ownership): Tables {
  const restricted: { [T in TableName]?: ReadonlyMap<string, Chain> } = {};
  for (const table of tableNames) {
    const chains = tables[table];
    if (!chains) continue;
    const kept = new Map<string, Chain>();
    for (const chain of chains.values()) {
      if (isBuiltInChain(table, chain.name)) {
        const rules = chain.rules.filter((rule) => ownsJump(owns, rule, chain.name, table, family));
        if (rules.length > 0) kept.set(chain.name, { ...chain, rules });
      } else if (owns.chain(chain.name, table, family)) kept.set(chain.name, chain);
    }
    restricted[table] = kept;
  }
  return restricted;
}

/** Whether a rule in one of the kernel's own chains is owned. */
export function ownsJump(owns: Ownership, rule: Rule, chain: string, table: TableName, family: Family): boolean {
  if (owns.jump) return owns.jump(rule, chain, table, family);
  const target = jumpChain(rule);
  return target !== undefined && owns.chain(target, table, family);
}

/** The chain that a rule jumps or goes to; undefined if its target is no chain. */
export function jumpChain(rule: Rule): string | undefined {
  for (const arg of rule.args)
    if (arg.kind === 'jump') return arg.target.kind === 'chain' ? arg.target.chain : undefined;
  return undefined;
}
