import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';

/**
 * Placeholder for an unknown address of the node. Its text is no valid address, and only a network of all addresses contains it.
 * Maps are keyed by text, so each family has its own.
 */
export const unknownOwn: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: 'an IPv4 address of the node', bits: 0 },
  ipv6: { family: 'ipv6', text: 'an IPv6 address of the node', groups: [0, 0, 0, 0, 0, 0, 0, 0] },
};

export function isUnknownOwn(address: Address): boolean {
  return address.text === unknownOwn[address.family].text;
}
