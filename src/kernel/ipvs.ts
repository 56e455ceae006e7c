import type { Family, Protocol } from './family.ts';
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
  readonly origin?: Origin | undefined;
}

/** Seconds; 0 leaves a timeout as it is, as `ipvsadm --set` has it. */
export interface IpvsTimeouts {
  readonly tcp: number;
  readonly tcpFin: number;
  readonly udp: number;
}
