import { formatRule as formatRuleText, type Chain, type TableName, type Tables } from '../kernel/iptables/iptables.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { realServerKey, virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import type { Link } from '../kernel/link/link.ts';
import { formatElement, formatRule } from '../kernel/nftables/format-expression.ts';
import { isLearned, type NftTable } from '../kernel/nftables/table.ts';
import { entryKey } from '../kernel/ipset/set-entry.ts';
import { classifyChain } from '../kube-proxy/chains.ts';
import { isKubeProxyTable } from '../kube-proxy/nftables.ts';
import { isKubeProxySet } from '../kube-proxy/sets.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';

/** What a listing says of each thing in it, as text: equal texts are of equal things. */
export type Listing = ReadonlyMap<string, string>;

/** Real servers with their weights: what a node is told by. */
export function listServers(servers: readonly VirtualServer[]): Listing {
  return new Map(
    servers.map((server) => {
      const reals = server.realServers.map((real) => `${realServerKey(real)} ${real.weight}`).toSorted();
      return [virtualServerKey(server), `${server.scheduler} ${reals.join(', ')}`];
    }),
  );
}

export function listSets(sets: readonly IpSet[]): Listing {
  const own = sets.filter(({ name }) => isKubeProxySet(name));
  return new Map(own.map(({ name, entries }) => [`set ${name}`, entries.map(entryKey).toSorted().join(' ')]));
}

/** iptables-legacy-save and iptables-nft-save of one node show one table twice: kube-proxy's rules are in one of the two. */
export function listRules(tables: Tables, names: readonly TableName[]): Listing {
  const isOwn = (table: TableName, { name, rules }: Chain): boolean => {
    const kind = classifyChain(table, name);
    return rules.length > 0 && (kind === 'service' || kind === 'fixed');
  };
  return new Map(
    names.flatMap((table) => {
      const chains = [...(tables[table]?.values() ?? [])].filter((chain) => isOwn(table, chain));
      if (chains.every(({ name }) => name !== baseChains.services)) return [];
      return chains.map(
        ({ name, rules }) => [`chain ${name} (${table})`, rules.map(formatRuleText).join('\n')] as const,
      );
    }),
  );
}

export function listNftables(tables: readonly NftTable[]): Listing {
  return new Map(
    tables
      .filter(({ name }) => isKubeProxyTable(name))
      .flatMap(({ family, chains, sets }) => [
        ...[...chains.values()].map(
          ({ name, rules }) => [`${family} chain ${name}`, rules.map((rule) => formatRule(rule)).join('\n')] as const,
        ),
        ...[...sets.values()]
          .filter((set) => !isLearned(set))
          .map(
            ({ name, elements }) => [`${family} ${name}`, elements.map(formatElement).toSorted().join('\n')] as const,
          ),
      ]),
  );
}

export function listLinks(links: readonly Link[]): Listing {
  return new Map(
    links.map(({ name, addresses }) => [
      `link ${name}`,
      addresses
        .map(({ address }) => address.text)
        .toSorted()
        .join(' '),
    ]),
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
