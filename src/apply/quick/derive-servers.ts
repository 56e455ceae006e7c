import { joinHostPort } from '../../kernel/address.ts';
import { compareRealServers, formatServiceName } from '../../kernel/ipvs/ipvs.ts';
import type { VirtualServerChange } from '../../kernel/ipvs/ipvs-delta.ts';
import { cutIpvsTable, readReals, readServerName, type ListedReal, type ListedServer } from '../node/ipvs-table.ts';

/** Whether real servers of virtual servers that stay are all that changes. */
export function concernsRealServersOnly(changes: readonly VirtualServerChange[]): boolean {
  return changes.every(({ kind }) => {
    switch (kind) {
      case 'add-real-server':
      case 'edit-real-server':
      case 'delete-real-server':
        return true;
      case 'add-service':
      case 'edit-service':
      case 'delete-service':
        return false;
      default:
        return kind satisfies never;
    }
  });
}

/**
 * What `ipvsadm -Sn` would print by now. `printed` is what it printed before a change of real servers alone, and the other
 * two are /proc/net/ip_vs from then and now: the kernel lists there, without a process, all virtual servers with their
 * schedulers and persistence, and of each real server what a change of real servers can change: address, port, forwarding
 * method and weight. What that does not list (flags of schedulers) stays as it was printed.
 *
 * Undefined where anything else differs: ipvsadm must tell.
 */
export function retellServers(printed: string, before: string, now: string): string | undefined {
  const [old, present] = [cutIpvsTable(before), cutIpvsTable(now)];
  // One that lists others, or none at all, tells nothing of these.
  const count = printed.match(/^-A /gm)?.length ?? 0;
  if (old.size !== count || present.size !== count) return undefined;
  let text = printed;
  for (const [name, server] of present) {
    const was = old.get(name);
    if (was?.head !== server.head) return undefined;
    if (isSameButForConnections(was, server)) continue;
    const retold = retellServer(text, name, server);
    if (retold === undefined) return undefined;
    text = retold;
  }
  return text;
}

function isSameButForConnections(a: ListedServer, b: ListedServer): boolean {
  return a.reals === b.reals || withoutConnections(a.reals) === withoutConnections(b.reals);
}

function withoutConnections(reals: string): string {
  return reals.replace(/^( +-> \S+ +\S+ +-?\d+) .*$/gm, '$1');
}

function retellServer(printed: string, name: string, { reals }: ListedServer): string | undefined {
  const server = readServerName(name);
  // As ipvsadm sorts them.
  const listed = readReals(reals).toSorted(compareRealServers);
  if (!server || listed.length !== reals.split('\n').filter((line) => line !== '').length) return undefined;
  const service = formatServiceName(server);
  const start = `\n${printed}`.indexOf(`\n-A ${service} `);
  if (start < 0) return undefined;
  const first = printed.indexOf('\n', start) + 1;
  const own = `-a ${service} `;
  let end = first;
  const lines = new Map<string, string>();
  while (printed.startsWith(own, end)) {
    const next = printed.indexOf('\n', end) + 1;
    if (next === 0) return undefined;
    const line = printed.slice(end, next);
    lines.set(line.split(' ', 5)[4] ?? '', line);
    end = next;
  }
  const retold = listed.map((real) => retellReal(own, real, lines));
  return retold.includes(undefined) ? undefined : `${printed.slice(0, first)}${retold.join('')}${printed.slice(end)}`;
}

/** A tunnel has a type besides, and what the node itself serves is printed in yet another way. */
const forwardingFlags: ReadonlyMap<string, string> = new Map([
  ['Masq', '-m'],
  ['Route', '-g'],
]);

/** The line of a real server, with the options that it has been printed with. */
function retellReal(own: string, real: ListedReal, lines: ReadonlyMap<string, string>): string | undefined {
  const flag = forwardingFlags.get(real.forwarding);
  if (flag === undefined) return undefined;
  const name = joinHostPort(real.address.text, real.port);
  const start = `${own}-r ${name} ${flag} -w ${real.weight}`;
  const was = lines.get(name);
  if (was === undefined) return `${start}\n`;
  const match = /^-a \S+ \S+ -r \S+ -[mgi] -w \d+( .*)?\n$/.exec(was);
  return match ? `${start}${match[1] ?? ''}\n` : undefined;
}
