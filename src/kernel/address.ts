/** An IP family. kube-proxy runs a proxier for each family; kpc keeps both families in one state. */
export type Family = 'ipv4' | 'ipv6';

export const families: readonly Family[] = ['ipv4', 'ipv6'];

export const familyNames = { ipv4: 'IPv4', ipv6: 'IPv6' } as const satisfies Record<Family, string>;

export type Protocol = 'TCP' | 'UDP' | 'SCTP';

export const protocols: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

/**
 * `text` is canonical: RFC 5952, with IPv4-mapped IPv6 as IPv4. `bits` is signed, because V8 then stores the number inside the object (see
 * ipv4Number).
 */
export type Address =
  | { readonly family: 'ipv4'; readonly text: string; readonly bits: number }
  | { readonly family: 'ipv6'; readonly text: string; readonly groups: readonly number[] };

/** A network whose host bits are zero. `text` is "address/length". */
export interface Network {
  readonly family: Family;
  readonly text: string;
  readonly address: Address;
  readonly prefixLength: number;
}

/** Reads an address like kube-proxy's ParseIPSloppy: leading zeros are not octal, no IPv6 zones, IPv4-mapped IPv6 becomes IPv4. */
export function parseAddress(text: string): Address | undefined {
  const plain = readIpv4(text);
  if (plain !== undefined) return { family: 'ipv4', text, bits: plain };
  const padded = readSloppyIpv4(text);
  if (padded !== undefined) return ipv4Address(padded);
  const groups = readIpv6(text);
  return groups && unmapAddress(groups);
}

export function ipv4Number({ bits }: Extract<Address, { family: 'ipv4' }>): number {
  return bits >>> 0;
}

function readSloppyIpv4(text: string): number | undefined {
  const plain = readIpv4(text);
  if (plain !== undefined || !/^\d+\.\d+\.\d+\.\d+$/.test(text)) return plain;
  return readIpv4(text.replace(/(^|\.)0+(?=\d)/g, '$1'));
}

/** The length of a fully written IPv6 address whose last two groups are a dotted quad. */
const longestIpv6 = 45;

function readIpv6(text: string): readonly number[] | undefined {
  if (text.length > longestIpv6) return undefined;
  const hex = text.includes('.') ? undot(text) : text;
  if (hex === undefined || !/^[\da-f:]+$/i.test(hex)) return undefined;
  const gap = hex.indexOf('::');
  const groups = readGroups(gap < 0 ? hex : hex.slice(0, gap));
  if (gap >= 0) {
    const tail = readGroups(hex.slice(gap + 2));
    const zeros = 8 - groups.length - tail.length;
    if (zeros < 1) return undefined;
    for (let i = 0; i < zeros; i++) groups.push(0);
    groups.push(...tail);
  }
  return groups.length === 8 && groups.every((group) => group <= 0xffff) ? groups : undefined;
}

function readGroups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number(`0x${group}`));
}

function undot(text: string): string | undefined {
  const tail = text.lastIndexOf(':') + 1;
  const number = readSloppyIpv4(text.slice(tail));
  if (number === undefined) return undefined;
  return `${text.slice(0, tail)}${(number >>> 16).toString(16)}:${(number & 0xffff).toString(16)}`;
}

function unmapAddress(groups: readonly number[]): Address {
  if (groups[5] !== 0xffff || groups.slice(0, 5).some((group) => group !== 0)) return ipv6Address(groups);
  return ipv4Address(((groups[6] ?? 0) << 16) | (groups[7] ?? 0));
}

/** Returns the bits of a canonical dotted quad, or undefined. Written by hand for speed, because states hold millions of addresses. */
function readIpv4(text: string): number | undefined {
  if (text.length > 15) return undefined;
  let value = 0;
  let part = -1;
  let parts = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === dot) {
      if (part < 0 || ++parts > 3) return undefined;
      value = (value << 8) | part;
      part = -1;
    } else {
      const digit = code - zero;
      if (digit < 0 || digit > 9 || part === 0) return undefined;
      part = part < 0 ? digit : part * 10 + digit;
      if (part > 255) return undefined;
    }
  }
  return part < 0 || parts !== 3 ? undefined : (value << 8) | part;
}

const dot = 46;
const zero = 48;

/** Reads a network like kube-proxy's ParseCIDRSloppy and clears host bits. An IPv4-mapped network is IPv4 only from length 96 on. */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf('/');
  if (slash < 0) return undefined;
  const address = text.slice(0, slash);
  const length = text.slice(slash + 1);
  if (!/^\d+$/.test(length)) return undefined;
  const prefixLength = Number(length);
  const plain = readIpv4(address);
  // Try the usual form first, because states hold hundreds of thousands of networks.
  if (plain !== undefined && prefixLength <= 32 && maskBits(plain, prefixLength) === plain) {
    const isCanonical = length.length === (prefixLength < 10 ? 1 : 2);
    const first = { family: 'ipv4', text: address, bits: plain } as const;
    return isCanonical ? { family: 'ipv4', text, address: first, prefixLength } : makeNetwork(first, prefixLength);
  }
  const bits = readSloppyIpv4(address);
  if (bits !== undefined) {
    return prefixLength <= 32 ? makeNetwork(ipv4Address(maskBits(bits, prefixLength)), prefixLength) : undefined;
  }
  const groups = readIpv6(address);
  if (!groups || prefixLength > 128) return undefined;
  const first = unmapAddress(maskGroups(groups, prefixLength));
  return makeNetwork(first, first.family === 'ipv4' ? prefixLength - 96 : prefixLength);
}

export const addressBits: { readonly [F in Family]: number } = { ipv4: 32, ipv6: 128 };

export function hostNetwork(address: Address): Network {
  return makeNetwork(address, addressBits[address.family]);
}

function makeNetwork(first: Address, prefixLength: number): Network {
  return { family: first.family, text: `${first.text}/${prefixLength}`, address: first, prefixLength };
}

function maskBits(bits: number, prefixLength: number): number {
  // JavaScript would treat a shift by 32 bits as a shift by 0.
  return prefixLength === 0 ? 0 : bits & (-1 << (32 - prefixLength));
}

function maskGroups(groups: readonly number[], prefixLength: number): readonly number[] {
  return groups.map((group, i) => {
    const bits = Math.min(16, Math.max(0, prefixLength - i * 16));
    return group & (0xffff << (16 - bits)) & 0xffff;
  });
}

/** Returns the address plus `offset`. The result must be a valid address. */
export function addressAfter(address: Address, offset: number): Address {
  if (address.family === 'ipv4') return ipv4Address((address.bits + offset) | 0);
  return addressAt('ipv6', addressNumber(address) + BigInt(offset));
}

export function addressNumber(address: Address): bigint {
  if (address.family === 'ipv4') return BigInt(ipv4Number(address));
  return address.groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
}

export function addressAt(family: Family, at: bigint): Address {
  if (family === 'ipv4') return ipv4Address(Number(BigInt.asIntN(32, at)));
  return ipv6Address(Array.from({ length: 8 }, (_, i) => Number((at >> BigInt(112 - 16 * i)) & 0xffffn)));
}

function ipv4Address(bits: number): Address {
  const text = [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');
  return { family: 'ipv4', text, bits };
}

function ipv6Address(groups: readonly number[]): Address {
  return { family: 'ipv6', text: formatIpv6(groups), groups };
}

/** Formats by RFC 5952: "::" replaces the longest run of zeros, the first of equally long ones, but never a single zero. */
function formatIpv6(groups: readonly number[]): string {
  let start = 0;
  let length = 1;
  for (let i = 0, zeros = 0; i < groups.length; i++) {
    zeros = groups[i] === 0 ? zeros + 1 : 0;
    if (zeros > length) [start, length] = [i + 1 - zeros, zeros];
  }
  const end = length === 1 ? start : start + length;
  let text = '';
  for (let i = 0; i < groups.length; i++) {
    if (i < start || i >= end) text += `${i === 0 || i === end ? '' : ':'}${(groups[i] ?? 0).toString(16)}`;
    else if (i === start) text += '::';
  }
  return text;
}

export function contains(network: Network, address: Address): boolean {
  const first = network.address;
  if (address.family === 'ipv4') {
    return first.family === 'ipv4' && maskBits(address.bits, network.prefixLength) === first.bits;
  }
  return (
    first.family === 'ipv6' &&
    maskGroups(address.groups, network.prefixLength).every((group, i) => group === first.groups[i])
  );
}

/** Returns a key that two addresses share if one network of this prefix length contains both. */
export function prefixKey(address: Address, length: number): string {
  const { family } = address;
  return `${family} ${length} ${addressNumber(address) >> BigInt(addressBits[family] - length)}`;
}

/** Orders IPv4 before IPv6, then by number. */
export function compareAddresses(a: Address, b: Address): number {
  if (a.family === 'ipv4') return b.family === 'ipv4' ? ipv4Number(a) - ipv4Number(b) : -1;
  if (b.family === 'ipv4') return 1;
  for (let i = 0; i < a.groups.length; i++) {
    const difference = (a.groups[i] ?? 0) - (b.groups[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

export const loopbackAddresses: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: '127.0.0.1', bits: 0x7f000001 },
  ipv6: { family: 'ipv6', text: '::1', groups: [0, 0, 0, 0, 0, 0, 0, 1] },
};

export const unspecifiedIPv4 = parseAddress('0.0.0.0') as Address;

export const loopbackNetworks: { readonly [F in Family]: Network } = {
  ipv4: makeNetwork({ family: 'ipv4', text: '127.0.0.0', bits: 0x7f000000 }, 8),
  ipv6: hostNetwork(loopbackAddresses.ipv6),
};

export function isLoopback(address: Address): boolean {
  return address.family === 'ipv4' ? address.bits >>> 24 === 127 : address.text === '::1';
}

export function isLinkLocal(address: Address): boolean {
  return address.family === 'ipv4' ? address.bits >>> 16 === 0xa9fe : ((address.groups[0] ?? 0) & 0xffc0) === 0xfe80;
}

export function isLinkLocalMulticast(address: Address): boolean {
  return address.family === 'ipv4' ? address.bits >>> 8 === 0xe00000 : address.groups[0] === 0xff02;
}

export function joinHostPort(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

export type SpecialUse = 'unspecified' | 'loopback' | 'link-local' | 'link-local multicast';

export function unusableAs(address: Address): SpecialUse | undefined {
  if (address.text === '0.0.0.0' || address.text === '::') return 'unspecified';
  if (isLoopback(address)) return 'loopback';
  if (isLinkLocal(address)) return 'link-local';
  return isLinkLocalMulticast(address) ? 'link-local multicast' : undefined;
}

/** Reports whether no host can have the address: it is unspecified, loopback, link-local, multicast or the broadcast address. */
export function isSpecial(address: Address): boolean {
  return unusableAs(address) !== undefined || isForMany(address);
}

/** Reports whether the address is a multicast or broadcast address. */
export function isForMany(address: Address): boolean {
  if (address.family === 'ipv6') return (address.groups[0] ?? 0) >>> 8 === 0xff;
  return address.bits >>> 28 === 0xe || isBroadcast(address);
}

export function isBroadcast({ text }: Address): boolean {
  return text === '255.255.255.255';
}
