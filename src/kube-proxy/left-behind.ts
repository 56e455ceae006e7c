import { families, type Family } from '../kernel/family.ts';
import { isBuiltInChain, type Chain, type TableName } from '../kernel/iptables/iptables.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { forwardingSysctls } from '../kernel/sysctls-and-modules.ts';
import { baseChains } from './chain-names.ts';
import { isServiceChainName } from './chains.ts';
import { modeFacts, type ProxyMode } from './modes.ts';

/** A chain that iptables mode left on a node that has another mode now. */
export interface LeftChain {
  readonly family: Family;
  readonly table: TableName;
  readonly chain: Chain;
  /** The kernel's own chains that lead to it; empty if nothing jumps to it. */
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
  const reached = own.map((from) => ({ from: from.name, chains: reachedChains(from, table, chains) }));
  return [...chains.values()].filter(isLeft).map((chain) => ({
    family,
    table,
    chain,
    reachedFrom: reached.filter((each) => each.chains.has(chain.name)).map(({ from }) => from),
  }));
}

/** The given chain of the kernel, and all chains that a packet in it may reach through any number of jumps. */
function reachedChains(from: Chain, table: TableName, chains: ReadonlyMap<string, Chain>): ReadonlySet<string> {
  const reached = new Set([from.name]);
  // The loop also visits what is added to the set during it.
  for (const name of reached) {
    for (const rule of chains.get(name)?.rules ?? []) {
      const target = jumpChain(rule);
      if (target !== undefined && chains.has(target) && !isBuiltInChain(table, target)) reached.add(target);
    }
  }
  return reached;
}

/** How packets still come to a chain that was left: "nothing jumps to it", "still reached from PREROUTING". */
export function describeReach({ reachedFrom }: LeftChain): string {
  return reachedFrom.length === 0 ? 'nothing jumps to it' : `still reached from ${reachedFrom.join(', ')}`;
}

/** "Left by iptables mode", before what it left. */
export function leftBy(mode: ProxyMode): string {
  return `Left by ${modeFacts[mode].title}`;
}

/** Of chains that iptables mode left, those that nothing jumps to, and those that packets still come to. */
export const leftChainTitles = {
  dead: `${leftBy('iptables')}, nothing jumps to them`,
  live: `${leftBy('iptables')}, packets still come to them`,
} as const;

/**
 * Sysctls that kube-proxy sets in the one mode and not in the other: they stay as they are. Without IP forwarding, which only
 * IPVS mode sets, but every mode needs.
 */
function sysctlsLeftBy(from: ProxyMode, to: ProxyMode): readonly string[] {
  return modeFacts[from].sysctls.filter(
    (name) => !modeFacts[to].sysctls.includes(name) && name !== forwardingSysctls.ipv4,
  );
}

/** "sysctls that only IPVS mode needs stay as they are: …"; none if it leaves none. */
export function describeLeftSysctls(from: ProxyMode, to: ProxyMode): readonly string[] {
  const left = sysctlsLeftBy(from, to);
  return left.length === 0
    ? []
    : [`sysctls that only ${modeFacts[from].title} needs stay as they are: ${left.join(', ')}`];
}
