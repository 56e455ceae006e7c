import { parseIpvsadm, type VirtualServer } from '../../src/kernel/ipvs/ipvs.ts';

const hex = (number: number, digits: number) => number.toString(16).toUpperCase().padStart(digits, '0');

/** An address and a port as /proc/net/ip_vs has them. */
function socket({ address, port }: Pick<VirtualServer, 'address' | 'port'>): string {
  if (address.family === 'ipv4') {
    return `${address.text
      .split('.')
      .map((byte) => hex(Number(byte), 2))
      .join('')}:${hex(port, 4)}`;
  }
  const [start = '', end = ''] = address.text
    .split('::')
    .map((half) => half.split(':').filter(Boolean))
    .map((half) => half.join(':'));
  const [first, last] = [start, end].map((half) => half.split(':').filter(Boolean));
  const zeros = Array.from({ length: 8 - (first?.length ?? 0) - (last?.length ?? 0) }, () => '0');
  const groups = [...(first ?? []), ...zeros, ...(last ?? [])].map((group) => group.padStart(4, '0'));
  return `[${groups.join(':')}]:${hex(port, 4)}`;
}

const methods = { masquerade: 'Masq', direct: 'Route', tunnel: 'Tunnel' } as const;

/** The connections of a real server, by the names that the file has for it and its virtual server. */
export type CountConnections = (
  virtualServer: string,
  realServer: string,
) => readonly [active: string, inactive: string];

/** What the kernel's file says of virtual servers that ipvsadm prints so; each real server has so many connections. */
export function tableOf(printed: string, connections: number | CountConnections = 0): string {
  const count: CountConnections =
    typeof connections === 'number' ? () => [`${connections}`, `${connections * 2}`] : connections;
  const lines = parseIpvsadm(printed).virtualServers.flatMap((server) => {
    const name = `${server.protocol}  ${socket(server)}`;
    return [
      `${name} ${server.scheduler} ${server.persistentSeconds ? `persistent ${server.persistentSeconds * 250} FFFFFFFF` : ''}`,
      ...server.realServers.map((real) => {
        const [active, inactive] = count(name, socket(real));
        return `  -> ${socket(real)}      ${methods[real.forwarding].padEnd(7)} ${`${real.weight}`.padEnd(6)} ${active.padEnd(10)} ${inactive.padEnd(10)}`;
      }),
    ];
  });
  return `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
${lines.map((line) => `${line}\n`).join('')}`;
}

/** The connections that such a file lists; none of what it does not list. */
export function connectionsIn(table: string): CountConnections {
  const counts = new Map<string, readonly [string, string]>();
  let name = '';
  for (const line of table.split('\n')) {
    const [, real, active = '0', inactive = '0'] = /^ +-> (\S+) +\S+ +\d+ +(\d+) +(\d+)/.exec(line) ?? [];
    if (real !== undefined) counts.set(`${name} ${real}`, [active, inactive]);
    else name = /^\S+ +\S+/.exec(line)?.[0] ?? '';
  }
  return (virtualServer, realServer) => counts.get(`${virtualServer} ${realServer}`) ?? ['0', '0'];
}
