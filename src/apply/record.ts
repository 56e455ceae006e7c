import { UnreadableFile } from '../base/read-file.ts';
import { amount, listOf, mapOf, objectOf, optional, text } from '../bundle/shape.ts';
import type { Shape } from '../bundle/shape.ts';
import { Failure } from './failure.ts';
import type { Host } from './host.ts';
import type { NodeReading } from './node-reading.ts';
import { belongingsShape, completeBelongings, noBelongings } from './belongings.ts';
import type { Belongings } from './belongings.ts';

/** Where the state folder is unless --state-dir names another. */
export const defaultStateFolder = '/var/lib/kpc';

/** What kpc-apply made on this node, and so may change and take away. It holds for one boot of the kernel. */
export interface OwnershipRecord {
  readonly bootId: string;
  readonly owned: Belongings;
  /** Real servers at weight 0 that wait for their connections to end. */
  readonly draining: readonly DrainingServer[];
  /** When the node left IPVS for rules, in milliseconds since it booted, while addresses of that are still there. */
  readonly leftIpvs?: number | undefined;
}

/** A TCP real server that has left the bundle but not the kernel. */
export interface DrainingServer {
  /** virtualServerKey and realServerKey of src/kernel. */
  readonly virtualServer: string;
  readonly realServer: string;
  /** Milliseconds since 1970, for people. */
  readonly since: number;
  /** The same in milliseconds since the node booted, by which its time is measured; old records have none. */
  readonly sinceBoot?: number | undefined;
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
  readonly record: OwnershipRecord;
  /** What has been changed or made since, at most: it is put back or taken away. */
  readonly touched: Belongings;
}

/** The files that kpc-apply keeps. A journal is there from before the first change until the last check. */
export interface StateFolder {
  readonly path: string;
  readonly record: string;
  readonly journal: string;
  readonly previous: string;
  readonly awaiting: string;
  readonly confirmed: string;
  readonly unconfirmed: string;
  /** A folder: see settled.ts. */
  readonly settled: string;
}

export function stateFolder(path: string): StateFolder {
  return {
    path,
    record: `${path}/record.json`,
    journal: `${path}/journal.json`,
    previous: `${path}/previous.json`,
    awaiting: `${path}/awaiting.json`,
    confirmed: `${path}/confirmed.json`,
    unconfirmed: `${path}/unconfirmed.json`,
    settled: `${path}/settled`,
  };
}

function emptyRecord(bootId: string): OwnershipRecord {
  return { bootId, owned: noBelongings, draining: [] };
}

export const recordShape = objectOf<OwnershipRecord>({
  bootId: text,
  owned: belongingsShape,
  draining: listOf(
    objectOf<DrainingServer>({ virtualServer: text, realServer: text, since: amount, sinceBoot: optional(amount) }),
  ),
  leftIpvs: optional(amount),
});

const snapshotShape = objectOf<Snapshot>({
  id: text,
  takenAt: amount,
  reading: objectOf<NodeReading>({
    iptables: objectOf<NodeReading['iptables']>({ ipv4: text, ipv6: text }),
    nftables: optional(objectOf<NodeReading['nftables']>({ ipv4: text, ipv6: text })),
    ipset: text,
    ipvsadm: text,
    ipvsTimeouts: text,
    addresses: text,
    settings: mapOf(text),
  }),
  record: recordShape,
  touched: belongingsShape,
});

const adoptAdvice = 'remove it, then run apply or cleanup with --adopt, which takes over what it recorded';
const previousAdvice = 'remove it: the state before the last apply is lost, so apply the bundle that you want instead';

/** The record of this boot: one of an earlier boot speaks of a kernel that is gone. */
export async function readRecord(host: Host, folder: StateFolder, bootId: string): Promise<OwnershipRecord> {
  const record = await readJson<OwnershipRecord>(host, folder.record, recordShape, adoptAdvice);
  return record?.bootId === bootId ? completeRecord(record) : emptyRecord(bootId);
}

/** A snapshot in the journal or in previous.json; undefined where there is none, or one of an earlier boot. */
export async function readSnapshot(host: Host, path: string, bootId: string): Promise<Snapshot | undefined> {
  const advice = path.endsWith('/previous.json') ? previousAdvice : adoptAdvice;
  const snapshot = await readJson<Snapshot>(host, path, snapshotShape, advice);
  if (snapshot?.record.bootId !== bootId) return undefined;
  return {
    ...snapshot,
    reading: completeReading(snapshot.reading),
    record: completeRecord(snapshot.record),
    touched: completeBelongings(snapshot.touched),
  };
}

/** The files of older versions know nothing of nftables, nor did these versions touch it. */
function completeReading(stored: NodeReading | Omit<NodeReading, 'nftables'>): NodeReading {
  return { nftables: { ipv4: '', ipv6: '' }, ...stored };
}

function completeRecord(record: OwnershipRecord): OwnershipRecord {
  return { ...record, owned: completeBelongings(record.owned) };
}

/** A file of the state folder; undefined where there is none. Throws a Failure for one that is not of this shape. */
export async function readJson<T extends object>(
  host: Host,
  path: string,
  shape: Shape,
  advice: string,
): Promise<T | undefined> {
  let content: string | undefined;
  try {
    content = await host.readFile(path);
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
    throw new Failure('bad-state-folder', `${path} is damaged: ${error.reason}`, advice);
  }
  if (content === undefined) return undefined;
  const { value, wrong } = parseJson(content, shape);
  if (wrong === undefined) return value as T;
  throw new Failure('bad-state-folder', `${path} is damaged: ${wrong}`, advice);
}

function parseJson(content: string, shape: Shape): { readonly value: unknown; readonly wrong: string | undefined } {
  try {
    const value: unknown = JSON.parse(content);
    return { value, wrong: shape(value, '') };
  } catch {
    // What the parser says quotes the text, and that may be of another file altogether.
    return { value: undefined, wrong: 'it is not JSON' };
  }
}

export function writeJson(host: Host, path: string, value: object): Promise<void> {
  return host.replaceFile(path, `${JSON.stringify(value)}\n`);
}
