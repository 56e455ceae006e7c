import {
  type Address,
  addressBits,
  addressNumber,
  compareAddresses,
  type Family,
  hostNetwork,
  type Network,
  parseAddress,
  parseNetwork,
} from './address.ts';

export type AddressRange = Address | Network;

/** Reads "10.0.0.1" or "10.0.0.0/8" in any spelling; undefined for any other text. */
export function parseAddressRange(text: string): AddressRange | undefined {
  return text.includes('/') ? parseNetwork(text) : parseAddress(text);
}

export function isNetworkRange(range: AddressRange): range is Network {
  return 'prefixLength' in range;
}

export function networkOfRange(range: AddressRange): Network {
  return isNetworkRange(range) ? range : hostNetwork(range);
}

export function singleAddress(range: AddressRange): Address | undefined {
  if (!isNetworkRange(range)) return range;
  return range.prefixLength === addressBits[range.family] ? range.address : undefined;
}

/** Orders by first address. Of ranges with the same first address, the wider network comes first and a plain address last. */
export function compareAddressRanges(a: AddressRange, b: AddressRange): number {
  return compareAddresses(firstOf(a), firstOf(b)) || lengthOf(a) - lengthOf(b);
}

function lengthOf(range: AddressRange): number {
  return isNetworkRange(range) ? range.prefixLength : 129;
}

function firstOf(range: AddressRange): Address {
  return isNetworkRange(range) ? range.address : range;
}

export interface AddressSpan {
  readonly family: Family;
  readonly first: bigint;
  readonly last: bigint;
}

export function isSingle({ first, last }: AddressSpan): boolean {
  return first === last;
}

export function spanOf(range: AddressRange): AddressSpan {
  const { family } = range;
  const first = addressNumber(isNetworkRange(range) ? range.address : range);
  const length = isNetworkRange(range) ? range.prefixLength : addressBits[family];
  return { family, first, last: first + (1n << BigInt(addressBits[family] - length)) - 1n };
}
