import type { Origin } from './origin.ts';

export type SetType = 'hash:ip' | 'hash:ip,port' | 'hash:ip,port,ip' | 'hash:ip,port,net' | 'bitmap:port';

/** One ipset. Hash sets have a family, bitmap:port a range. Other types than kube-proxy's keep their type's name. */
export interface IpSet {
  readonly name: string;
  readonly type: SetType | (string & {});
  readonly family?: 'inet' | 'inet6' | undefined;
  /** "0-65535" for kube-proxy's port sets. */
  readonly range?: string | undefined;
  readonly hashSize?: number | undefined;
  /** How many entries fit: a limit of the kernel's, past which adding fails. */
  readonly maxElements?: number | undefined;
  /** Sorted and without duplicates; equality takes them as a set. */
  readonly entries: readonly SetEntry[];
  /** What other people's sets have besides (timeout, counters, comment …), as written. Not for kube-proxy's. */
  readonly options?: readonly string[] | undefined;
}

/** An entry as ipset prints it: "10.96.0.1,tcp:80", "10.0.0.1,tcp:80,10.0.0.1", "10.0.0.1,tcp:80,10.0.0.0/8", "30080". */
export interface SetEntry {
  readonly value: string;
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}
