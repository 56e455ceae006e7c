import { families, type Family } from '../kernel/address.ts';
import { isBuiltInChain, type Chain, type TableName } from '../kernel/iptables/iptables.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { forwardingSysctls } from '../kernel/sysctls-and-modules.ts';
import { baseChains } from './chain-names.ts';
import { isServiceChainName } from './chains.ts';
import { modeFacts, type ProxyMode } from './modes.ts';

export interface LeftChain {
  readonly family: Family;
  readonly table: TableName;
  readonly chain: Chain;
  /** The built-in chains that lead to this chain; empty if none does. */
  readonly reachedFrom: readonly string[];
}

const refusingChains: ReadonlySet<string> = new Set([baseChains.services, baseChains.externalServices]);

/** Finds chains that iptables mode left on a node in another mode. Empty if the built-in chains' rules are unknown. */
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
  const reached = own.map((from) => ({ from: from.name, chains: reachedChains(from, table, chains) }));
  return [...chains.values()].filter(isLeft).map((chain) => ({
    family,
    table,
    chain,
    reachedFrom: reached.filter((each) => each.chains.has(chain.name)).map(({ from }) => from),
  }));
}

function reachedChains(from: Chain, table: TableName, chains: ReadonlyMap<string, Chain>): ReadonlySet<string> {
  const reached = new Set([from.name]);
  // The loop also visits chains that it adds to the set.
  for (const name of reached) {
    for (const rule of chains.get(name)?.rules ?? []) {
      const target = jumpChain(rule);
      if (target !== undefined && chains.has(target) && !isBuiltInChain(table, target)) reached.add(target);
    }
  }
  return reached;
}

/** Returns the sysctls that kube-proxy sets in one mode but not the other. Leaves out IP forwarding, which all modes need. */
export function sysctlsLeftBy(from: ProxyMode, to: ProxyMode): readonly string[] {
  return modeFacts[from].sysctls.filter(
    (name) => !modeFacts[to].sysctls.includes(name) && name !== forwardingSysctls.ipv4,
  );
}
