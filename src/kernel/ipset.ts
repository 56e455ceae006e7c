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

/** The input of `ipset restore` that makes these sets where none of them exists. '' for no sets. */
export function formatSets(sets: readonly IpSet[]): string {
  const lines: string[] = [];
  for (const set of sets) {
    lines.push(formatCreate(set));
    for (const entry of set.entries) lines.push(formatAdd(set.name, entry));
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

/** `create NAME TYPE …`. */
export function formatCreate(set: IpSet): string {
  let line = `create ${set.name} ${set.type}`;
  if (set.family !== undefined) line += ` family ${set.family}`;
  if (set.range !== undefined) line += ` range ${set.range}`;
  if (set.hashSize !== undefined) line += ` hashsize ${set.hashSize}`;
  if (set.maxElements !== undefined) line += ` maxelem ${set.maxElements}`;
  for (const option of set.options ?? []) line += ` ${option}`;
  return line;
}

/** `add NAME VALUE …`. */
export function formatAdd(set: string, entry: SetEntry): string {
  const line = `add ${set} ${entry.value}`;
  return entry.options === undefined ? line : [line, ...entry.options].join(' ');
}
