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
  const isKept = (name: keyof IpvsTimeouts): boolean => to[name] === 0 || to[name] === from[name];
  return isKept('tcp') && isKept('tcpFin') && isKept('udp') ? undefined : { from, to };
}
