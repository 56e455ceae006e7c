import { addressAfter, addressBits, type Address, type Network } from '../kernel/address.ts';

/**
 * Searches for a free number below `size`, starting at the name's hash. Picks those below `reserved` last: the API server keeps them for
 * manual choice.
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

/** How many addresses of a network to pick from: IPv6 networks hold more than a cluster needs. */
export function poolSize({ family, prefixLength }: Network): number {
  return Math.min(2 ** 20, 2 ** (addressBits[family] - prefixLength));
}

/** Picks a free address in a network, not among the first `skipped` nor an IPv4 network's broadcast address. */
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
