import { listOf, objectOf, text, type Shaped } from '../../base/json-shape.ts';
import type { Family } from '../../kernel/family.ts';
import type { Rule, TableName } from '../../kernel/iptables/iptables.ts';
import { ruleMeaning } from '../../kernel/iptables/iptables-meaning.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { Link, LinkAddress } from '../../kernel/link/link.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import type { Ownership } from '../../kernel/restrict.ts';

const listed = listOf(text);

const fields = {
  /** virtualServerKey. */
  virtualServers: listed,
  sets: listed,
  /** chainKey. */
  chains: listed,
  /** Rules in chains that are not ours: jumps in the kernel's own, and kube-proxy's rule in a kubelet's KUBE-FIREWALL: jumpKey. */
  jumps: listed,
  /** Links, with all addresses on them. */
  links: listed,
  /** Addresses on a link that is another program's: addressKey. */
  addresses: listed,
  /**
   * Of the chains and rules, those that a kubelet makes too, and that kpc-apply made although there was a kubelet: it had
   * none. Where a kubelet came later, it has taken them for its own.
   */
  besideKubelet: listed,
  /** Tables of nftables, with all that is in them: nftTableKey. */
  nftTables: listed,
};

/** Belongings as a file has them. */
export const belongingsShape = objectOf(fields);

/** Names of things in a kernel that are kpc-apply's. */
export type Belongings = Shaped<typeof belongingsShape>;

const lists = Object.keys(fields) as readonly (keyof Belongings)[];

/** Something for each of the lists. */
export function mapLists<T>(make: (list: keyof Belongings) => T): Readonly<Record<keyof Belongings, T>> {
  // Each list has its entry.
  return Object.fromEntries(lists.map((list) => [list, make(list)])) as Record<keyof Belongings, T>;
}

/** A node with nothing of kpc-apply's. */
export const noBelongings: Belongings = mapLists(() => []);

/** All that is in one or the other. */
export function joinBelongings(a: Belongings, b: Belongings): Belongings {
  return mapLists((list) => [...new Set([...a[list], ...b[list]])]);
}

/** What is in the first and not in the second. */
export function withoutBelongings(all: Belongings, gone: Belongings): Belongings {
  return mapLists((list) => {
    const names = new Set(gone[list]);
    return all[list].filter((name) => !names.has(name));
  });
}

/** Whether nothing on the node is kpc-apply's. */
export function isEmptyBelongings(belongings: Belongings): boolean {
  return lists.every((list) => belongings[list].length === 0);
}

/** "ipv4 nat KUBE-SERVICES". */
export function chainKey(family: Family, table: TableName, chain: string): string {
  return `${family} ${table} ${chain}`;
}

/** Whether a chainKey or jumpKey is of the family. */
export function isOfFamily(key: string, family: Family): boolean {
  return key.startsWith(`${family} `);
}

/** "ip kube-proxy", as nft names it. */
export function nftTableKey(family: Family, name: string): string {
  return `${nftFamily[family]} ${name}`;
}

/** "ipv4 nat PREROUTING -m comment …": `chain` is the one that the rule is in. */
export function jumpKey(family: Family, table: TableName, chain: string, rule: Rule): string {
  return `${chainKey(family, table, chain)} ${ruleMeaning(rule)}`;
}

/** "kube-ipvs0 10.96.0.1/32". */
export function addressKey(link: Link['name'], { address, prefixLength }: LinkAddress): string {
  return `${link} ${address.text}/${prefixLength}`;
}

/** What these names cover of a state. */
export function ownershipOf(belongings: Belongings): Ownership {
  const has = mapLists((list) => new Set(belongings[list]));
  const partlyOwned = new Set(belongings.addresses.map((key) => key.slice(0, key.indexOf(' '))));
  return {
    chain: (name, table, family) => has.chains.has(chainKey(family, table, name)),
    jump: (rule, chain, table, family) => has.jumps.has(jumpKey(family, table, chain, rule)),
    table: (name, family) => has.nftTables.has(nftTableKey(family, name)),
    set: (name) => has.sets.has(name),
    virtualServer: (server) => has.virtualServers.has(virtualServerKey(server)),
    link: (name) => has.links.has(name) || partlyOwned.has(name),
    // A link that is up gets an address of scope link by itself.
    address: (address, link) =>
      address.scope !== 'link' && (has.links.has(link) || has.addresses.has(addressKey(link, address))),
    sysctl: () => true,
  };
}
