import { joinHostPort, parseAddress, type Address } from './address.ts';

export interface SocketAddress {
  readonly address: Address;
  readonly port: number;
}

export function parseSocketAddress(text: string): SocketAddress | undefined {
  const colon = text.lastIndexOf(':');
  const host = text.slice(0, colon);
  const isBracketed = host.startsWith('[') && host.endsWith(']');
  if (colon < 0 || (!isBracketed && host.includes(':'))) return undefined;
  const port = parsePaddedPort(text.slice(colon + 1));
  const address = parseAddress(isBracketed ? host.slice(1, -1) : host);
  return address && port !== undefined ? { address, port } : undefined;
}

/** The address that a packet is sent to. Without a port, the packet keeps its own port. */
interface Target {
  readonly address: Address;
  readonly port: number | undefined;
}

export function parseTarget(text: string): Target | undefined {
  const address = parseAddress(text);
  return address ? { address, port: undefined } : parseSocketAddress(text);
}

export function formatSocketAddress({ address, port }: Target): string {
  return port === undefined ? address.text : joinHostPort(address.text, port);
}

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

const highestPort = 65535;

/** Reads a port in decimal, without leading zeros. */
export function parsePort(text: string): number | undefined {
  if (text.length > 5 || !/^(?:0|[1-9]\d*)$/.test(text)) return undefined;
  const port = Number(text);
  return port <= highestPort ? port : undefined;
}

/** Reads a port after an address as ipvsadm and iptables do: a port with leading zeros is still decimal. */
function parsePaddedPort(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) ? parsePort(text.replace(/^0+(?=\d)/, '')) : undefined;
}

/** Reads "80", "1000:2000", ":1023" or "1024:" like iptables; undefined for anything else, such as a name. */
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

export function formatPortRange({ first, last }: PortRange): string {
  return first === last ? String(first) : `${first}:${last}`;
}

/** Ports that Services often use and that every /etc/services names. */
const ports: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ftp: 21,
    ssh: 22,
    telnet: 23,
    smtp: 25,
    domain: 53,
    tftp: 69,
    http: 80,
    kerberos: 88,
    pop3: 110,
    sunrpc: 111,
    ntp: 123,
    imap2: 143,
    snmp: 161,
    bgp: 179,
    ldap: 389,
    https: 443,
    submission: 587,
    ldaps: 636,
    'domain-s': 853,
    imaps: 993,
    pop3s: 995,
    'ms-sql-s': 1433,
    mqtt: 1883,
    nfs: 2049,
    mysql: 3306,
    sip: 5060,
    amqp: 5672,
    postgresql: 5432,
    redis: 6379,
    'http-alt': 8080,
    'secure-mqtt': 8883,
  }),
);

export function portNumber(text: string): number | undefined {
  return parsePort(text) ?? ports.get(text);
}

/** Reads "10.0.0.1:80" or "10.0.0.1:http"; undefined for a host name or an unknown port name. */
export function parseNamedSocket(text: string): SocketAddress | undefined {
  const colon = text.lastIndexOf(':');
  const port = ports.get(text.slice(colon + 1));
  return parseSocketAddress(port === undefined ? text : `${text.slice(0, colon + 1)}${port}`);
}

/** Reads a decimal or hexadecimal number of 32 bits. Leading zeros are refused, so nothing is read as octal. */
export function parseNumber32(text: string): number | undefined {
  if (!/^(?:0x[\da-f]{1,8}|0|[1-9]\d{0,9})$/i.test(text)) return undefined;
  const value = Number(text);
  return value <= 0xffffffff ? value : undefined;
}

/** Reads `VALUE/MASK`; without a mask, all bits count. */
export function readMarkMask(text: string): { readonly value: number; readonly mask: number } | undefined {
  const [first = '', second = '0xffffffff', ...more] = text.split('/');
  const [value, mask] = [parseNumber32(first), parseNumber32(second)];
  return value === undefined || mask === undefined || more.length > 0 ? undefined : { value, mask };
}

/** Formats a mark or mask like kube-proxy, with eight hex digits. */
export function formatMark(value: number): string {
  return `0x${(value >>> 0).toString(16).padStart(8, '0')}`;
}

export type RuleVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' | 'continue' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

export type MarkHolder = 'packet' | 'connection';

/** A change of a mark: mark = (mark & stays) ^ (start & keep) ^ flip. `start` is the value of a mark, or 0. Unsigned, 32 bits. */
export interface MarkChange {
  readonly stays: number;
  readonly start?: { readonly from: MarkHolder; readonly keep: number };
  readonly flip: number;
}

export const allBits = 0xffffffff;

export type PlainAction =
  | RuleVerdict
  | { readonly kind: 'masquerade'; readonly fullyRandom?: boolean }
  /** `with` is the answer in the tool's words; undefined for the default ICMP answer. */
  | { readonly kind: 'reject'; readonly with?: string | undefined }
  | { readonly kind: 'dnat'; readonly target: Target }
  | { readonly kind: 'change-mark'; readonly of: MarkHolder; readonly change: MarkChange };

export type OtherAction =
  | { readonly kind: 'notrack' }
  | { readonly kind: 'snat'; readonly address: Address }
  /** Sends the packet to the node itself: to the input interface's address, or to loopback. */
  | { readonly kind: 'redirect'; readonly port: number | undefined }
  | { readonly kind: 'zone'; readonly zone: number; readonly direction: 'original' | 'reply' | undefined }
  | { readonly kind: 'unknown'; readonly text: string };
