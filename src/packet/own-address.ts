import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';

/**
 * An address of the node of which nothing is known. It is no address that anything could have: its text is none, and only a network of all
 * addresses holds it. Maps are keyed by text, so that of each family differs.
 */
export const unknownOwn: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: 'an IPv4 address of the node', bits: 0 },
  ipv6: { family: 'ipv6', text: 'an IPv6 address of the node', groups: [0, 0, 0, 0, 0, 0, 0, 0] },
};

/** Whether an address is one of the node's own that is not known. */
export function isUnknownOwn(address: Address): boolean {
  return address.text === unknownOwn[address.family].text;
}
