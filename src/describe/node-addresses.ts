import type { Coverage } from '../dumps/coverage.ts';
import { findDumpListeners } from '../dumps/coverage.ts';
import type { Family } from '../kernel/family.ts';
import { formatKey } from '../kernel/nftables/format-expression.ts';
import type { KernelState } from '../kernel/state.ts';
import { serviceLink } from '../kube-proxy/service-link.ts';
import { isKubeProxyTable, nftSets } from '../kube-proxy/nftables.ts';
import { findNodePortServers } from '../kube-proxy/virtual-servers.ts';
import type { AskedNode } from './find-port.ts';

/** What a dump tells of the node's own addresses; any may be one where it does not tell those of a family. */
export function findOwnAddresses(state: KernelState, coverage: Pick<Coverage, 'virtualServers'>): AskedNode {
  const addresses = findNodeAddresses(state);
  return {
    isOwn: ({ family, text }) => addresses[family].size === 0 || addresses[family].has(text),
    listeners: findDumpListeners(state, coverage),
  };
}

/** The addresses of its own that a node's kernel shows: of its links, or where node ports listen. */
function findNodeAddresses(state: KernelState): Readonly<Record<Family, ReadonlySet<string>>> {
  const found = { ipv4: new Set<string>(), ipv6: new Set<string>() };
  for (const { name, addresses } of state.links) {
    if (name === serviceLink) continue;
    for (const { address } of addresses) found[address.family].add(address.text);
  }
  const isNodePort = findNodePortServers(state);
  for (const server of state.virtualServers) {
    if (isNodePort(server)) found[server.family].add(server.address.text);
  }
  for (const { name, family, sets } of state.nftables) {
    if (!isKubeProxyTable(name)) continue;
    for (const { key } of sets.get(nftSets.nodePortIPs)?.elements ?? []) found[family].add(formatKey(key));
  }
  return found;
}
