import { addressBits, parseNetwork } from '../address.ts';
import { addressAt, spanOfAddress, spanOfNetwork, spanOfRange, type AddressSpan } from '../address-span.ts';
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

function rangeOf(value: Value): AddressSpan | undefined {
  switch (value.kind) {
    case 'address':
      return spanOfAddress(value.address);
    case 'range':
      return spanOfRange(value.first, value.last);
    case 'network':
      return spanOfNetwork(value.network);
    case 'number':
    case 'word':
      return undefined;
    default:
      return value satisfies never;
  }
}

/** Also a network of one address, once nft has read it. */
function isSingle(value: Value): boolean {
  return value.kind === 'address';
}

function sortRanges(ranges: readonly AddressSpan[]): readonly AddressSpan[] {
  return ranges.toSorted((a, b) => compare(a.first, b.first) || compare(a.last, b.last));
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function isNotRepeated(range: AddressSpan, index: number, all: readonly AddressSpan[]): boolean {
  return index === 0 || all[index - 1]?.first !== range.first;
}

function mergeRanges(sorted: readonly AddressSpan[]): readonly AddressSpan[] {
  const merged: AddressSpan[] = [];
  for (const range of sorted) {
    const before = merged.at(-1);
    if (!before || before.family !== range.family || range.first > before.last + 1n) merged.push(range);
    else if (range.last > before.last) merged[merged.length - 1] = { ...before, last: range.last };
  }
  return merged;
}

/** The shortest way to say a range: an address, a network, or its ends. */
function valueOf({ family, first, last }: AddressSpan): Value {
  const [from, to] = [addressAt(family, first), addressAt(family, last)];
  if (first === last) return { kind: 'address', address: from };
  const prefixLength = addressBits[family] - (last - first).toString(2).length;
  const network = parseNetwork(`${from.text}/${prefixLength}`);
  if (network) {
    const span = spanOfNetwork(network);
    if (span.first === first && span.last === last) return { kind: 'network', network };
  }
  return { kind: 'range', first: from, last: to };
}

function sortedUnique(values: readonly Value[]): readonly Value[] {
  const byText = new Map(values.map((value) => [formatKey([value]), value]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
}
