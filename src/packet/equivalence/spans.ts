import { addressAt, addressBits, describeSpecial, type Address } from '../../kernel/address.ts';
import { spanOfAddress, type AddressSpan } from '../../kernel/address-range.ts';
import type { Family } from '../../kernel/family.ts';

export function isSingle({ first, last }: AddressSpan): boolean {
  return first === last;
}

export function keyOfSpan({ family, first, last }: AddressSpan): string {
  return `${family} ${first} ${last}`;
}

/** Documentation addresses: they represent the rest of the world, unless a span separates them from it. */
const preferred = { ipv4: 0xc6336463n, ipv6: 0x20010db8ffff00000000000000000063n };

/** Where addresses that no host has begin and end. */
const worldCuts: { readonly [F in Family]: readonly bigint[] } = {
  ipv4: [1n << 24n, 127n << 24n, 128n << 24n, 224n << 24n],
  ipv6: [2n, 0xfe80n << 112n, 0xfec0n << 112n, 0xff00n << 112n],
};

/**
 * One address for each class of addresses that the spans cannot tell apart. None of them is one that `isTaken`, since
 * those are classes of their own, nor one that no host has, such as a multicast address. A class that one of the `known`
 * addresses is in needs no other.
 */
export function representatives(
  family: Family,
  spans: readonly AddressSpan[],
  isTaken: (address: Address) => boolean,
  known: readonly Address[] = [],
): readonly Address[] {
  const own = spans.filter((span) => span.family === family && !isSingle(span));
  const starts = new Set([
    preferred[family],
    ...worldCuts[family],
    ...own.flatMap(({ first, last }) => [first, last + 1n]),
  ]);
  const ends = [...starts].sort((a, b) => (a < b ? -1 : 1));
  const membershipOf = (at: bigint): string =>
    own.map(({ first, last }) => (first <= at && at <= last ? 1 : 0)).join('');
  const isKnown = new Set(known.map((address) => membershipOf(spanOfAddress(address).first)));
  const found = new Map<string, Address>();
  for (const [i, start] of ends.entries()) {
    const end = ends[i + 1] ?? 1n << BigInt(addressBits[family]);
    const membership = membershipOf(start);
    if (isKnown.has(membership)) continue;
    if (found.has(membership) && start !== preferred[family]) continue;
    const address = firstFree(family, start, end, isTaken);
    if (address) found.set(membership, address);
  }
  return [...found.values()];
}

function firstFree(
  family: Family,
  start: bigint,
  end: bigint,
  isTaken: (address: Address) => boolean,
): Address | undefined {
  // The first address of a network is rarely a host's.
  for (let at = end - start > 2n ? start + 1n : start; at < end; at++) {
    const address = addressAt(family, at);
    if (describeSpecial(address) !== undefined) return undefined;
    if (!isTaken(address)) return address;
  }
  return undefined;
}
