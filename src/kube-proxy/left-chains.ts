import { type Family, families } from '../kernel/family.ts';
import { type Chain, type TableName, isBuiltInChain } from '../kernel/iptables/iptables.ts';
import type { KernelState } from '../kernel/state.ts';
import { isServiceChainName } from './chains.ts';
import { type ProxyMode, modeFacts } from './modes.ts';
import { baseChains } from './chain-names.ts';
import { jumpChain } from '../kernel/restrict.ts';

/** A chain that iptables mode left on a node that has another mode now. */
export interface LeftChain {
  readonly family: Family;
  readonly table: TableName;
  readonly chain: Chain;
  /** The kernel's own chains that lead to it; empty where nothing jumps to it. */
  readonly reachedFrom: readonly string[];
}

/** Chains of filter that iptables mode fills and no other. */
const refusingChains: ReadonlySet<string> = new Set([baseChains.services, baseChains.externalServices]);

/**
 * What iptables mode left on a node in another mode: the chains of Service ports and endpoints, and those of filter that refuse
 * packets. Without the rules of the kernel's own chains it is unknown what leads to a chain: then none counts as left.
 */
export function findLeftChains({ iptables }: KernelState, mode: ProxyMode | undefined): readonly LeftChain[] {
  if (mode === undefined || modeFacts[mode].hasServiceChains) return [];
  return families.flatMap((family) => {
    const { nat, filter } = iptables[family] ?? {};
    return [
      ...listLeft(family, 'nat', nat, (chain) => isServiceChainName(chain.name)),
      ...listLeft(family, 'filter', filter, ({ name, rules }) => refusingChains.has(name) && rules.length > 0),
    ];
  });
}

function listLeft(
  family: Family,
  table: TableName,
  chains: ReadonlyMap<string, Chain> | undefined,
  isLeft: (chain: Chain) => boolean,
): readonly LeftChain[] {
  if (!chains) return [];
  const own = [...chains.values()].filter(({ name, rules }) => isBuiltInChain(table, name) && rules.length > 0);
  if (own.length === 0) return [];
  const reached = own.map(({ name }) => {
    return {
      name,
      chains: reachedChains(
        table,
        new Map([...chains].filter(([each]) => each === name || !isBuiltInChain(table, each))),
      ),
    };
  });
  return [...chains.values()].filter(isLeft).map((chain) => ({
    family,
    table,
    chain,
    reachedFrom: reached.filter((from) => from.chains.has(chain.name)).map(({ name }) => name),
  }));
}

/** The chains of a table that a packet may come to: the kernel's own, and those that they jump or go to, however far. */
function reachedChains(table: TableName, chains: ReadonlyMap<string, Chain>): ReadonlySet<string> {
  const reached = new Set([...chains.keys()].filter((name) => isBuiltInChain(table, name)));
  // A set goes on with what is added while it is gone through.
  for (const name of reached) {
    for (const rule of chains.get(name)?.rules ?? []) {
      const target = jumpChain(rule);
      if (target !== undefined && chains.has(target)) reached.add(target);
    }
  }
  return reached;
}
