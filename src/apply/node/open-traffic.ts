import { parseAddress } from '../../kernel/address.ts';
import { readConnections, type Connections } from './ipvs-table.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { faultOfIpvsTable } from './cut-off-output.ts';

/** What goes through a node as it was looked at. Parsed when it is first asked for, which most changes of a node never do. */
export interface OpenTraffic {
  /** Of IPVS. */
  readonly connections: Connections;
  /** The addresses that sockets in this network send from. */
  readonly sources: () => ReadonlySet<string>;
}

/** The files it is read from; an IPVS that is not in the kernel has none. */
export interface TrafficListing {
  readonly ipvs: string | undefined;
  readonly sockets: readonly (string | undefined)[];
}

/** What IPVS lists of itself without a process; undefined where it is not in the kernel. */
export async function readIpvsTable(host: Host): Promise<string | undefined> {
  const path = '/proc/net/ip_vs';
  const text = await host.readFile(path);
  const fault = text === undefined ? undefined : faultOfIpvsTable(text);
  if (fault === undefined) return text;
  throw new Failure('unreadable-node', `${path} is not whole: ${fault}`, `look at it by hand: cat ${path}`);
}

/** Reads what IPVS lists; and where `withSockets`, all sockets, which may be many. */
export async function listTraffic(host: Host, withSockets: boolean): Promise<TrafficListing> {
  const ipvs = await readIpvsTable(host);
  const files = withSockets && ipvs !== undefined ? ['tcp', 'tcp6', 'udp', 'udp6'] : [];
  return { ipvs, sockets: await Promise.all(files.map((file) => host.readFile(`/proc/net/${file}`))) };
}

export function trafficIn({ ipvs, sockets }: TrafficListing): OpenTraffic {
  let sources: ReadonlySet<string> | undefined;
  return {
    connections: readConnections(ipvs ?? ''),
    sources: () => (sources ??= new Set(sockets.flatMap((table) => parseSources(table ?? '')))),
  };
}

/**
 * The addresses that connected sockets have as their own, in what /proc/net/tcp and its like list. Not those that listen,
 * nor those whose end only the kernel remembers:
 *
 *     0: 0A00600A:D2F0 0A00600A:0050 01 …
 */
export function parseSources(table: string): readonly string[] {
  const lines = table.matchAll(
    /^ *\d+: ([\dA-F]{8}|[\dA-F]{32}):[\dA-F]{4} [\dA-F]+:(?!0000 )[\dA-F]{4} ([\dA-F]{2}) /gm,
  );
  const hosts = [...lines].flatMap(([, host = '', state = '']) => (ended.has(state) ? [] : [host]));
  return [...new Set(hosts)].flatMap((host) => decodeAddress(host)?.text ?? []);
}

/** TIME_WAIT, and of UDP every socket that is not connected. */
const ended: ReadonlySet<string> = new Set(['06', '07']);

const isLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** Four bytes at a time, each four as a number of this machine's: "0A00600A" is 10.96.0.10 on most. */
function decodeAddress(hex: string): ReturnType<typeof parseAddress> {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) => {
    const four = (word.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16));
    return isLittleEndian ? four.toReversed() : four;
  });
  const isMapped = bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255;
  if (bytes.length === 4 || isMapped) return parseAddress(bytes.slice(-4).join('.'));
  const groups = Array.from({ length: 8 }, (_, i) =>
    ((bytes[2 * i] ?? 0) * 256 + (bytes[2 * i + 1] ?? 0)).toString(16),
  );
  return parseAddress(groups.join(':'));
}
