import { joinHostPort, parseAddress, type Address } from './address.ts';
import { parsePaddedPort } from './port.ts';

/** An address with a port. */
export interface SocketAddress {
  readonly address: Address;
  readonly port: number;
}

/** Reads "10.0.0.1:80" or "[fd00::1]:80"; undefined for anything else, such as names. */
export function parseSocketAddress(text: string): SocketAddress | undefined {
  const colon = text.lastIndexOf(':');
  const host = text.slice(0, colon);
  const isBracketed = host.startsWith('[') && host.endsWith(']');
  if (colon < 0 || (!isBracketed && host.includes(':'))) return undefined;
  const port = parsePaddedPort(text.slice(colon + 1));
  const address = parseAddress(isBracketed ? host.slice(1, -1) : host);
  return address && port !== undefined ? { address, port } : undefined;
}

/** "10.0.0.1:80" or "[fd00::1]:80". */
export function formatSocketAddress({ address, port }: SocketAddress): string {
  return joinHostPort(address.text, port);
}
