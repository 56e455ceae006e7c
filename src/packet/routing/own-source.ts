import {
  addressBits,
  compareAddresses,
  contains,
  isLinkLocal,
  isLoopback,
  numberOf,
  parseNetwork,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import type { LinkAddress } from '../../kernel/link/link.ts';

export type OwnAddress = LinkAddress & { readonly link: string };

export function isOutward({ address, scope }: LinkAddress): boolean {
  return !isLoopback(address) && scope !== 'link' && scope !== 'host';
}

/** The network around an address; undefined for a single address. */
export function networkAround({ address, prefixLength }: LinkAddress): Network | undefined {
  if (prefixLength === addressBits[address.family] || isLoopback(address)) return undefined;
  return parseNetwork(`${address.text}/${prefixLength}`);
}

/**
 * The source address that the kernel chooses for packets leaving by a link (inet_select_addr in devinet.c). Only an address that was first
 * in its network counts; the first of these in the next hop's network wins, else the first of all. A link without any borrows from another.
 */
export function selectIPv4(own: readonly OwnAddress[], link: string, near: Address | undefined): Address | undefined {
  const onLink = own.filter((each) => each.link === link);
  const primary = onLink.filter((each, at) => {
    const network = networkAround(each);
    const isSame = (other: OwnAddress): boolean =>
      other.prefixLength === each.prefixLength && network !== undefined && contains(network, other.address);
    return isOutward(each) && !onLink.slice(0, at).some(isSame);
  });
  const isNear = (each: OwnAddress): boolean => {
    const network = networkAround(each);
    return near !== undefined && (network ? contains(network, near) : each.address.text === near.text);
  };
  const chosen = primary.find(isNear) ?? primary[0] ?? own.find(isOutward);
  return chosen?.address;
}

/**
 * The source address that the kernel chooses for packets leaving by a link (ipv6_dev_get_saddr in addrconf.c): the destination itself
 * first, then one that is not deprecated, then one of that link, then one of the destination's kind of network, then the most bits in
 * common; on a tie the latest added, which ip lists first.
 */
export function selectIPv6(own: readonly OwnAddress[], link: string, to: Address): Address | undefined {
  const able = own.filter((each) => (isLinkLocal(to) ? each.link === link : isOutward(each)));
  const rank = (each: OwnAddress): readonly number[] => [
    each.address.text === to.text ? 1 : 0,
    each.isDeprecated === true ? 0 : 1,
    each.link === link ? 1 : 0,
    labelOf(each.address) === labelOf(to) ? 1 : 0,
    commonBits(each, to),
  ];
  return able.toSorted((a, b) => compareRanks(rank(b), rank(a)))[0]?.address;
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((each, i) => each !== b[i]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

/** Networks that form a kind of their own (RFC 6724, addrlabel.c). */
const labels: readonly Network[] = ['fc00::/7', '2002::/16', '2001::/32', '2001:10::/28', 'fec0::/10'].flatMap(
  (text) => parseNetwork(text) ?? [],
);

function labelOf(address: Address): string {
  return labels.find((network) => contains(network, address))?.text ?? '';
}

function commonBits({ address, prefixLength }: LinkAddress, to: Address): number {
  const different = (numberOf(address) ^ numberOf(to)).toString(2);
  const bits = addressBits[address.family];
  return Math.min(prefixLength, different === '0' ? bits : bits - different.length);
}

/**
 * The link's IPv6 addresses with the most bits in common with a destination: the kernel takes one of these. Bits past an
 * address's own prefix do not count (rule 8 of RFC 6724; ipv6_get_saddr_eval).
 */
export function closestTo(to: Address, own: readonly LinkAddress[]): readonly Address[] {
  const common = own.map((each) => commonBits(each, to));
  const most = Math.max(...common);
  return own.filter((_, at) => common[at] === most).map(({ address }) => address);
}

/** The routes that come with the addresses, the most specific first. */
export function networksOf(own: readonly OwnAddress[]) {
  return own
    .flatMap((each) => {
      const network = networkAround(each);
      return network ? [{ network, link: each.link, source: each.address }] : [];
    })
    .toSorted(
      ({ network: a }, { network: b }) => b.prefixLength - a.prefixLength || compareAddresses(a.address, b.address),
    );
}
