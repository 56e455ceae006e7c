import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';

/**
 * Placeholders for an address of the node if it is not known which: addresses that no host has (RFC 7600, RFC 6666), so that no
 * rule names them.
 */
export const unknownOwn: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: '192.0.0.8', bits: 0xc0000008 },
  ipv6: { family: 'ipv6', text: '100::1', groups: [0x100, 0, 0, 0, 0, 0, 0, 1] },
};

/** Whether an address is the placeholder for one of the node's own that is not known. */
export function isUnknownOwn({ family, text }: Address): boolean {
  return unknownOwn[family].text === text;
}
