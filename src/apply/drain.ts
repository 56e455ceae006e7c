import { compareRealServers, type RealServer, type VirtualServer } from '../kernel/ipvs.ts';
import { placeKey, type Connections } from './connections.ts';
import { realServerKey, virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { DrainingServer } from './record.ts';

/** How real servers that go are let go. */
export interface DrainPolicy {
  /** Milliseconds after which a real server goes even with connections; undefined waits for their end. */
  readonly timeout: number | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Milliseconds since the node booted. */
  readonly uptime: number;
}

/** The virtual servers to have for now, and which of their real servers are on their way out. */
export interface DrainPlan {
  readonly virtualServers: readonly VirtualServer[];
  readonly draining: readonly DrainingServer[];
}

/**
 * What is wanted, and besides it, at weight 0, the TCP real servers that are there and not wanted any more: they take
 * no new connections and keep those they have. One goes for good when it stands at weight 0 already and has no
 * connection left, or has had its time. UDP and SCTP real servers go at once (IsRsGracefulTerminationNeeded in
 * ipvs/util/ipvs.go), and so do all of a virtual server that goes itself.
 */
export function planDrain(
  current: readonly VirtualServer[],
  wanted: readonly VirtualServer[],
  connections: Connections,
  known: readonly DrainingServer[],
  policy: DrainPolicy,
): DrainPlan {
  const present = new Map(current.map((server) => [virtualServerKey(server), server]));
  const begun = new Map(known.map((server) => [placeKey(server.virtualServer, server.realServer), server]));
  const draining: DrainingServer[] = [];
  const virtualServers = wanted.map((server): VirtualServer => {
    const key = virtualServerKey(server);
    const old = present.get(key);
    if (server.protocol !== 'TCP' || !old || haveSamePlaces(old, server)) return server;
    const staying = new Set(server.realServers.map(realServerKey));
    const leaving: RealServer[] = [];
    for (const real of old.realServers) {
      const realKey = realServerKey(real);
      if (staying.has(realKey)) continue;
      const place = placeKey(key, realKey);
      const { since = policy.now, sinceBoot = Math.max(0, policy.uptime - (policy.now - since)) } =
        begun.get(place) ?? {};
      const ended = real.weight === 0 && connections.get(place) === 0;
      const expired = policy.timeout !== undefined && policy.uptime - sinceBoot >= policy.timeout;
      if (ended || expired) continue;
      leaving.push({ ...real, weight: 0 });
      draining.push({ virtualServer: key, realServer: realKey, since, sinceBoot });
    }
    if (leaving.length === 0) return server;
    return { ...server, realServers: [...server.realServers, ...leaving].sort(compareRealServers) };
  });
  return { virtualServers, draining };
}

/** Nearly all virtual servers keep their real servers, which both lists have in the same order. */
function haveSamePlaces(a: VirtualServer, b: VirtualServer): boolean {
  return (
    a.realServers.length === b.realServers.length &&
    a.realServers.every((real, i) => {
      const other = b.realServers[i];
      return other !== undefined && real.address === other.address && real.port === other.port;
    })
  );
}
