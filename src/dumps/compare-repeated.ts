import { formatRule, tableNames, type Tables } from '../kernel/iptables/iptables.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { entryKey } from '../kernel/ipset/set-entry.ts';
import { realServerKey, virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Link } from '../kernel/link/link.ts';
import { formatElement, formatRule as formatNftRule } from '../kernel/nftables/format-expression.ts';
import { isLearned, type NftTable } from '../kernel/nftables/table.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { isKubeProxyTable } from '../kube-proxy/nft-names.ts';
import { isKubeProxySet } from '../kube-proxy/ipvs-sets.ts';
import { isOwnChain } from './drafted-state.ts';

/** What a tool printed of each thing, as text: equal texts are of equal things. */
export type Listing = ReadonlyMap<string, string>;

function listAll<T>(
  items: readonly T[],
  nameOf: (item: T) => string,
  textsOf: (item: T) => readonly string[],
): Listing {
  return new Map(items.map((item) => [nameOf(item), textsOf(item).toSorted().join('\n')]));
}

/** Real servers with their weights, by which nodes differ. */
export function listServers(servers: readonly VirtualServer[]): Listing {
  return listAll(servers, virtualServerKey, ({ scheduler, realServers }) => [
    scheduler,
    ...realServers.map((real) => `${realServerKey(real)} ${real.weight}`),
  ]);
}

/** The entries of kube-proxy's sets. */
export function listSets(sets: readonly IpSet[]): Listing {
  const own = sets.filter(({ name }) => isKubeProxySet(name));
  return listAll(
    own,
    ({ name }) => `set ${name}`,
    ({ entries }) => entries.map(entryKey),
  );
}

/** The addresses of links. */
export function listLinks(links: readonly Link[]): Listing {
  return listAll(
    links,
    ({ name }) => `link ${name}`,
    ({ addresses }) => addresses.map(({ address }) => address.text),
  );
}

/** iptables-legacy-save and iptables-nft-save of one node show one table twice: kube-proxy's rules are in one of the two. */
export function listRules(tables: Tables): Listing {
  const own = tableNames.flatMap((table) => {
    const chains = [...(tables[table]?.values() ?? [])].filter(
      ({ name, rules }) => rules.length > 0 && isOwnChain(table, name),
    );
    return chains.some(({ name }) => name === baseChains.services) ? chains.map((chain) => ({ table, chain })) : [];
  });
  return listAll(
    own,
    ({ table, chain }) => `chain ${chain.name} (${table})`,
    ({ chain }) => chain.rules.map(formatRule),
  );
}

/** The rules and elements of kube-proxy's tables, without the clients that rules added. */
export function listNftables(tables: readonly NftTable[]): Listing {
  const parts = tables
    .filter(({ name }) => isKubeProxyTable(name))
    .flatMap(({ family, chains, sets }) => [
      ...[...chains.values()].map(({ name, rules }) => ({
        name: `${family} chain ${name}`,
        texts: rules.map((rule) => formatNftRule(rule)),
      })),
      ...[...sets.values()]
        .filter((set) => !isLearned(set))
        .map(({ name, elements }) => ({ name: `${family} ${name}`, texts: elements.map(formatElement) })),
    ]);
  return listAll(
    parts,
    ({ name }) => name,
    ({ texts }) => texts,
  );
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
