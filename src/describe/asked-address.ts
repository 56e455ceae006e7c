import { parseAddress } from '../kernel/address.ts';
import type { Address } from '../kernel/address.ts';
import { parseAddressRange, singleAddress } from '../kernel/address-range.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';

/** An address that is asked about, in any form that a tool or a person writes it. */
interface AskedAddress {
  readonly address: Address;
  readonly port: number | undefined;
  /** In capitals. */
  readonly protocol: string | undefined;
}

/**
 * Reads "10.96.0.80", "10.96.0.80:80", "[fd00::10]:80/tcp", "fd00::10", or "10.96.0.80/32" as iptables-save prints it;
 * undefined for anything else.
 */
export function parseAskedAddress(what: string): AskedAddress | undefined {
  const [, at = what, protocol] = /^(.*)\/(tcp|udp|sctp)$/i.exec(what) ?? [];
  const socket = parseSocketAddress(at);
  const address = socket?.address ?? parseAddress(at.replace(/^\[(.*)\]$/, '$1')) ?? parseSingle(at);
  return address && { address, port: socket?.port, protocol: protocol?.toUpperCase() };
}

/** An address with the prefix length of one address. */
function parseSingle(text: string): Address | undefined {
  const range = text.includes('/') ? parseAddressRange(text) : undefined;
  return range && singleAddress(range);
}
