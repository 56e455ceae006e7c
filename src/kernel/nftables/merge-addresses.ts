import { ipv4Number, parseAddress, parseNetwork, type Address } from '../address.ts';
import type { Family } from '../family.ts';
import type { Value } from './element.ts';
import { formatKey } from './format-expression.ts';

/**
 * Constants of an anonymous set as the kernel keeps them: sorted, none twice, and addresses and networks that overlap
 * or follow each other in one. What nft prints back is equal to that.
 */
export function mergeAddresses(values: readonly Value[]): readonly Value[] {
  const ranges = values.map(rangeOf);
  if (!ranges.every((range) => range !== undefined)) return sortedUnique(values);
  // nft merges none where all are single addresses.
  if (values.every(isSingle)) return sortRanges(ranges).filter(isNotRepeated).map(valueOf);
  return mergeRanges(sortRanges(ranges)).map(valueOf);
}

/** Addresses as numbers, both ends included. */
interface Range {
  readonly family: Family;
  readonly first: bigint;
  readonly last: bigint;
}

function rangeOf(value: Value): Range | undefined {
  switch (value.kind) {
    case 'address':
      return span(value.address, value.address);
    case 'range':
      return span(value.first, value.last);
    case 'network': {
      const { family, address, prefixLength } = value.network;
      const first = toNumber(address);
      return { family, first, last: first + (1n << BigInt(bitsOf(family) - prefixLength)) - 1n };
    }
    case 'number':
    case 'word':
      return undefined;
    default:
      return value satisfies never;
  }
}

function span(first: Address, last: Address): Range {
  return { family: first.family, first: toNumber(first), last: toNumber(last) };
}

/** Also a network of one address, once nft has read it. */
function isSingle(value: Value): boolean {
  return value.kind === 'address';
}

function sortRanges(ranges: readonly Range[]): readonly Range[] {
  return ranges.toSorted((a, b) => compare(a.first, b.first) || compare(a.last, b.last));
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function isNotRepeated(range: Range, index: number, all: readonly Range[]): boolean {
  return index === 0 || all[index - 1]?.first !== range.first;
}

function mergeRanges(sorted: readonly Range[]): readonly Range[] {
  const merged: Range[] = [];
  for (const range of sorted) {
    const before = merged.at(-1);
    if (!before || before.family !== range.family || range.first > before.last + 1n) merged.push(range);
    else if (range.last > before.last) merged[merged.length - 1] = { ...before, last: range.last };
  }
  return merged;
}

/** The shortest way to say a range: an address, a network, or its ends. */
function valueOf({ family, first, last }: Range): Value {
  const start = toText(first, family);
  const length = bitsOf(family) - (last - first).toString(2).replace(/^0$/, '').length;
  const network = parseNetwork(`${start}/${length}`);
  const isNetwork = network !== undefined && last - first + 1n === 1n << BigInt(bitsOf(family) - length);
  if (isNetwork && toNumber(network.address) === first) {
    return first === last ? { kind: 'address', address: network.address } : { kind: 'network', network };
  }
  const [from, to] = [parseAddress(start), parseAddress(toText(last, family))];
  if (!from || !to) throw new RangeError(`not an address: ${start}`);
  return { kind: 'range', first: from, last: to };
}

function bitsOf(family: Family): number {
  return family === 'ipv4' ? 32 : 128;
}

function toNumber(address: Address): bigint {
  if (address.family === 'ipv4') return BigInt(ipv4Number(address));
  return address.groups.reduce((number, group) => (number << 16n) | BigInt(group), 0n);
}

function toText(number: bigint, family: Family): string {
  const groups = family === 'ipv4' ? 4 : 8;
  const bits = BigInt(bitsOf(family) / groups);
  const parts = Array.from(
    { length: groups },
    (_, i) => (number >> (bits * BigInt(groups - 1 - i))) & ((1n << bits) - 1n),
  );
  return family === 'ipv4' ? parts.join('.') : parts.map((part) => part.toString(16)).join(':');
}

function sortedUnique(values: readonly Value[]): readonly Value[] {
  const byText = new Map(values.map((value) => [formatKey([value]), value]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
}
