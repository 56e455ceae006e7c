import { type Address, type Network, type Protocol, protocols } from '../address.ts';
import {
  compareAddressRanges,
  isNetworkRange,
  parseAddressRange,
  singleAddress,
  type AddressRange,
} from '../address-range.ts';
import { compareText } from '../compare.ts';
import type { Origin } from '../place.ts';
import { parsePort } from '../ports-and-marks.ts';

/** "10.96.0.1", "10.96.0.1,tcp:80", "10.0.0.1,tcp:80,10.0.0.0/8" or the port "30080". Any other form is kept in `other`. */
export interface SetEntry {
  readonly address?: Address | undefined;
  readonly network?: Network | undefined;
  readonly protocol?: Protocol | undefined;
  readonly port?: number | undefined;
  readonly source?: AddressRange | undefined;
  readonly other?: string | undefined;
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}

export function formatEntry({ address, network, protocol, port, source, other }: SetEntry): string {
  if (other !== undefined) return other;
  const place = address ?? network;
  if (!place) return String(port);
  if (protocol === undefined) return place.text;
  const base = `${place.text},${protocol.toLowerCase()}:${port}`;
  return source ? `${base},${source.text}` : base;
}

/** Includes protocol numbers, because ipset prints them where /etc/protocols is missing, as in a container. */
const protocolsByName: ReadonlyMap<string, Protocol> = new Map([
  ...protocols.map((name) => [name.toLowerCase(), name] as const),
  ['6', 'TCP'],
  ['17', 'UDP'],
  ['132', 'SCTP'],
]);

export function parseEntry(text: string, type: string): SetEntry {
  // The entries of a set of sets are names, which may look like addresses or ports.
  if (type === 'list:set') return { other: text };
  const comma = text.indexOf(',');
  if (comma < 0) {
    const port = parsePort(text);
    if (port !== undefined) return { port };
    return readFirst(text) ?? { other: text };
  }
  // Use one form for each address and network, because ipset prints a network of one address without its length.
  const ranges = (): readonly string[] => text.split(',').map((part) => rangeText(parseAddressRange(part)) ?? part);
  return readEntrySocket(text, comma) ?? { other: ranges().join(',') };
}

function rangeText(range: AddressRange | undefined): string | undefined {
  return range && (singleAddress(range) ?? range).text;
}

function readEntrySocket(text: string, comma: number): SetEntry | undefined {
  const second = text.indexOf(',', comma + 1);
  const end = second < 0 ? text.length : second;
  const colon = text.indexOf(':', comma + 1);
  if (colon < 0 || colon > end) return undefined;
  const protocol = protocolsByName.get(text.slice(comma + 1, colon));
  const port = parsePort(text.slice(colon + 1, end));
  if (protocol === undefined || port === undefined) return undefined;
  const first = readFirst(text.slice(0, comma));
  if (!first) return undefined;
  if (second < 0) return { ...first, protocol, port };
  const source = parseAddressRange(text.slice(second + 1));
  return source && { ...first, protocol, port, source };
}

function readFirst(text: string): Pick<SetEntry, 'address' | 'network'> | undefined {
  const range = parseAddressRange(text);
  return range && (isNetworkRange(range) ? { network: range } : { address: range });
}

/** Returns the same text for entries that the kernel treats as one. Ignores options. */
export function entryKey(entry: SetEntry): string {
  const address = entry.network && singleAddress(entry.network);
  const from = entry.source && singleAddress(entry.source);
  if (!address && (!from || from === entry.source)) return formatEntry(entry);
  return formatEntry({ ...entry, ...(address ? { address } : {}), source: from ?? entry.source });
}

export function compareEntries(a: SetEntry, b: SetEntry): number {
  return (
    compareRanges(a.address ?? a.network, b.address ?? b.network) ||
    (a.port ?? 0) - (b.port ?? 0) ||
    (a.protocol === b.protocol ? 0 : rankOfProtocol(a.protocol) - rankOfProtocol(b.protocol)) ||
    compareRanges(a.source, b.source) ||
    compareText(a.other ?? '', b.other ?? '')
  );
}

function rankOfProtocol(protocol: Protocol | undefined): number {
  return protocol === undefined ? -1 : protocols.indexOf(protocol);
}

function compareRanges(a: AddressRange | undefined, b: AddressRange | undefined): number {
  if (a === b) return 0;
  if (!a) return 1;
  return b ? compareAddressRanges(a, b) : -1;
}

/** Reports whether `text` is a complete entry for a set of this type. The type names the parts: "hash:ip,port,net". */
export function isEntryOf(type: string, text: string): boolean {
  const [storage, kinds = ''] = type.split(':');
  const parts = text.split(',');
  const forms = kinds.split(',');
  const isPart = (part: string, kind: string | undefined): boolean => {
    if (kind === 'ip' || kind === 'net') return parseAddressRange(part) !== undefined;
    if (kind !== 'port') return part !== '';
    return storage === 'bitmap' ? parsePort(part) !== undefined : /^[\w-]+:[\w/-]+$/.test(part);
  };
  return parts.length === forms.length && parts.every((part, i) => isPart(part, forms[i]));
}
