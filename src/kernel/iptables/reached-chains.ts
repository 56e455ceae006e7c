import { isBuiltInChain, type Chain, type TableName } from './iptables.ts';
import { jumpChain } from '../restrict.ts';

/** The chains of a table that a packet may come to: the kernel's own, and those that they jump or go to, however far. */
export function reachedChains(table: TableName, chains: ReadonlyMap<string, Chain>): ReadonlySet<string> {
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
