import {
  formatRealServer,
  formatRealServerName,
  formatServiceName,
  formatServiceOptions,
  type RealServer,
  type VirtualServer,
  type IpvsTimeouts,
} from './ipvs.ts';
import { partition, type Split } from '../split-changes.ts';

/** One step from some IPVS services to others. `service` is the service as it is to be. */
export type VirtualServerChange =
  | { readonly kind: 'add-service'; readonly service: VirtualServer }
  /** Another scheduler, persistence or flags; its real servers have changes of their own. */
  | { readonly kind: 'edit-service'; readonly from: VirtualServer; readonly service: VirtualServer }
  | { readonly kind: 'delete-service'; readonly service: VirtualServer }
  | { readonly kind: 'add-real-server'; readonly service: VirtualServer; readonly server: RealServer }
  | {
      readonly kind: 'edit-real-server';
      readonly service: VirtualServer;
      readonly from: RealServer;
      readonly server: RealServer;
    }
  | { readonly kind: 'delete-real-server'; readonly service: VirtualServer; readonly server: RealServer };

/** How to get from some IPVS services to others. What is on both sides is left alone, so that its connections stay. */
export function diffVirtualServers(
  from: readonly VirtualServer[],
  to: readonly VirtualServer[],
): readonly VirtualServerChange[] {
  const before = new Map(from.map((service) => [virtualServerKey(service), service]));
  const changes: VirtualServerChange[] = [];
  for (const service of to) {
    const key = virtualServerKey(service);
    const old = before.get(key);
    before.delete(key);
    if (!old) {
      changes.push({ kind: 'add-service', service });
      continue;
    }
    if (formatServiceOptions(old) !== formatServiceOptions(service)) {
      changes.push({ kind: 'edit-service', from: old, service });
    }
    pushRealServerChanges(changes, old, service);
  }
  for (const service of before.values()) changes.push({ kind: 'delete-service', service });
  return changes;
}

/** What tells one service of a state from the others: "TCP 10.0.0.1 80". */
export function virtualServerKey(service: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${service.protocol} ${service.address.text} ${service.port}`;
}

/** What tells one real server of a service from the others. */
export function realServerKey(server: Pick<RealServer, 'address' | 'port'>): string {
  return `${server.address.text} ${server.port}`;
}

function pushRealServerChanges(changes: VirtualServerChange[], from: VirtualServer, service: VirtualServer): void {
  if (from.realServers === service.realServers) return;
  const before = new Map(from.realServers.map((server) => [realServerKey(server), server]));
  for (const server of service.realServers) {
    const key = realServerKey(server);
    const old = before.get(key);
    before.delete(key);
    if (!old) changes.push({ kind: 'add-real-server', service, server });
    else if (formatRealServer(old) !== formatRealServer(server)) {
      changes.push({ kind: 'edit-real-server', service, from: old, server });
    }
  }
  for (const server of before.values()) changes.push({ kind: 'delete-real-server', service, server });
}

/** The input of `ipvsadm -R` that makes the changes. '' where there are none. */
export function formatVirtualServersDelta(changes: readonly VirtualServerChange[]): string {
  const lines: string[] = [];
  for (const change of changes) pushServerLines(lines, change);
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function pushServerLines(lines: string[], change: VirtualServerChange): void {
  const name = formatServiceName(change.service);
  switch (change.kind) {
    case 'add-service':
      lines.push(`-A ${name}${formatServiceOptions(change.service)}`);
      for (const server of change.service.realServers) lines.push(`-a ${name}${formatRealServer(server)}`);
      break;
    case 'edit-service':
      lines.push(`-E ${name}${formatServiceOptions(change.service)}`);
      break;
    case 'delete-service':
      lines.push(`-D ${name}`);
      break;
    case 'add-real-server':
      lines.push(`-a ${name}${formatRealServer(change.server)}`);
      break;
    case 'edit-real-server':
      lines.push(`-e ${name}${formatRealServer(change.server)}`);
      break;
    case 'delete-real-server':
      lines.push(`-d ${name} ${formatRealServerName(change.server)}`);
      break;
    default:
      change satisfies never;
  }
}

export function splitVirtualServersDelta(changes: readonly VirtualServerChange[]): Split<VirtualServerChange> {
  return partition(changes, ({ kind }) => kind === 'delete-service' || kind === 'delete-real-server');
}

export interface TimeoutsChange {
  readonly from: IpvsTimeouts;
  /** 0 leaves a timeout as it is. */
  readonly to: IpvsTimeouts;
}

const noTimeouts: IpvsTimeouts = { tcp: 0, tcpFin: 0, udp: 0 };

/** A timeout that `to` leaves as it is does not differ. */
export function diffTimeouts(
  from: IpvsTimeouts = noTimeouts,
  to: IpvsTimeouts = noTimeouts,
): TimeoutsChange | undefined {
  const isKept = (name: keyof IpvsTimeouts): boolean => to[name] === 0 || to[name] === from[name];
  return isKept('tcp') && isKept('tcpFin') && isKept('udp') ? undefined : { from, to };
}
