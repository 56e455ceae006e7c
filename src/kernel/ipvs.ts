import { compareAddresses, joinHostPort, parseAddress } from './address.ts';
import { protocols, type Family, type Protocol } from './family.ts';
import type { Origin } from './origin.ts';

/** How a packet gets to a real server: NAT (ipvsadm -m), direct routing (-g) or an IP-in-IP tunnel (-i). */
export type ForwardingMethod = 'masquerade' | 'direct' | 'tunnel';

/** An IPVS service. The key is family, protocol, address and port. */
export interface VirtualServer {
  readonly family: Family;
  readonly protocol: Protocol;
  /** Canonical text of the address, without brackets. */
  readonly address: string;
  readonly port: number;
  readonly scheduler: string;
  /** Seconds of persistence (session affinity); undefined for none. */
  readonly persistentSeconds?: number | undefined;
  /** Scheduler flags by their number: flag-1, flag-2, flag-3 as ipvsadm's -b knows them. */
  readonly schedulerFlags: readonly SchedulerFlag[];
  /** Sorted by address, then port. */
  readonly realServers: readonly RealServer[];
  /** What other people's services have besides (-o, -M, --pe …), as ipvsadm's words. Not for kube-proxy's. */
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}

/**
 * Kernel flags IP_VS_SVC_F_SCHED1..3. ipvsadm prints them by the scheduler's names: flag-1 is sh-fallback or
 * mh-fallback, flag-2 sh-port or mh-port.
 */
export type SchedulerFlag = 'flag-1' | 'flag-2' | 'flag-3';

export interface RealServer {
  readonly address: string;
  readonly port: number;
  readonly weight: number;
  readonly forwarding: ForwardingMethod;
  /** What other people's real servers have besides (tunnel types, thresholds), as ipvsadm's words. */
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}

/** Seconds; 0 leaves a timeout as it is, as `ipvsadm --set` has it. */
export interface IpvsTimeouts {
  readonly tcp: number;
  readonly tcpFin: number;
  readonly udp: number;
}

/** IPv4 before IPv6, then by address as a number, port and protocol (TCP, UDP, SCTP). */
export function compareVirtualServers(a: VirtualServer, b: VirtualServer): number {
  if (a.family !== b.family) return a.family === 'ipv4' ? -1 : 1;
  return (
    compareAddressTexts(a.address, b.address) ||
    a.port - b.port ||
    protocols.indexOf(a.protocol) - protocols.indexOf(b.protocol)
  );
}

/** By address as a number, then port. */
export function compareRealServers(a: RealServer, b: RealServer): number {
  return compareAddressTexts(a.address, b.address) || a.port - b.port;
}

function compareAddressTexts(a: string, b: string): number {
  if (a === b) return 0;
  const difference = ipv4Number(a) - ipv4Number(b);
  if (!Number.isNaN(difference)) return difference;
  const left = parseAddress(a);
  const right = parseAddress(b);
  if (left && right) return compareAddresses(left, right);
  return a < b ? -1 : 1;
}

/** NaN for what is not a dotted quad. Sorting calls this millions of times, so it makes no objects. */
function ipv4Number(text: string): number {
  let value = 0;
  let part = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 46) {
      value = (value + part) * 256;
      part = 0;
    } else if (code >= 48 && code <= 57) part = part * 10 + code - 48;
    else return Number.NaN;
  }
  return value + part;
}

/** The input of `ipvsadm -R` that makes these services where none of them exists. '' for none. */
export function formatVirtualServers(virtualServers: readonly VirtualServer[]): string {
  const lines: string[] = [];
  for (const server of virtualServers) {
    const name = formatServiceName(server);
    lines.push(`-A ${name}${formatServiceOptions(server)}`);
    for (const real of server.realServers) lines.push(`-a ${name}${formatRealServer(real)}`);
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

const serviceFlags: { readonly [P in Protocol]: string } = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' };

/** What names a service on ipvsadm's command line: `-t 10.0.0.1:80`. */
export function formatServiceName(server: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${serviceFlags[server.protocol]} ${joinHostPort(server.address, server.port)}`;
}

/**
 * ` -s rr -p 10800 -b flag-2` and so on. ipvsadm's default netmask of persistence (255.255.255.255, or 128) is the one
 * that kube-proxy asks for, and it takes the flags by number with every scheduler and in every version that has -b.
 */
export function formatServiceOptions(server: VirtualServer): string {
  let text = ` -s ${server.scheduler}`;
  if (server.persistentSeconds !== undefined) text += ` -p ${server.persistentSeconds}`;
  if (server.schedulerFlags.length > 0) text += ` -b ${server.schedulerFlags.join(',')}`;
  for (const option of server.options ?? []) text += ` ${option}`;
  return text;
}

const forwardingFlags: { readonly [M in ForwardingMethod]: string } = { masquerade: '-m', direct: '-g', tunnel: '-i' };

/** ` -r 10.1.1.1:80 -m -w 1`. */
export function formatRealServer(server: RealServer): string {
  let text = ` -r ${joinHostPort(server.address, server.port)} ${forwardingFlags[server.forwarding]} -w ${server.weight}`;
  for (const option of server.options ?? []) text += ` ${option}`;
  return text;
}
