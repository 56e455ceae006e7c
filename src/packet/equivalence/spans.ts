import { describeSpecial, ipv4Number, parseAddress, type Address, type Network } from '../../kernel/address.ts';
import type { Family } from '../../kernel/family.ts';

/** Addresses from the first to the last, as numbers. */
export interface Span {
  readonly family: Family;
  readonly first: bigint;
  readonly last: bigint;
}

export function spanOfAddress(address: Address): Span {
  const at = numberOf(address);
  return { family: address.family, first: at, last: at };
}

export function spanOfNetwork({ family, address, prefixLength }: Network): Span {
  const first = numberOf(address);
  const size = 1n << BigInt((family === 'ipv4' ? 32 : 128) - prefixLength);
  return { family, first, last: first + size - 1n };
}

export function spanOfRange(first: Address, last: Address): Span {
  return { family: first.family, first: numberOf(first), last: numberOf(last) };
}

export function isSingle({ first, last }: Span): boolean {
  return first === last;
}

export function keyOfSpan({ family, first, last }: Span): string {
  return `${family} ${first} ${last}`;
}

export function addressAt(family: Family, at: bigint): Address {
  const text =
    family === 'ipv4'
      ? [24n, 16n, 8n, 0n].map((shift) => (at >> shift) & 255n).join('.')
      : Array.from({ length: 8 }, (_, i) => ((at >> BigInt(112 - 16 * i)) & 0xffffn).toString(16)).join(':');
  const address = parseAddress(text);
  if (!address) throw new Error(`no address: ${text}`);
  return address;
}

/** Documentation addresses, which stand for the rest of the world where nothing cuts them off from it. */
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
  spans: readonly Span[],
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
  const isKnown = new Set(known.map((address) => membershipOf(numberOf(address))));
  const found = new Map<string, Address>();
  for (const [i, start] of ends.entries()) {
    const end = ends[i + 1] ?? 1n << (family === 'ipv4' ? 32n : 128n);
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

function numberOf(address: Address): bigint {
  if (address.family === 'ipv4') return BigInt(ipv4Number(address));
  return address.groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
}
