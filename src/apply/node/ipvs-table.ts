import { parseAddress, type Address } from '../../kernel/address.ts';
import { protocols, type Protocol } from '../../kernel/family.ts';
import { realServerKey, virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';

/** The connections that IPVS has to a real server. */
export interface ConnectionCount {
  /** Established ones. */
  readonly active: number;
  /** Those that begin or have just ended, and all of protocols that have no connections. */
  readonly inactive: number;
}

/** The connections of a real server, by the keys of its virtual server and its own; undefined where the kernel lists no such. */
export type Connections = (virtualServer: string, realServer: string) => ConnectionCount | undefined;

/** Names a real server of a virtual server, by their keys. */
export function placeKey(virtualServer: string, realServer: string): string {
  return `${virtualServer} ${realServer}`;
}

/** Reads /proc/net/ip_vs: of each virtual server when it is first asked for, since few of them ever let a real server go at once. */
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

/**
 * Key of a virtual server → the lines of its real servers, in /proc/net/ip_vs:
 *
 *     TCP  0A600001:0050 rr
 *       -> 0A010102:1F90      Masq    1      0          2
 */
function indexReals(text: string): ReadonlyMap<string, string> {
  const heads = [...text.matchAll(/^((?:TCP|UDP|SCTP|FWM) +\S+).*\n?/gm)];
  const reals = new Map<string, string>();
  for (const [i, { 0: head, 1: name = '', index }] of heads.entries()) {
    const server = readServerName(name);
    if (server) reals.set(virtualServerKey(server), text.slice(index + head.length, heads[i + 1]?.index));
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

/** An address and a port of the table. */
interface ListedSocket {
  readonly address: Address;
  readonly port: number;
}

/** "TCP  0A600001:0050"; undefined for what is no virtual server of an address. */
export function readServerName(name: string): (ListedSocket & { readonly protocol: Protocol }) | undefined {
  const [word, socketName = ''] = name.split(/ +/);
  const protocol = protocols.find((each) => each === word);
  const socket = protocol && parseSocket(socketName);
  return socket && { protocol, ...socket };
}

/** "0A600001:0050", "[fd00:0000:…:0001]:0050". */
function parseSocket(text: string): ListedSocket | undefined {
  const colon = text.lastIndexOf(':');
  const [host, port] = [text.slice(0, colon), Number.parseInt(text.slice(colon + 1), 16)];
  const bytes = /^[0-9A-F]{8}$/i.test(host) ? host.match(/../g) : undefined;
  const plain = bytes ? bytes.map((byte) => Number.parseInt(byte, 16)).join('.') : host.slice(1, -1);
  const address = parseAddress(plain);
  return address && { address, port };
}
