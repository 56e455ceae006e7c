import { parseAddress, type Address } from '../address.ts';

/** A protocol as /etc/protocols names it; IP in IP is `ipencap`. */
export type CarrierProtocol = 'udp' | 'ipencap' | 'gre';

/** How a link wraps packets. Each packet travels inside a packet of the underlying network. */
export interface Tunnel {
  readonly protocol: CarrierProtocol;
  readonly port?: number | undefined;
  readonly local?: Address | undefined;
  /** The other endpoint of the tunnel, if there is only one. */
  readonly remote?: Address | undefined;
  /** Whether the tunnel sends to the next hop of a packet's route if `remote` is not set (ip_tunnel_xmit). */
  readonly isByRoute: boolean;
  /** The link that carries the wrapped packets, if the tunnel is bound to one. */
  readonly link?: string | undefined;
}

const carriers: ReadonlyMap<unknown, Pick<Tunnel, 'protocol' | 'isByRoute'>> = new Map([
  ['vxlan', { protocol: 'udp', isByRoute: false }],
  ['geneve', { protocol: 'udp', isByRoute: false }],
  ['ipip', { protocol: 'ipencap', isByRoute: true }],
  ['gre', { protocol: 'gre', isByRoute: true }],
  ['gretap', { protocol: 'gre', isByRoute: false }],
]);

/** The names and the number of each protocol. The node's /etc/protocols decides which of them a tool prints. */
export const carrierNames: { readonly [P in Exclude<CarrierProtocol, 'udp'>]: readonly string[] } = {
  ipencap: ['ipencap', 'ipv4', 'ipip', '4'],
  gre: ['gre', '47'],
};

/** Reads a tunnel from `ip -d link`. `valueOf` returns a value by its name in ip's JSON. Undefined for a kind that is no tunnel. */
export function readTunnel(kind: unknown, valueOf: (name: string) => unknown): Tunnel | undefined {
  const carrier = carriers.get(kind);
  const port = carrier?.protocol === 'udp' ? Number(valueOf('port')) : undefined;
  const isShown = port === undefined || (Number.isInteger(port) && port > 0 && port <= 65535);
  if (!carrier || !isShown) return undefined;
  const addressAt = (name: string): Address | undefined => {
    const text = valueOf(name) ?? valueOf(`${name}6`);
    return typeof text === 'string' ? parseAddress(text) : undefined;
  };
  const link = valueOf('link');
  return {
    ...carrier,
    port,
    local: addressAt('local'),
    remote: addressAt('remote'),
    link: typeof link === 'string' ? link : undefined,
  };
}

export function readTunnelLine(line: string): Tunnel | undefined {
  const words = line.split(' ');
  const after = (word: string): string | undefined => words[words.indexOf(word) + 1 || words.length];
  return readTunnel(words[0], (name) => after(wordsInText.get(name) ?? name));
}

const wordsInText: ReadonlyMap<string, string> = new Map([
  ['port', 'dstport'],
  ['link', 'dev'],
]);

export function formatTunnel({ port, local, remote, link }: Tunnel) {
  const ends = [['local', local] as const, ['remote', remote] as const];
  const named = ends.flatMap(([name, end]) => (end ? [[end.family === 'ipv6' ? `${name}6` : name, end.text]] : []));
  return { port, ...(Object.fromEntries(named) as Readonly<Record<string, string>>), link };
}
