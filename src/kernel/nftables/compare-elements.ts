import { compareAddresses } from '../address.ts';
import type { Element, ElementKey, Value } from './element.ts';
import { formatKey } from './format-expression.ts';

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
  if (a.kind === 'address' && b.kind === 'address') return compareAddresses(a.address, b.address);
  if (a.kind === 'number' && b.kind === 'number') return a.value - b.value;
  return compareText(textOf(a), textOf(b));
}

function textOf(value: Value): string {
  return value.kind === 'word' ? value.text : formatKey([value]);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
