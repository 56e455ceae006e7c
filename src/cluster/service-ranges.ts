import { type Network, addressAfter, addressBits, type Address } from '../kernel/address.ts';
import { compareAddressRanges } from '../kernel/address-range.ts';
import { compareText } from '../kernel/compare.ts';
import type { ServiceRange } from './model.ts';
import type { ServiceCidr, Sourced } from './objects.ts';

const defaultName = 'kubernetes';

/**
 * Returns all ServiceCIDRs or, if there are none, --service-cluster-ip-range, for which the API server would make a ServiceCIDR. Sorted,
 * unique.
 */
export function serviceRanges(
  objects: readonly Sourced<ServiceCidr>[],
  flag: readonly Network[],
): readonly ServiceRange[] {
  const declared = objects.toSorted(compareServiceCidrs).flatMap(({ object, source }) =>
    object.cidrs.map((network, i): ServiceRange => {
      return { network, from: 'ServiceCIDR', place: source.place(['spec', 'cidrs', i]) };
    }),
  );
  const assumed = flag.map((network): ServiceRange => ({ network, from: '--service-cluster-ip-range' }));
  return sortRanges(objects.length > 0 ? declared : assumed);
}

export function sortRanges(ranges: readonly ServiceRange[]): readonly ServiceRange[] {
  const known = new Map<string, ServiceRange>();
  for (const range of ranges) if (!known.has(range.network.text)) known.set(range.network.text, range);
  return [...known.values()].sort((a, b) => compareAddressRanges(a.network, b.network));
}

/** Returns at most one network for each family. The API server's own ServiceCIDR comes first, because it decides the default family. */
export function assignableNetworks(objects: readonly Sourced<ServiceCidr>[]): readonly Network[] {
  const networks = objects.toSorted(compareServiceCidrs).flatMap(({ object }) => object.cidrs);
  return networks.filter(({ family }, i) => networks.findIndex((other) => other.family === family) === i);
}

export function isDefaultCidr({ metadata }: ServiceCidr): boolean {
  return metadata.name === defaultName;
}

function compareServiceCidrs({ object: a }: Sourced<ServiceCidr>, { object: b }: Sourced<ServiceCidr>): number {
  return Number(isDefaultCidr(b)) - Number(isDefaultCidr(a)) || compareText(a.metadata.name, b.metadata.name);
}

/**
 * Picks a free number below `size`, starting at the name's hash. Numbers below `reserved` (for manual use, as in the API server) come last.
 */
export function pick(
  name: string,
  size: number,
  reserved: number,
  isFree: (offset: number) => boolean,
): number | undefined {
  const open = Math.max(0, size - reserved);
  if (open > 0) {
    const start = hash(name) % open;
    for (let i = 0; i < open; i++) {
      const offset = reserved + ((start + i) % open);
      if (isFree(offset)) return offset;
    }
  }
  for (let offset = Math.min(reserved, size) - 1; offset >= 0; offset--) if (isFree(offset)) return offset;
  return undefined;
}

export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value;
}

/** Returns how many addresses of a network to pick from. IPv6 networks hold more than a cluster needs. */
export function poolSize({ family, prefixLength }: Network): number {
  return Math.min(2 ** 20, 2 ** (addressBits[family] - prefixLength));
}

/** Picks a free address in a network. Skips the first `skipped` addresses and an IPv4 network's broadcast address. */
export function pickAddress(
  name: string,
  network: Network,
  { skipped, reserved = 0 }: { readonly skipped: number; readonly reserved?: number },
  isFree: (address: string) => boolean,
): Address | undefined {
  const size = poolSize(network);
  const end = network.family === 'ipv4' && size > 2 ? size - 1 : size;
  const isOpen = (at: number): boolean => at >= skipped && at < end && isFree(addressAfter(network.address, at).text);
  const offset = pick(name, size, reserved, isOpen);
  return offset === undefined ? undefined : addressAfter(network.address, offset);
}
