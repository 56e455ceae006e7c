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

/** An address of the node, and the link that has it. */
export type OwnAddress = LinkAddress & { readonly link: string };

export function isOutward({ address, scope }: LinkAddress): boolean {
  return !isLoopback(address) && scope !== 'link' && scope !== 'host';
}

/** The network that an address is of; undefined for one by itself. */
export function networkAround({ address, prefixLength }: LinkAddress): Network | undefined {
  if (prefixLength === addressBits[address.family] || isLoopback(address)) return undefined;
  return parseNetwork(`${address.text}/${prefixLength}`);
}

/**
 * The address that the kernel chooses for packets that leave by a link (inet_select_addr in devinet.c): of those that were not added
 * to a network which the link had already, the first that is in a network with the next hop, else the first; without any, that of another link.
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
 * The address that the kernel chooses for packets that leave by a link (ipv6_dev_get_saddr in addrconf.c): that of the link before others, of
 * the destination's kind of network, with the most bits in common; of equal ones the one that was added last, which ip lists first.
 */
export function selectIPv6(own: readonly OwnAddress[], link: string, to: Address): Address | undefined {
  const able = own.filter((each) => (isLinkLocal(to) ? each.link === link : isOutward(each)));
  const rank = (each: OwnAddress): readonly number[] => [
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

/** Networks that are not of one kind with others (RFC 6724, as addrlabel.c has it). */
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
 * Of a link's IPv6 addresses, those that have the most bits in common with a destination: the kernel takes such a one, and counts no
 * bits past an address's own prefix (rule 8 of RFC 6724; ipv6_get_saddr_eval).
 */
export function closestTo(to: Address, own: readonly LinkAddress[]): readonly Address[] {
  const common = own.map((each) => commonBits(each, to));
  const most = Math.max(...common);
  return own.filter((_, at) => common[at] === most).map(({ address }) => address);
}

/** The routes that come with addresses, the most specific first. */
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
