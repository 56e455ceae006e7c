import { parseAddress, type Address } from '../../kernel/address.ts';
import { protocols, type Protocol } from '../../kernel/family.ts';

/**
 * A virtual server in /proc/net/ip_vs, which lists most of what `ipvsadm -Ln` does without a process of its own:
 *
 *     TCP  0A600001:0050 rr
 *       -> 0A010102:1F90      Masq    1      0          2
 */
export interface ListedServer {
  /** Its own line. */
  readonly head: string;
  /** The lines of its real servers, to be read where they matter: there may be ten thousands on a node. */
  readonly reals: string;
}

/** "TCP  0A600001:0050" → the virtual server; "FWM  00000001" → that of a firewall mark. */
export function cutIpvsTable(text: string): ReadonlyMap<string, ListedServer> {
  const heads = [...text.matchAll(/^((?:TCP|UDP|SCTP|FWM) +\S+).*\n?/gm)];
  const servers = new Map<string, ListedServer>();
  for (const [i, { 0: head, 1: name = '', index }] of heads.entries()) {
    servers.set(name, { head, reals: text.slice(index + head.length, heads[i + 1]?.index) });
  }
  return servers;
}

/** An address and a port of the table. */
export interface ListedSocket {
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

/** A real server of the table. */
export interface ListedReal extends ListedSocket {
  /** "Masq", "Route", "Tunnel", "Local" or "Bypass". */
  readonly forwarding: string;
  readonly weight: number;
  readonly active: number;
  readonly inactive: number;
}

/** In the order of the table. */
export function readReals(reals: string): readonly ListedReal[] {
  const lines = reals.matchAll(/^ +-> (\S+) +(\S+) +(-?\d+) +(\d+) +(\d+)/gm);
  return [...lines].flatMap(([, name = '', forwarding = '', weight, active, inactive]) => {
    const socket = parseSocket(name);
    const numbers = { weight: Number(weight), active: Number(active), inactive: Number(inactive) };
    return socket ? [{ ...socket, forwarding, ...numbers }] : [];
  });
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
