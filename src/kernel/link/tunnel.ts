import { parseAddress, type Address } from '../address.ts';

/** How a link carries packets: each in a UDP packet of the network below it. */
export interface Tunnel {
  readonly port: number;
  readonly local?: Address | undefined;
  /** The other end, if there is only one. */
  readonly remote?: Address | undefined;
  /** The link below, if it is bound to one. */
  readonly link?: string | undefined;
}

const overUdp: ReadonlySet<unknown> = new Set(['vxlan', 'geneve']);

/** From what `ip -d link` prints of a link of that kind: `valueOf` finds a value by its name in JSON. */
export function readTunnel(kind: unknown, valueOf: (name: string) => unknown): Tunnel | undefined {
  const port = Number(valueOf('port'));
  if (!overUdp.has(kind) || !Number.isInteger(port) || port < 1 || port > 65535) return undefined;
  const addressAt = (name: string): Address | undefined => {
    const text = valueOf(name) ?? valueOf(`${name}6`);
    return typeof text === 'string' ? parseAddress(text) : undefined;
  };
  const link = valueOf('link');
  return {
    port,
    local: addressAt('local'),
    remote: addressAt('remote'),
    link: typeof link === 'string' ? link : undefined,
  };
}

/** As readTunnel, from the line of such a link: a kind, and words with their values. */
export function readTunnelLine(line: string): Tunnel | undefined {
  const words = line.split(' ');
  const after = (word: string): string | undefined => words[words.indexOf(word) + 1 || words.length];
  return readTunnel(words[0], (name) => after(wordsInText.get(name) ?? name));
}

const wordsInText: ReadonlyMap<string, string> = new Map([
  ['port', 'dstport'],
  ['link', 'dev'],
]);

/** The part of info_data that readTunnel reads. */
export function formatTunnel({ port, local, remote, link }: Tunnel) {
  const ends = [['local', local] as const, ['remote', remote] as const];
  const named = ends.flatMap(([name, end]) => (end ? [[end.family === 'ipv6' ? `${name}6` : name, end.text]] : []));
  return { port, ...(Object.fromEntries(named) as Readonly<Record<string, string>>), link };
}
