import type { VirtualServer } from '../kernel/ipvs.ts';
import { Failure } from './failure.ts';
import type { Host } from './host.ts';
import type { NodeReading } from './node-reading.ts';

/** Where the state folder is unless somebody says otherwise. */
export const defaultStateFolder = '/var/lib/kpc';

/** What kpc-apply made on this node, and so may change and take away. It holds for one boot of the kernel. */
export interface OwnershipRecord {
  readonly bootId: string;
  /** Keys of virtual servers: virtualServerKey. */
  readonly virtualServers: readonly string[];
  readonly sets: readonly string[];
  /** Real servers at weight 0 that wait for their connections to end. */
  readonly draining: readonly DrainingServer[];
}

/** A TCP real server that has left the bundle but not the kernel. */
export interface DrainingServer {
  readonly virtualServer: string;
  /** realServerKey. */
  readonly realServer: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

/**
 * A state of the node to go back to: what the tools printed, and what was kpc-apply's then. Raw output and not parsed
 * values: it outlives changes of this program, and a person can read it.
 */
export interface Snapshot {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  readonly reading: NodeReading;
  readonly owned: OwnershipRecord;
  /** What the apply was about to own besides: of these, what the snapshot has not got was made since. */
  readonly intended: { readonly virtualServers: readonly string[]; readonly sets: readonly string[] };
}

/** The files that kpc-apply keeps. A journal is there from before the first change until the last check. */
export interface StateFolder {
  readonly path: string;
  readonly record: string;
  readonly journal: string;
  readonly previous: string;
  readonly confirmed: string;
}

export function stateFolder(path: string): StateFolder {
  return {
    path,
    record: `${path}/record.json`,
    journal: `${path}/journal.json`,
    previous: `${path}/previous.json`,
    confirmed: `${path}/confirmed`,
  };
}

/** "TCP 10.96.0.1:80": what names a virtual server in records. IPv6 addresses have colons, so the port comes last. */
export function virtualServerKey(server: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${server.protocol} ${server.address}:${server.port}`;
}

/** "10.1.1.1:8080". */
export function realServerKey(server: { readonly address: string; readonly port: number }): string {
  return `${server.address}:${server.port}`;
}

export function emptyRecord(bootId: string): OwnershipRecord {
  return { bootId, virtualServers: [], sets: [], draining: [] };
}

/** The record of this boot: one of an earlier boot speaks of a kernel that is gone. */
export async function readRecord(host: Host, folder: StateFolder, bootId: string): Promise<OwnershipRecord> {
  const record = await readJson<OwnershipRecord>(host, folder.record);
  return record?.bootId === bootId ? record : emptyRecord(bootId);
}

/** A snapshot in the journal or in previous.json; undefined where there is none, or one of an earlier boot. */
export async function readSnapshot(host: Host, path: string, bootId: string): Promise<Snapshot | undefined> {
  const snapshot = await readJson<Snapshot>(host, path);
  return snapshot?.owned.bootId === bootId ? snapshot : undefined;
}

async function readJson<T extends object>(host: Host, path: string): Promise<T | undefined> {
  const text = await host.readFile(path);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as T;
  } catch {
    // Said below: a file cut short is as bad as one of another kind.
  }
  throw new Failure(
    'bad-state-folder',
    `${path} is damaged`,
    'remove it if the node is as it should be; run apply with --adopt to take over what it spoke of',
  );
}

export function writeJson(host: Host, path: string, value: object): Promise<void> {
  return host.replaceFile(path, `${JSON.stringify(value)}\n`);
}
