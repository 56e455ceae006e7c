import { realServerKey, virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import { cutIpvsTable, readReals, readServerName } from './ipvs-table.ts';

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

/** Key of a virtual server → the lines of its real servers. */
function indexReals(text: string): ReadonlyMap<string, string> {
  const reals = new Map<string, string>();
  for (const [name, listed] of cutIpvsTable(text)) {
    const server = readServerName(name);
    if (server) reals.set(virtualServerKey(server), listed.reals);
  }
  return reals;
}

function readCounts(reals: string): ReadonlyMap<string, ConnectionCount> {
  return new Map(
    readReals(reals).map(({ active, inactive, ...socket }) => [realServerKey(socket), { active, inactive }]),
  );
}
