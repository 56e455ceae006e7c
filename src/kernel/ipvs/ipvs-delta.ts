import type { Address } from '../address.ts';
import { itemOf, pairUp, type Pair } from '../compare.ts';
import {
  formatRealServer,
  formatRealServerName,
  formatServiceName,
  formatServiceOptions,
  formatVirtualServer,
  type IpvsTimeouts,
  type RealServer,
  type VirtualServer,
} from './ipvs.ts';

export type VirtualServerChange =
  /** Creates or deletes a virtual server, or changes its scheduler, persistence or flags. Real servers change separately. */
  | ({ readonly kind: 'service' } & Pair<VirtualServer>)
  | ({ readonly kind: 'real-server'; readonly service: VirtualServer } & Pair<RealServer>);

/** Finds the changes between two lists of virtual servers. An unchanged server is not touched, so that its connections stay. */
export function diffVirtualServers(
  from: readonly VirtualServer[],
  to: readonly VirtualServer[],
): readonly VirtualServerChange[] {
  return pairUp(from, to, virtualServerKey).flatMap((pair): readonly VirtualServerChange[] => {
    const { from: old, to: service } = pair;
    if (!old || !service) return [{ kind: 'service', ...pair }];
    const changes = diffRealServers(old, service);
    return formatServiceOptions(old) === formatServiceOptions(service)
      ? changes
      : [{ kind: 'service', ...pair }, ...changes];
  });
}

export function virtualServerOf(change: VirtualServerChange): VirtualServer {
  return change.kind === 'service' ? itemOf(change) : change.service;
}

/**
 * Returns a function that finds a packet's virtual server: the one for the packet's port, else one with port 0, which accepts all ports.
 */
export function serverFinder(servers: readonly VirtualServer[]) {
  const byKey = new Map(servers.map((server) => [virtualServerKey(server), server]));
  return (protocol: string, address: Address, port: number): VirtualServer | undefined => {
    const of = (each: number) => byKey.get(`${protocol.toUpperCase()} ${address.text} ${each}`);
    return of(port) ?? of(0);
  };
}

export function virtualServerKey(service: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${service.protocol} ${service.address.text} ${service.port}`;
}

export function realServerKey(server: Pick<RealServer, 'address' | 'port'>): string {
  return `${server.address.text} ${server.port}`;
}

function diffRealServers(from: VirtualServer, service: VirtualServer): readonly VirtualServerChange[] {
  if (from.realServers === service.realServers) return [];
  return pairUp(from.realServers, service.realServers, realServerKey)
    .filter(({ from: old, to: server }) => !old || !server || formatRealServer(old) !== formatRealServer(server))
    .map((pair) => ({ kind: 'real-server', service, ...pair }));
}

/** Formats the input of `ipvsadm -R`; '' for no changes. */
export function formatVirtualServersDelta(changes: readonly VirtualServerChange[]): string {
  return changes.map(formatServerChange).join('');
}

function formatServerChange(change: VirtualServerChange): string {
  const name = formatServiceName(virtualServerOf(change));
  if (change.kind === 'service') {
    const { from, to } = change;
    if (!from) return formatVirtualServer(to);
    return to ? `-E ${name}${formatServiceOptions(to)}\n` : `-D ${name}\n`;
  }
  const { from, to } = change;
  return to ? `-${from ? 'e' : 'a'} ${name}${formatRealServer(to)}\n` : `-d ${name} ${formatRealServerName(from)}\n`;
}

export interface TimeoutsChange {
  readonly from: IpvsTimeouts;
  readonly to: IpvsTimeouts;
}

const noTimeouts: IpvsTimeouts = { tcp: 0, tcpFin: 0, udp: 0 };

/** Returns undefined if nothing changes. A 0 in `to` leaves the timeout unchanged. */
export function diffTimeouts(
  from: IpvsTimeouts = noTimeouts,
  to: IpvsTimeouts = noTimeouts,
): TimeoutsChange | undefined {
  const isKept = (name: keyof IpvsTimeouts): boolean => to[name] === 0 || to[name] === from[name];
  return isKept('tcp') && isKept('tcpFin') && isKept('udp') ? undefined : { from, to };
}
