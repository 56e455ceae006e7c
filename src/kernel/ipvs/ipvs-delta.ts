import { pairUp } from '../diff-by-key.ts';
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

/** One step from some virtual servers to others. `service` is the virtual server as it should be. */
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

/** How to get from some virtual servers to others. What is on both sides is left alone, so that its connections stay. */
export function diffVirtualServers(
  from: readonly VirtualServer[],
  to: readonly VirtualServer[],
): readonly VirtualServerChange[] {
  return pairUp(from, to, virtualServerKey).flatMap(({ old, item: service }): readonly VirtualServerChange[] => {
    if (!service) return [{ kind: 'delete-service', service: old }];
    if (!old) return [{ kind: 'add-service', service }];
    const changes = diffRealServers(old, service);
    return formatServiceOptions(old) === formatServiceOptions(service)
      ? changes
      : [{ kind: 'edit-service', from: old, service }, ...changes];
  });
}

/** The key of a virtual server in a state: "TCP 10.0.0.1 80". */
export function virtualServerKey(service: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${service.protocol} ${service.address.text} ${service.port}`;
}

/** The key of a real server of one virtual server. */
export function realServerKey(server: Pick<RealServer, 'address' | 'port'>): string {
  return `${server.address.text} ${server.port}`;
}

function diffRealServers(from: VirtualServer, service: VirtualServer): readonly VirtualServerChange[] {
  if (from.realServers === service.realServers) return [];
  const pairs = pairUp(from.realServers, service.realServers, realServerKey);
  return pairs.flatMap(({ old, item: server }): readonly VirtualServerChange[] => {
    if (!server) return [{ kind: 'delete-real-server', service, server: old }];
    if (!old) return [{ kind: 'add-real-server', service, server }];
    const isSame = formatRealServer(old) === formatRealServer(server);
    return isSame ? [] : [{ kind: 'edit-real-server', service, from: old, server }];
  });
}

/** The input of `ipvsadm -R` that makes the changes. '' if there are none. */
export function formatVirtualServersDelta(changes: readonly VirtualServerChange[]): string {
  return changes.map(formatServerChange).join('');
}

function formatServerChange(change: VirtualServerChange): string {
  const name = formatServiceName(change.service);
  switch (change.kind) {
    case 'add-service':
      return formatVirtualServer(change.service);
    case 'edit-service':
      return `-E ${name}${formatServiceOptions(change.service)}\n`;
    case 'delete-service':
      return `-D ${name}\n`;
    case 'add-real-server':
      return `-a ${name}${formatRealServer(change.server)}\n`;
    case 'edit-real-server':
      return `-e ${name}${formatRealServer(change.server)}\n`;
    case 'delete-real-server':
      return `-d ${name} ${formatRealServerName(change.server)}\n`;
    default:
      return change satisfies never;
  }
}

/** A change of the timeouts of IPVS connections. */
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
