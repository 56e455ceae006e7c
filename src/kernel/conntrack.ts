import { type Address, type Family, parseAddress } from './address.ts';
import { parsePort, type SocketAddress } from './ports-and-marks.ts';
import { readLines } from './lines.ts';

/** A connection in the kernel's conntrack table. Its packets keep going to the receiver of its first packet, whatever the rules say now. */
export interface TrackedFlow {
  readonly family: Family;
  readonly protocol: string;
  readonly source: SocketAddress;
  readonly destination: SocketAddress;
  readonly answers: SocketAddress;
  readonly isReplied: boolean;
  /** Flows in different zones are different flows, even if they have the same addresses. */
  readonly zone: number;
}

type FlowDirection = Map<string, string>;

const endWords: ReadonlySet<string> = new Set(['src', 'dst', 'sport', 'dport']);

/** Matches lines of `conntrack -L` and -S that are not flows: one for each processor, and the total. */
const others = /^(?:cpu=\d|conntrack v|entries +\d)/;

/** Reads /proc/net/nf_conntrack, and `conntrack -L` in any form but XML. Skips flows without ports. */
export function parseConntrack(text: string) {
  const flows: TrackedFlow[] = [];
  const addresses: Addresses = new Map();
  const unread = readLines(text, [], (line) => {
    if (others.test(line)) return undefined;
    const read = readTrackedFlow(line, addresses);
    if (read === undefined) return 'other-line';
    if (typeof read === 'object') flows.push(read);
    return undefined;
  });
  return { flows, unread };
}

/** Addresses by their text. Keeps each address in memory only once, because a million flows share few addresses. */
type Addresses = Map<string, Address | undefined>;

/** Returns 'other' for a flow without ports; undefined for a line that is not a whole flow. */
export function readTrackedFlow(line: string, addresses: Addresses = new Map()): TrackedFlow | 'other' | undefined {
  const words = line.split(/[ \t]+/);
  const protocol = words[/^ipv[46]$/.test(words[0] ?? '') ? 2 : 0] ?? '';
  const directions: [FlowDirection, FlowDirection] = [new Map(), new Map()];
  for (const [i, word] of words.entries()) {
    const equals = word.indexOf('=');
    const name = word.slice(0, equals);
    if (!endWords.has(name)) continue;
    const direction = directions[0].has(name) ? directions[1] : directions[0];
    // A complete line continues after its addresses and ports, so an address or port that ends the line may be cut off.
    if (direction.has(name) || i === words.length - 1) return undefined;
    direction.set(name, word.slice(equals + 1));
  }
  const [original, reply] = directions;
  if (!reply.has('src') || !reply.has('dst')) return undefined;
  if (!original.has('sport')) return 'other';
  const end = (direction: FlowDirection, side: 's' | 'd') => flowEnd(direction, side, addresses);
  const [source, destination, answers] = [end(original, 's'), end(original, 'd'), end(reply, 's')];
  if (!source || !destination || !answers || !end(reply, 'd')) return undefined;
  const isReplied = !words.includes('[UNREPLIED]');
  const [, zone = '0'] = /[ \t]zone(?:-orig|-reply)?=(\d{1,5})(?![^ \t])/.exec(line) ?? [];
  return { family: destination.address.family, protocol, source, destination, answers, isReplied, zone: Number(zone) };
}

function flowEnd(direction: FlowDirection, side: 's' | 'd', addresses: Addresses): SocketAddress | undefined {
  const text = direction.get(side === 's' ? 'src' : 'dst') ?? '';
  if (!addresses.has(text)) addresses.set(text, parseAddress(text));
  const address = addresses.get(text);
  const port = parsePort(direction.get(`${side}port`) ?? '');
  return address && port !== undefined ? { address, port } : undefined;
}
