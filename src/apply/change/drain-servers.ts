import type { Protocol } from '../../kernel/address.ts';
import {
  compareRealServers,
  compareVirtualServers,
  type RealServer,
  type VirtualServer,
} from '../../kernel/ipvs/ipvs.ts';
import { placeKey, type ConnectionCount, type Connections } from '../node/open-traffic.ts';
import { realServerKey, virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { DrainingServer } from '../state/record.ts';

export interface DrainPolicy {
  /** Milliseconds until a real server is removed even with connections; undefined waits until they end. */
  readonly timeout: number | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Milliseconds since the node booted. */
  readonly uptime: number;
  /** Whether iptables rules replace IPVS. Virtual servers then stay only while they have connections. */
  readonly leavesIpvs: boolean;
}

/**
 * Adds unwanted TCP real servers to the wanted state with weight 0, so that they keep their connections and get no new ones. Removes a real
 * server once it has weight 0 and no connections, or when its time is over. UDP and SCTP real servers are removed at once
 * (IsRsGracefulTerminationNeeded in ipvs/util/ipvs.go), and so are all real servers of a removed virtual server.
 *
 * When iptables rules replace IPVS, every virtual server stays while it has connections, because nothing else forwards them. New
 * connections follow the rules, which see a packet first.
 */
export function planDrain(
  current: readonly VirtualServer[],
  wanted: readonly VirtualServer[],
  connections: Connections,
  known: readonly DrainingServer[],
  policy: DrainPolicy,
) {
  const begun = new Map(known.map((server) => [placeKey(server.virtualServer, server.realServer), server]));
  const draining: DrainingServer[] = [];
  /** `kept`: open connections to draining real servers. `cut`: open connections that end when their server is removed. */
  const open = { kept: 0, cut: 0 };
  const countOf = (server: VirtualServer, real: RealServer) =>
    connections(virtualServerKey(server), realServerKey(real));
  const cut = (server: VirtualServer, real: RealServer): undefined => {
    open.cut += countOpen(server.protocol, countOf(server, real));
  };

  function drain(server: VirtualServer, real: RealServer, closed: boolean): RealServer | undefined {
    const [virtualServer, realServer] = [virtualServerKey(server), realServerKey(real)];
    const { since = policy.now, sinceBoot = policy.uptime } = begun.get(placeKey(virtualServer, realServer)) ?? {};
    const count = countOf(server, real);
    if (closed && count?.active === 0 && count.inactive === 0) return undefined;
    if (policy.timeout !== undefined && policy.uptime - sinceBoot >= policy.timeout) return cut(server, real);
    open.kept += countOpen(server.protocol, count);
    draining.push({ virtualServer, realServer, since, sinceBoot });
    return real.weight === 0 ? real : { ...real, weight: 0 };
  }

  const present = new Map(current.map((server) => [virtualServerKey(server), server]));
  const virtualServers = wanted.map((server): VirtualServer => {
    const key = virtualServerKey(server);
    const old = present.get(key);
    present.delete(key);
    if (!old) return server;
    const staying = new Set(server.realServers.map(realServerKey));
    const gone = old.realServers.filter((real) => !staying.has(realServerKey(real)));
    if (server.protocol !== 'TCP') {
      for (const real of gone) cut(server, real);
      return server;
    }
    const leaving = gone.flatMap((real) => drain(server, real, real.weight === 0) ?? []);
    if (leaving.length === 0) return server;
    return { ...server, realServers: [...server.realServers, ...leaving].sort(compareRealServers) };
  });
  for (const server of present.values()) {
    if (!policy.leavesIpvs) for (const real of server.realServers) cut(server, real);
    else {
      // /proc/net/ip_vs lists every virtual server, so a real server without a count has no connections.
      const busy = server.realServers.filter((real) => countOf(server, real));
      const realServers = busy.flatMap((real) => drain(server, real, true) ?? []);
      if (realServers.length > 0) virtualServers.push({ ...server, realServers });
    }
  }
  if (policy.leavesIpvs) virtualServers.sort(compareVirtualServers);
  return { virtualServers, draining, ...open };
}

/**
 * Counts the connections whose loss a client would notice. For UDP these include inactive ones, because IPVS counts every UDP flow as
 * inactive until the flow expires.
 */
function countOpen(protocol: Protocol, count: ConnectionCount | undefined): number {
  return (count?.active ?? 0) + (protocol === 'UDP' ? (count?.inactive ?? 0) : 0);
}
