import { joinHostPort, parseAddress, type Address } from './address.ts';

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

/** Ports of a transport protocol, both ends included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

const highestPort = 65535;

/** A port as tools print it: decimal, without leading zeros. */
export function parsePort(text: string): number | undefined {
  if (text.length > 5 || !/^(?:0|[1-9]\d*)$/.test(text)) return undefined;
  const port = Number(text);
  return port <= highestPort ? port : undefined;
}

/** Reads a port as ipvsadm and iptables do after an address: leading zeros do not make it octal. */
function parsePaddedPort(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) ? parsePort(text.replace(/^0+(?=\d)/, '')) : undefined;
}

/** Reads "80", "1000:2000", ":1023" or "1024:" as iptables does; undefined for anything else, such as a name. */
export function parsePortRange(text: string): PortRange | undefined {
  const colon = text.indexOf(':');
  if (colon < 0) {
    const port = parsePort(text);
    return port === undefined ? undefined : { first: port, last: port };
  }
  const first = colon === 0 ? 0 : parsePort(text.slice(0, colon));
  const last = colon === text.length - 1 ? highestPort : parsePort(text.slice(colon + 1));
  return first === undefined || last === undefined || text === ':' ? undefined : { first, last };
}

/** "80" or "1000:2000". */
export function formatPortRange({ first, last }: PortRange): string {
  return first === last ? String(first) : `${first}:${last}`;
}
