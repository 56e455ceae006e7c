import type { Coverage } from '../dumps/coverage.ts';
import { findDumpListeners } from '../dumps/dump-listeners.ts';
import type { Family } from '../kernel/family.ts';
import { formatKey } from '../kernel/nftables/format-expression.ts';
import type { KernelState } from '../kernel/state.ts';
import { serviceLink } from '../kube-proxy/link.ts';
import { isKubeProxyTable, nftSets } from '../kube-proxy/nftables.ts';
import type { FindListeners } from '../kube-proxy/node-port-listeners.ts';
import { findNodePortServers } from '../kube-proxy/virtual-servers.ts';

/** The node's own addresses, by family. None of a family means that the state does not tell them. */
type NodeAddresses = ReadonlyMap<Family, ReadonlySet<string>>;

/** What a dump tells of the node's own addresses, and of those that node ports listen on. */
export interface OwnAddresses {
  readonly addresses: NodeAddresses;
  readonly listeners: FindListeners;
}

/** Reads both from a dump. */
export function findOwnAddresses(state: KernelState, coverage: Pick<Coverage, 'virtualServers'>): OwnAddresses {
  return { addresses: findNodeAddresses(state), listeners: findDumpListeners(state, coverage) };
}

/** The addresses of its own that a node's kernel shows: of its links, or where node ports listen. */
function findNodeAddresses(state: KernelState): NodeAddresses {
  const found = new Map<Family, Set<string>>([
    ['ipv4', new Set()],
    ['ipv6', new Set()],
  ]);
  for (const { name, addresses } of state.links) {
    if (name === serviceLink) continue;
    for (const { address } of addresses) found.get(address.family)?.add(address.text);
  }
  const isNodePort = findNodePortServers(state);
  for (const server of state.virtualServers) {
    if (isNodePort(server)) found.get(server.family)?.add(server.address.text);
  }
  for (const { name, family, sets } of state.nftables) {
    if (!isKubeProxyTable(name)) continue;
    for (const { key } of sets.get(nftSets.nodePortIPs)?.elements ?? []) found.get(family)?.add(formatKey(key));
  }
  return found;
}
