import type { IpvsTimeouts } from './ipvs.ts';

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
  const merged = mergeTimeouts(from, to);
  return merged.tcp === from.tcp && merged.tcpFin === from.tcpFin && merged.udp === from.udp ? undefined : { from, to };
}

export function applyTimeoutsDelta(
  timeouts: IpvsTimeouts | undefined,
  change: TimeoutsChange | undefined,
): IpvsTimeouts | undefined {
  return change ? mergeTimeouts(timeouts ?? noTimeouts, change.to) : timeouts;
}

function mergeTimeouts(from: IpvsTimeouts, to: IpvsTimeouts): IpvsTimeouts {
  return { tcp: to.tcp || from.tcp, tcpFin: to.tcpFin || from.tcpFin, udp: to.udp || from.udp };
}
