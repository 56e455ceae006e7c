import type { Family } from '../../kernel/address.ts';
import { familyOfPlace, type RulesPlace } from '../../kernel/iptables/iptables-delta.ts';
import type { Rule, TableName } from '../../kernel/iptables/iptables.ts';
import { ruleMeaning } from '../../kernel/iptables/iptables-meaning.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { Link, LinkAddress } from '../../kernel/link/link.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import type { Ownership } from '../../kernel/state.ts';
import { variantOfPlace, type Variants } from '../node/tools.ts';
import { ownedLists, type OwnedNames } from './owned-lists.ts';

export function mapLists<T>(make: (list: keyof OwnedNames) => T): Readonly<Record<keyof OwnedNames, T>> {
  return Object.fromEntries(ownedLists.map((list) => [list, make(list)])) as Record<keyof OwnedNames, T>;
}

export const nothingOwned: OwnedNames = mapLists(() => []);

export function joinOwned(a: OwnedNames, b: OwnedNames): OwnedNames {
  return mapLists((list) => [...new Set([...a[list], ...b[list]])]);
}

export function withoutOwned(all: OwnedNames, gone: OwnedNames): OwnedNames {
  return mapLists((list) => {
    const names = new Set(gone[list]);
    return all[list].filter((name) => !names.has(name));
  });
}

export function isNothingOwned(owned: OwnedNames): boolean {
  return ownedLists.every((list) => owned[list].length === 0);
}

/** Returns a prefix for the keys of chains and jumps, such as "nft ipv4". It does not depend on the iptables variant in use. */
export function rulesKey(place: RulesPlace, variants: Variants): string {
  return `${variantOfPlace(place, variants)} ${familyOfPlace(place)}`;
}

/** "nft ipv4 nat KUBE-SERVICES". */
export function chainKey(place: string, table: TableName, chain: string): string {
  return `${place} ${table} ${chain}`;
}

export function isOfPlace(key: string, place: string): boolean {
  return key.startsWith(`${place} `);
}

/** "ip kube-proxy", as nft names the table. */
export function nftTableKey(family: Family, name: string): string {
  return `${nftFamily[family]} ${name}`;
}

/** "nft ipv4 nat PREROUTING -m comment …" for a rule in `chain`. */
export function jumpKey(place: string, table: TableName, chain: string, rule: Rule): string {
  return `${chainKey(place, table, chain)} ${ruleMeaning(rule)}`;
}

/** "kube-ipvs0 10.96.0.1/32". */
export function addressKey(link: Link['name'], { address, prefixLength }: LinkAddress): string {
  return `${link} ${address.text}/${prefixLength}`;
}

export function ownershipOf(owned: OwnedNames, variants: Variants): Ownership {
  const has = mapLists((list) => new Set(owned[list]));
  const partlyOwned = new Set(owned.addresses.map((key) => key.slice(0, key.indexOf(' '))));
  return {
    chain: (name, table, place) => has.chains.has(chainKey(rulesKey(place, variants), table, name)),
    jump: (rule, chain, table, place) => has.jumps.has(jumpKey(rulesKey(place, variants), table, chain, rule)),
    table: (name, family) => has.nftTables.has(nftTableKey(family, name)),
    set: (name) => has.sets.has(name),
    virtualServer: (server) => has.virtualServers.has(virtualServerKey(server)),
    link: (name) => has.links.has(name) || partlyOwned.has(name),
    // When a link is up, the kernel itself adds an address with scope link.
    address: (address, link) =>
      address.scope !== 'link' && (has.links.has(link) || has.addresses.has(addressKey(link, address))),
    sysctl: () => true,
  };
}
