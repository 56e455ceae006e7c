import { parseAddress } from '../kernel/address.ts';
import type { Address } from '../kernel/address.ts';
import { realServerKey, virtualServerKey } from '../kernel/ipvs-delta.ts';

/** The connections that IPVS has to a real server. */
export interface ConnectionCount {
  /** Established ones. */
  readonly active: number;
  /** Those that begin or have just ended, and all of protocols that have no connections. */
  readonly inactive: number;
}

/** Key of a virtual server and its real server → its connections. */
export type Connections = ReadonlyMap<string, ConnectionCount>;

/** Names a real server of a virtual server, by their keys. */
export function placeKey(virtualServer: string, realServer: string): string {
  return `${virtualServer} ${realServer}`;
}

/**
 * Reads /proc/net/ip_vs, which lists what `ipvsadm -Ln` does without a process of its own:
 *
 *     TCP  0A600001:0050 rr
 *       -> 0A010102:1F90      Masq    1      0          2
 */
export function parseConnections(text: string): Connections {
  const connections = new Map<string, ConnectionCount>();
  let virtualServer: string | undefined;
  for (const line of text.split('\n')) {
    const words = line.trim().split(/\s+/);
    const [first, second = ''] = words;
    if (first === 'TCP' || first === 'UDP' || first === 'SCTP') {
      const socket = parseSocket(second);
      virtualServer = socket && virtualServerKey({ protocol: first, ...socket });
    } else if (first === '->' && virtualServer !== undefined) {
      const socket = parseSocket(second);
      const [active, inactive] = [Number(words[4]), Number(words[5])];
      if (socket) connections.set(placeKey(virtualServer, realServerKey(socket)), { active, inactive });
    }
  }
  return connections;
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
