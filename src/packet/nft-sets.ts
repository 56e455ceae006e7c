import { singleAddress } from '../kernel/address-range.ts';
import { compareAddresses, contains, type Address } from '../kernel/address.ts';
import type { Element, Value } from '../kernel/nftables/element.ts';
import { keyMeaning } from '../kernel/nftables/meaning.ts';
import type { NftMap, NftSet } from '../kernel/nftables/table.ts';

/** What a packet has in a field: an address, a port or mark, or a word of nft's. */
export type FieldValue = Address | number | string;

/** The element that holds a key; undefined for none. */
export type NftSetLookup = (key: readonly FieldValue[]) => Element | undefined;

/** Hashes a set's or map's elements. Networks and ranges are tried one by one. */
export function indexNftSet({ elements }: NftSet | NftMap): NftSetLookup {
  const exact = new Map<string, Element>();
  const ranges: Element[] = [];
  for (const element of elements) {
    if (element.key.every(isSingle)) exact.set(keyMeaning(element.key), element);
    else ranges.push(element);
  }
  return (key) =>
    exact.get(key.map(textOf).join(' . ')) ??
    ranges.find((element) => element.key.every((value, i) => holds(value, key[i])));
}

function isSingle(value: Value): boolean {
  switch (value.kind) {
    case 'network':
      return singleAddress(value.network) !== undefined;
    case 'word':
      return !value.text.endsWith('*');
    case 'range':
      return false;
    case 'address':
    case 'number':
      return true;
    default:
      return value satisfies never;
  }
}

function textOf(value: FieldValue): string {
  return typeof value === 'object' ? value.text : String(value);
}

/** Whether a constant matches what a packet has. */
export function holds(constant: Value, value: FieldValue | undefined): boolean {
  switch (constant.kind) {
    case 'address':
      return typeof value === 'object' && value.text === constant.address.text;
    case 'network':
      return typeof value === 'object' && contains(constant.network, value);
    case 'range':
      return (
        typeof value === 'object' &&
        compareAddresses(constant.first, value) <= 0 &&
        compareAddresses(value, constant.last) <= 0
      );
    case 'number':
      return value === constant.value;
    case 'word':
      if (constant.text.endsWith('*')) return typeof value === 'string' && value.startsWith(constant.text.slice(0, -1));
      return value === constant.text;
    default:
      return constant satisfies never;
  }
}
