import { addressBits, ipv4Address, ipv4Number, ipv6Address, type Address, type Network } from './address.ts';
import type { Family } from './family.ts';

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
