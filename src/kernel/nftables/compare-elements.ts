import { compareAddresses, ipv4Number } from '../address.ts';
import { compareText } from '../compare-text.ts';
import type { Element, ElementKey, Value } from './element.ts';
import { formatKey } from './format-expression.ts';

/** Elements in the order of compareElements. Elements with the same key keep their order. */
export interface SortedElements {
  readonly elements: readonly Element[];
  /** Whether no two of them have the same key. */
  readonly areDistinct: boolean;
}

/** Sorts the elements of a set. */
export function sortElements(elements: readonly Element[]): SortedElements {
  const { sorted, hasTies } = sortByFirst(elements) ?? { sorted: [...elements], hasTies: true };
  if (!hasTies) return { elements: sorted, areDistinct: true };
  // If only a few are out of place, this does little more than look at each.
  sorted.sort(compareElements);
  return { elements: sorted, areDistinct: sorted.every(isOtherThanBefore) };
}

function isOtherThanBefore(element: Element, i: number, sorted: readonly Element[]): boolean {
  const before = sorted[i - 1];
  return before === undefined || compareElements(before, element) !== 0;
}

/** How many numbers of 32 bits can be packed into a double with their position. */
const mostPacked = 2 ** 21;

/**
 * Sorts by the number that each key begins with, usually an IPv4 address, and says whether several keys share a number.
 * Undefined if a key begins with anything else. Sorting numbers takes a tenth of the time of comparing keys.
 */
function sortByFirst(elements: readonly Element[]): { sorted: Element[]; hasTies: boolean } | undefined {
  if (elements.length > mostPacked) return undefined;
  const kind = elements[0]?.key[0]?.kind;
  const packed = new Float64Array(elements.length);
  const isPacked = elements.every(({ key }, i) => {
    const first = key[0];
    const number = first?.kind === kind ? numberOf(first) : undefined;
    packed[i] = (number ?? 0) * mostPacked + i;
    return number !== undefined;
  });
  if (!isPacked) return undefined;
  packed.sort();
  const sorted: Element[] = [];
  let last = -1;
  let hasTies = false;
  packed.forEach((number) => {
    const position = number % mostPacked;
    const first = number - position;
    hasTies ||= first === last;
    last = first;
    sorted.push(elements[position] as Element);
  });
  return { sorted, hasTies };
}

/** The value as a number of 32 bits; undefined if it is none. */
function numberOf(value: Value | undefined): number | undefined {
  if (value?.kind === 'address') return value.address.family === 'ipv4' ? ipv4Number(value.address) : undefined;
  return value?.kind === 'number' && value.value < 2 ** 32 ? value.value : undefined;
}

/** Orders the elements of a set by their keys: addresses and ports as numbers, names as text. */
export function compareElements(a: Element, b: Element): number {
  return compareKeys(a.key, b.key);
}

function compareKeys(a: ElementKey, b: ElementKey): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const left = a[i];
    const right = b[i];
    const difference = left && right ? compareValues(left, right) : 0;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function compareValues(a: Value, b: Value): number {
  if (a === b) return 0;
  // Kind by kind: numbers among texts have no one order.
  if (a.kind !== b.kind) return compareText(a.kind, b.kind);
  if (a.kind === 'address' && b.kind === 'address') return compareAddresses(a.address, b.address);
  if (a.kind === 'number' && b.kind === 'number') return a.value - b.value;
  return compareText(textOf(a), textOf(b));
}

function textOf(value: Value): string {
  return value.kind === 'word' ? value.text : formatKey([value]);
}
