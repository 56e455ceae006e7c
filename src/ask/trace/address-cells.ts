import { type Address, addressAt, addressBits, addressNumber, type Family, isSpecial } from '../../kernel/address.ts';
import { isSingle, type AddressSpan } from '../../kernel/address-range.ts';

/** Documentation addresses. They stand for the rest of the world, unless a span separates them from it. */
const preferred: { readonly [F in Family]: readonly bigint[] } = {
  ipv4: [0xc6336463n, 0xcb007163n, 0xc0000263n],
  ipv6: [0x20010db8ffff00000000000000000063n, 0x3fff0000000000000000000000000063n],
};

/** The bounds of ranges whose addresses no host has. */
const worldCuts: { readonly [F in Family]: readonly bigint[] } = {
  ipv4: [1n << 24n, 127n << 24n, 128n << 24n, 224n << 24n],
  ipv6: [2n, 0xfe80n << 112n, 0xfec0n << 112n, 0xff00n << 112n],
};

/** Kinds of addresses, such as those of pods and of clients. Each kind needs its own representatives, even if no rule distinguishes it. */
export interface Kinds {
  readonly of: (address: Address) => string;
  /** Addresses at which the kind changes. Leaves out single hosts, because they count as taken. */
  readonly cuts: { readonly [F in Family]: readonly bigint[] };
}

const oneKind: Kinds = { of: () => '', cuts: { ipv4: [], ipv6: [] } };

/**
 * Returns one address for each cell. A cell is all addresses of one kind that the spans cannot distinguish. Skips addresses that no host
 * can have, such as multicast; taken addresses, each of which is its own cell; and cells that contain one of the `known` addresses.
 */
export function representatives(
  family: Family,
  spans: readonly AddressSpan[],
  isTaken: (address: Address) => boolean,
  known: readonly { readonly address: Address; readonly kind: string }[] = [],
  kinds = oneKind,
): readonly Address[] {
  const own = spans.filter((span) => span.family === family && !isSingle(span));
  const edges = [...own.flatMap(({ first, last }) => [first, last + 1n]), ...kinds.cuts[family]];
  const starts = [...new Set([...preferred[family], ...worldCuts[family], ...edges])].sort((a, b) => (a < b ? -1 : 1));
  const cellOf = (at: bigint, kind: string): string =>
    `${kind} ${own.map(({ first, last }) => (first <= at && at <= last ? 1 : 0)).join('')}`;
  const isKnown = new Set(known.map(({ address, kind }) => cellOf(addressNumber(address), kind)));
  const found = new Map<string, Address>();
  const ends = new Map(starts.map((start, i) => [start, starts[i + 1] ?? 1n << BigInt(addressBits[family])]));
  for (const start of new Set([...preferred[family], ...starts])) {
    const cellWith = (address: Address): string => cellOf(start, kinds.of(address));
    const isDone = (cell: string): boolean => isKnown.has(cell) || found.has(cell);
    const edge = addressAt(family, start);
    if (!isTaken(edge) && isDone(cellWith(edge))) continue;
    const address = firstFreeAddress(family, start, ends.get(start) ?? start, isTaken);
    if (address && !isDone(cellWith(address))) found.set(cellWith(address), address);
  }
  return [...found.values()];
}

function firstFreeAddress(
  family: Family,
  start: bigint,
  end: bigint,
  isTaken: (address: Address) => boolean,
): Address | undefined {
  // A host rarely has its network's first address.
  for (let at = end - start > 2n ? start + 1n : start; at < end; at++) {
    const address = addressAt(family, at);
    if (isSpecial(address)) return undefined;
    if (!isTaken(address)) return address;
  }
  return undefined;
}
