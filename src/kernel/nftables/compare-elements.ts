import { compareAddresses, ipv4Number } from '../address.ts';
import { compareText } from '../compare.ts';
import type { Element, Value } from './table.ts';
import { formatKey } from './format.ts';

/** A double can pack a 32-bit number with this many positions, plus a value above all of these. */
const mostPacked = 2 ** 20;

/** Elements with equal keys keep their order. */
export function sortElements(elements: readonly Element[]): Element[] {
  const kind = elements[0]?.key[0]?.kind;
  const isPackable = elements.length <= mostPacked && elements.every(({ key }) => key[0]?.kind === kind);
  if (!isPackable) return elements.toSorted(compareElements);
  // Sorting numbers takes a tenth of the time of comparing keys; keys are then only compared if the numbers are equal.
  const packed = new Float64Array(elements.map(({ key }, i) => orderingNumber(key[0]) * mostPacked + i)).sort();
  const sorted = elements.map((_, i) => elements[(packed[i] ?? 0) % mostPacked] as Element);
  const firsts = packed.map((number) => Math.floor(number / mostPacked));
  return firsts.some((number, i) => number === firsts[i - 1]) ? sorted.sort(compareElements) : sorted;
}

const aboveAll = 2 ** 32;

/** The IPv4 address or port that a key begins with, as a number; a larger number for anything else. */
function orderingNumber(value: Value | undefined): number {
  if (value?.kind === 'address') return value.address.family === 'ipv4' ? ipv4Number(value.address) : aboveAll;
  return value?.kind === 'number' && value.value < aboveAll ? value.value : aboveAll;
}

/** Compares the parts of keys: addresses and ports as numbers, names as text. */
export function compareElements({ key: a }: Element, { key: b }: Element): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = compareValues(a[i] as Value, b[i] as Value);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function compareValues(a: Value, b: Value): number {
  if (a === b) return 0;
  // Different kinds are ordered by kind, because numbers and texts have no common order.
  if (a.kind !== b.kind) return compareText(a.kind, b.kind);
  if (a.kind === 'address' && b.kind === 'address') return compareAddresses(a.address, b.address);
  if (a.kind === 'number' && b.kind === 'number') return a.value - b.value;
  return compareText(valueText(a), valueText(b));
}

function valueText(value: Value): string {
  return value.kind === 'word' ? value.text : formatKey([value]);
}
