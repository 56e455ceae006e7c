import {
  addressBits,
  compareAddresses,
  hostNetwork,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
  ipv4Address,
  ipv4Number,
  ipv6Address,
} from './address.ts';
import type { Family } from './family.ts';

/** One address, or all of a network. Its `text` is canonical, with a prefix length where it is a network. */
export type AddressRange = Address | Network;

/** Reads "10.0.0.1" or "10.0.0.0/8"; undefined for anything else. */
export function parseAddressRange(text: string): AddressRange | undefined {
  return text.includes('/') ? parseNetwork(text) : parseAddress(text);
}

/** Whether the range is written with a prefix length, be it that of a single address. */
export function isNetwork(range: AddressRange): range is Network {
  return 'prefixLength' in range;
}

/** The same addresses as a network: a single one is a network of itself. */
export function networkOfRange(range: AddressRange): Network {
  return isNetwork(range) ? range : hostNetwork(range);
}

/** The address of a range that holds only one, in either form; undefined where it holds more. */
export function singleAddress(range: AddressRange): Address | undefined {
  if (!isNetwork(range)) return range;
  return range.prefixLength === addressBits[range.family] ? range.address : undefined;
}

/** By first address. Of ranges with the same first address, the widest comes first; an address is narrower than any network. */
export function compareAddressRanges(a: AddressRange, b: AddressRange): number {
  return compareAddresses(firstAddress(a), firstAddress(b)) || lengthOf(a) - lengthOf(b);
}

function firstAddress(range: AddressRange): Address {
  return isNetwork(range) ? range.address : range;
}

function lengthOf(range: AddressRange): number {
  return isNetwork(range) ? range.prefixLength : 129;
}

/** Addresses from the first to the last, as numbers. */
export interface AddressSpan {
  readonly family: Family;
  readonly first: bigint;
  readonly last: bigint;
}

export function spanOfRange(first: Address, last: Address): AddressSpan {
  return { family: first.family, first: numberOf(first), last: numberOf(last) };
}

export function spanOfAddress(address: Address): AddressSpan {
  return spanOfRange(address, address);
}

export function spanOfNetwork({ family, address, prefixLength }: Network): AddressSpan {
  const first = numberOf(address);
  return { family, first, last: first + (1n << BigInt(addressBits[family] - prefixLength)) - 1n };
}

function numberOf(address: Address): bigint {
  if (address.family === 'ipv4') return BigInt(ipv4Number(address));
  return address.groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
}

/** The address that is this number. */
export function addressAt(family: Family, at: bigint): Address {
  if (family === 'ipv4') return ipv4Address(Number(BigInt.asIntN(32, at)));
  return ipv6Address(Array.from({ length: 8 }, (_, i) => Number((at >> BigInt(112 - 16 * i)) & 0xffffn)));
}
