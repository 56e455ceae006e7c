import { type Address, families, type Family, parseAddress, protocols } from '../../kernel/address.ts';
import { realServerKey, virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import type { KeepsLine } from './output.ts';
import { readTrackedFlow } from '../../kernel/conntrack.ts';
import {
  deleteArguments,
  forgottenFlows,
  staleFlowFinder,
  type PresentPorts,
  type StaleFlowRules,
} from '../../cluster/stale-flows.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { faultOfFlows, isFlow, readWith } from './tools.ts';

export interface ConnectionCount {
  readonly active: number;
  /** Connections that are opening or have just ended, and all flows of connectionless protocols. */
  readonly inactive: number;
}

/** Counts the connections from a virtual server to a real server, both given by key; undefined if the kernel lists none. */
export type Connections = (virtualServer: string, realServer: string) => ConnectionCount | undefined;

/** The traffic at the time of the reading. Parsed on first use, because most changes need none of it. */
export interface OpenTraffic {
  readonly ipvs: string | undefined;
  readonly connections: Connections;
  readonly sources: () => ReadonlySet<string>;
}

/** Reads /proc/net/ip_vs; undefined if IPVS is not in the kernel. Throws a Failure if the text is cut off. */
export async function readIpvsTable(host: Host): Promise<string | undefined> {
  const path = '/proc/net/ip_vs';
  const text = await host.readFile(path);
  if (text === undefined && (await host.list('/proc/net')).length === 0) {
    throw new Failure('unreadable-node', { problem: 'no-proc-net' });
  }
  const isBegun = text?.startsWith('IP Virtual Server version ') ?? true;
  if (isBegun && (text?.endsWith('\n') ?? true)) return text;
  const fault = { kind: isBegun ? 'no-end' : 'no-begin' } as const;
  throw new Failure('unreadable-node', { problem: 'bad-file', path, fault });
}

/** If IPVS is in the kernel, reads its connections and, with `withSockets`, all sockets, of which there may be many. */
export async function readTraffic(host: Host, withSockets: boolean): Promise<OpenTraffic> {
  const ipvs = await readIpvsTable(host);
  const files = withSockets && ipvs !== undefined ? ['tcp', 'tcp6', 'udp', 'udp6'] : [];
  const sockets = await Promise.all(
    files.map((file) => host.readFile(`/proc/net/${file}`, { keeps: keepsNewSources() })),
  );
  let sources: ReadonlySet<string> | undefined;
  return {
    ipvs,
    connections: readConnections(ipvs ?? ''),
    sources: () => (sources ??= new Set(sockets.flatMap((table) => parseSources(table ?? '')))),
  };
}

export function placeKey(virtualServer: string, realServer: string): string {
  return `${virtualServer} ${realServer}`;
}

/** Reads /proc/net/ip_vs. Parses each virtual server on first use, because few drain real servers at once. */
export function readConnections(text: string): Connections {
  let table: ReadonlyMap<string, string> | undefined;
  const known = new Map<string, ReadonlyMap<string, ConnectionCount>>();
  return (virtualServer, realServer) => {
    table ??= indexReals(text);
    let counts = known.get(virtualServer);
    if (!counts) known.set(virtualServer, (counts = readCounts(table.get(virtualServer) ?? '')));
    return counts.get(realServer);
  };
}

/** Maps the key of a virtual server to the lines of its real servers, such as `-> 0A010102:1F90      Masq    1      0          2`. */
function indexReals(text: string): ReadonlyMap<string, string> {
  const heads = [...text.matchAll(/^(\w+) +(\S+).*\n?/gm)];
  const reals = new Map<string, string>();
  for (const [i, { 0: head, 1: word, 2: name = '', index }] of heads.entries()) {
    const [protocol, socket] = [protocols.find((each) => each === word), parseSocket(name)];
    if (!protocol || !socket) continue;
    reals.set(virtualServerKey({ protocol, ...socket }), text.slice(index + head.length, heads[i + 1]?.index));
  }
  return reals;
}

function readCounts(reals: string): ReadonlyMap<string, ConnectionCount> {
  const lines = reals.matchAll(/^ +-> (\S+) +\S+ +-?\d+ +(\d+) +(\d+)/gm);
  return new Map(
    [...lines].flatMap(([, name = '', active, inactive]) => {
      const socket = parseSocket(name);
      const count = { active: Number(active), inactive: Number(inactive) };
      return socket ? [[realServerKey(socket), count] as const] : [];
    }),
  );
}

/** Reads "0A600001:0050" or "[fd00:0000:…:0001]:0050". */
function parseSocket(text: string): { readonly address: Address; readonly port: number } | undefined {
  const colon = text.lastIndexOf(':');
  const [host, port] = [text.slice(0, colon), Number.parseInt(text.slice(colon + 1), 16)];
  const address = /^[0-9A-F]{8}$/i.test(host) ? parseHexIPv4(host) : parseAddress(host.slice(1, -1));
  return address && { address, port };
}

function keepsNewSources(): KeepsLine {
  const known = new Set<string>();
  return (line) => {
    const source = sourceOfConnection(line);
    return source !== undefined && known.size < known.add(source).size;
  };
}

/** Returns the local addresses of connected sockets in /proc/net/tcp and similar files: `0: 0A00600A:D2F0 0A00600A:0050 01 …`. */
export function parseSources(table: string): readonly string[] {
  const hosts = table.split('\n').flatMap((line) => sourceOfConnection(line) ?? []);
  return [...new Set(hosts)].flatMap((host) => decodeAddress(host)?.text ?? []);
}

function sourceOfConnection(line: string): string | undefined {
  const [, host, state = ''] =
    /^ *\d+: ([\dA-F]{8}|[\dA-F]{32}):[\dA-F]{4} [\dA-F]+:(?!0000 )[\dA-F]{4} ([\dA-F]{2}) /.exec(line) ?? [];
  return ended.has(state) ? undefined : host;
}

/** The states TIME_WAIT and CLOSE. Unconnected UDP sockets are in CLOSE. */
const ended: ReadonlySet<string> = new Set(['06', '07']);

const isLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** Decodes groups of four bytes in host byte order, such as "0A00600A" for 10.96.0.10 on most machines. */
function decodeAddress(hex: string): Address | undefined {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.map((word) => (isLittleEndian ? (word.match(/../g) ?? []).toReversed().join('') : word)).join('');
  if (bytes.length === 8 || /^0{20}FF/i.test(bytes)) return parseHexIPv4(bytes.slice(-8));
  return parseAddress((bytes.match(/.{4}/g) ?? []).join(':'));
}

function parseHexIPv4(hex: string): Address | undefined {
  return parseAddress((hex.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)).join('.'));
}

/** Limit on deletions in one run, because anyone who sends through the node can add flows. */
const mostPairs = 10_000;

/**
 * Deletes the UDP flows that a kube-proxy with these behaviours deletes (forgottenFlows). Does nothing without conntrack. Throws a Failure
 * if flows cannot be listed, or if more than `mostPairs` pairs are stale, after deleting the first ones.
 */
export async function forgetStaleFlows(
  host: Host,
  { ports, gone = [] }: PresentPorts,
  behaviours: Behaviours,
): Promise<void> {
  const rules = { ...forgottenFlows(behaviours), isToNode: () => true };
  for (const family of families) {
    const isLooked = (port: PresentPorts['ports'][number]) => port.family === family && port.protocol === 'UDP';
    const served = { ports: ports.filter(isLooked), gone: gone.filter(isLooked) };
    if (served.ports.length + served.gone.length === 0) continue;
    const pairs = await listStalePairs(host, family, served, rules);
    for (const args of pairs.slice(0, mostPairs)) {
      // Ignore the result, because the flows may have ended. Drop the output, which lists each deleted flow.
      await host.run({ tool: 'conntrack', args, keeps: () => false });
    }
    if (pairs.length <= mostPairs) continue;
    throw new Failure('node-too-large', { problem: 'flows', most: mostPairs, tool: 'conntrack' });
  }
}

/** Returns conntrack's arguments. One call deletes all flows with the same two ends, because each call scans the whole table. */
async function listStalePairs(
  host: Host,
  family: Family,
  served: Required<PresentPorts>,
  rules: StaleFlowRules,
): Promise<readonly (readonly string[])[]> {
  const findStale = staleFlowFinder(served, rules);
  // Skip the many flows to other ports, unless all flows to a former cluster IP must go.
  const isAnyPort = rules.ofGone === 'to-cluster-ip' && served.gone.length > 0;
  const numbers = new Set(
    [...served.ports, ...served.gone].flatMap(({ port, nodePort }) => [`${port}`, `${nodePort}`]),
  );
  const pairs = new Map<string, readonly string[]>();
  let listed = 0;
  const keeps = (line: string): boolean => {
    if (isFlow(line)) listed++;
    const isMeant = isAnyPort || numbers.has(/ dport=(\d+) /.exec(line)?.[1] ?? '');
    const flow = isMeant && pairs.size <= mostPairs && readTrackedFlow(line);
    if (typeof flow !== 'object' || !findStale(flow)) return false;
    const args = deleteArguments(flow);
    pairs.set(args.join(' '), args);
    return false;
  };
  const command = { tool: 'conntrack', args: ['-L', '-f', family, '-p', 'udp'], keeps };
  try {
    await readWith(host, command, (rest, stderr) => (rest === '' ? faultOfFlows(listed, stderr) : { kind: 'no-end' }));
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'tool-missing') throw error;
  }
  return [...pairs.values()];
}
