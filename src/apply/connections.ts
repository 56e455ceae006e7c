import { parseAddress } from '../kernel/address.ts';
import type { Address } from '../kernel/address.ts';
import { protocols } from '../kernel/family.ts';
import { realServerKey, virtualServerKey } from '../kernel/ipvs-delta.ts';

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

/**
 * Reads /proc/net/ip_vs, which lists what `ipvsadm -Ln` does without a process of its own:
 *
 *     TCP  0A600001:0050 rr
 *       -> 0A010102:1F90      Masq    1      0          2
 *
 * Of each virtual server when it is first asked for: a node may have ten thousands of real servers, of which few ever go at once.
 */
export function readConnections(text: string): Connections {
  let sections: ReadonlyMap<string, string> | undefined;
  const known = new Map<string, ReadonlyMap<string, ConnectionCount>>();
  return (virtualServer, realServer) => {
    sections ??= cutSections(text);
    let counts = known.get(virtualServer);
    if (!counts) known.set(virtualServer, (counts = readCounts(sections.get(virtualServer) ?? '')));
    return counts.get(realServer);
  };
}

/** Key of a virtual server → the lines of its real servers. Those of a firewall mark belong to none. */
function cutSections(text: string): ReadonlyMap<string, string> {
  const heads = [...text.matchAll(/^(\w+) +(\S+)/gm)];
  const sections = new Map<string, string>();
  for (const [i, { 1: word, 2: name = '', index }] of heads.entries()) {
    const protocol = protocols.find((each) => each === word);
    const socket = protocol && parseSocket(name);
    if (!socket) continue;
    sections.set(virtualServerKey({ protocol, ...socket }), text.slice(index, heads[i + 1]?.index));
  }
  return sections;
}

function readCounts(reals: string): ReadonlyMap<string, ConnectionCount> {
  const counts = new Map<string, ConnectionCount>();
  for (const [, name = '', active, inactive] of reals.matchAll(/^ +-> (\S+) +\S+ +\S+ +(\d+) +(\d+)/gm)) {
    const socket = parseSocket(name);
    if (socket) counts.set(realServerKey(socket), { active: Number(active), inactive: Number(inactive) });
  }
  return counts;
}

/** "0A600001:0050", "[fd00:0000:…:0001]:0050". */
function parseSocket(text: string): { readonly address: Address; readonly port: number } | undefined {
  const colon = text.lastIndexOf(':');
  const [host, port] = [text.slice(0, colon), Number.parseInt(text.slice(colon + 1), 16)];
  const bytes = /^[0-9A-F]{8}$/i.test(host) ? host.match(/../g) : undefined;
  const plain = bytes ? bytes.map((byte) => Number.parseInt(byte, 16)).join('.') : host.slice(1, -1);
  const address = parseAddress(plain);
  return address && { address, port };
}
