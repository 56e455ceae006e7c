import { parseAddress, type Address } from '../kernel/address.ts';
import { parseAddressRange, singleAddress } from '../kernel/address-range.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';

/** An address that is asked about, in any form that a tool or a person writes it. */
export interface AskedAddress {
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
  const [, given = what, protocol] = /^(.*)\/(tcp|udp|sctp)$/i.exec(what) ?? [];
  const at = given.replace(/^localhost(?=:\d)/i, '127.0.0.1');
  const socket = parseSocketAddress(at);
  const address = socket?.address ?? parseAddress(at.replace(/^\[(.*)\]$/, '$1')) ?? parseSingle(at);
  return address && { address, port: socket?.port, protocol: protocol?.toUpperCase() };
}

/** An address with the prefix length of one address. */
function parseSingle(text: string): Address | undefined {
  const range = text.includes('/') ? parseAddressRange(text) : undefined;
  return range && singleAddress(range);
}

/** A bare number: of a node port, or of a Service's own port. */
export interface AskedPort {
  readonly port: number;
  /** In capitals. */
  readonly protocol: string | undefined;
  /** Set for ":30080", which can only be a port of the node. */
  readonly isOfNode: boolean;
}

/** Reads "30080", ":30080" or "30080/tcp"; undefined for anything else. */
export function parseAskedPort(what: string): AskedPort | undefined {
  const [, colon, number = '', protocol] = /^(:?)(\d{1,5})(?:\/(tcp|udp|sctp))?$/i.exec(what) ?? [];
  const port = Number(number);
  if (port === 0) return undefined;
  return { port, protocol: protocol?.toUpperCase(), isOfNode: colon === ':' };
}
