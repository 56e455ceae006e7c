import { formatAppends, tableNames, type Tables } from '../kernel/iptables/iptables.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { entryKey } from '../kernel/ipset/set-entry.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { formatVirtualServer, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Link } from '../kernel/link/link.ts';
import { formatChain } from '../kernel/nftables/format.ts';
import { formatElement } from '../kernel/nftables/format-expression.ts';
import { isLearned, type NftTable } from '../kernel/nftables/table.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { isKubeProxyTable } from '../kube-proxy/nft-names.ts';
import { isKubeProxySet } from '../kube-proxy/ipvs-sets.ts';
import { isOwnChain } from './drafted-state.ts';

/** What a tool printed of each thing, as text: equal texts are of equal things. */
export type Listing = ReadonlyMap<string, string>;

function sorted(texts: readonly string[]): string {
  return texts.toSorted().join('\n');
}

/** Real servers with their weights, by which nodes differ. */
export function listServers(servers: readonly VirtualServer[]): Listing {
  return new Map(servers.map((server) => [virtualServerKey(server), formatVirtualServer(server)]));
}

/** The entries of kube-proxy's sets. */
export function listSets(sets: readonly IpSet[]): Listing {
  const own = sets.filter(({ name }) => isKubeProxySet(name));
  return new Map(own.map(({ name, entries }) => [`set ${name}`, sorted(entries.map(entryKey))]));
}

/** The addresses of links. */
export function listLinks(links: readonly Link[]): Listing {
  return new Map(
    links.map(({ name, addresses }) => [`link ${name}`, sorted(addresses.map(({ address }) => address.text))]),
  );
}

/** iptables-legacy-save and iptables-nft-save of one node show one table twice: kube-proxy's rules are in one of the two. */
export function listRules(tables: Tables): Listing {
  const listed = tableNames.flatMap((table) => {
    const chains = [...(tables[table]?.values() ?? [])].filter(
      ({ name, rules }) => rules.length > 0 && isOwnChain(table, name),
    );
    if (!chains.some(({ name }) => name === baseChains.services)) return [];
    return chains.map((chain) => [`chain ${chain.name} (${table})`, formatAppends(chain)] as const);
  });
  return new Map(listed);
}

/** The rules and elements of kube-proxy's tables, without the clients that rules added. */
export function listNftables(tables: readonly NftTable[]): Listing {
  const own = tables.filter(({ name }) => isKubeProxyTable(name));
  const listed = own.flatMap(({ family, chains, sets }) => [
    ...[...chains.values()].map((chain) => [`${family} chain ${chain.name}`, formatChain(chain)] as const),
    ...[...sets.values()]
      .filter((set) => !isLearned(set))
      .map(({ name, elements }) => [`${family} ${name}`, sorted(elements.map(formatElement))] as const),
  ]);
  return new Map(listed);
}

/**
 * By what two listings of one tool differ, where they are of another node or another time: they have something in common, and of
 * that something is not alike, or both are whole and one has more, or all. Parts that have nothing in common complete each other.
 */
export function findDifferences(first: Listing, second: Listing, areWhole: boolean): readonly string[] {
  const common = [...second.keys()].filter((key) => first.has(key));
  const unlike = common.filter((key) => first.get(key) !== second.get(key));
  const isOneEmpty = (first.size === 0) !== (second.size === 0);
  if (unlike.length > 0 || !areWhole || (common.length === 0 && !isOneEmpty)) return unlike;
  return [
    ...[...first.keys()].filter((key) => !second.has(key)),
    ...[...second.keys()].filter((key) => !first.has(key)),
  ];
}
