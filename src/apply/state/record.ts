import { UnreadableFile } from '../../base/read-file.ts';
import {
  amount,
  boolean,
  listOf,
  mapOf,
  objectOf,
  oneOf,
  optional,
  readShape,
  text,
  textThat,
  wholeNumber,
  type Shape,
  type ShapeReading,
} from '../../base/shape.ts';
import { Failure } from './failure.ts';
import type { Host } from '../node/host.ts';
import { isSettingPath } from '../plan/node-decisions.ts';
import type { NodeReading } from '../node/node-reading.ts';
import {
  belongingsShape,
  completeBelongings,
  noBelongings,
  type Belongings,
  type StoredBelongings,
} from './belongings.ts';

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
  /** The state that the node is in. Records of older versions have none. */
  readonly state?: StateMark | undefined;
}

/** A state of the node, from one change to the next: what a person sees of it, and what tells it from others. */
export interface StateMark {
  /** Of this state and no other, as long as any state is kept. A rollback to a state brings back its id. */
  readonly id: number;
  /** The state before the last change: the one that a rollback goes to. Undefined if none is known. */
  readonly replaced?: number | undefined;
  /** Milliseconds since 1970, at which it was made. Undefined, as the next two, for what kpc-apply found. */
  readonly since?: number | undefined;
  /** The command that made it. */
  readonly command?: 'apply' | 'watch' | 'cleanup' | undefined;
  readonly bundle?: BundleMark | undefined;
  /** Whether other programs are known to have changed it before it was replaced. */
  readonly drifted?: boolean | undefined;
}

/** A bundle that was applied. */
export interface BundleMark {
  /** The path that it was read from. */
  readonly folder: string;
  /** SHA-256 of its manifest, which has the checksums of all its files. */
  readonly digest: string;
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

/** By path. */
export type SettingsMade = Readonly<Record<string, readonly string[]>>;

/**
 * A state of the node to go back to: what the tools printed, and what was kpc-apply's then. Raw output and not parsed
 * values: it outlives changes of this program, and a person can read it.
 */
export interface Snapshot {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  /** Milliseconds since the node booted, which tells the order of snapshots. Older versions did not write it, nor the next. */
  readonly uptime?: number | undefined;
  /** The state that this is of. */
  readonly state?: StateMark | undefined;
  readonly reading: NodeReading;
  readonly record: OwnershipRecord;
  /** What has been changed or made since, at most: it is put back or taken away. */
  readonly touched: Belongings;
  /** The settings that have been changed since, and all values that they got. Older versions did not write it. */
  readonly settingsMade?: SettingsMade | undefined;
  /** What tells the tools of the process that made the change: see Host. */
  readonly toolMark?: string | undefined;
}

/**
 * The files that kpc-apply keeps. A journal is there from before the first change until the last check; then it becomes one of
 * the states to go back to, see history.ts.
 */
export interface StateFolder {
  readonly path: string;
  readonly record: string;
  readonly journal: string;
  /** The one state that older versions kept. */
  readonly previous: string;
  /** See last-command.ts. */
  readonly lastCommand: string;
  readonly awaiting: string;
  readonly confirmed: string;
  readonly unconfirmed: string;
  /** See patience.ts. */
  readonly doing: string;
  /** A folder: see settled.ts. */
  readonly settled: string;
}

export function stateFolder(path: string): StateFolder {
  return {
    path,
    record: `${path}/record.json`,
    journal: `${path}/journal.json`,
    previous: `${path}/previous.json`,
    lastCommand: `${path}/last-command.json`,
    awaiting: `${path}/awaiting.json`,
    confirmed: `${path}/confirmed.json`,
    unconfirmed: `${path}/unconfirmed.json`,
    doing: `${path}/doing.json`,
    settled: `${path}/settled`,
  };
}

function emptyRecord(bootId: string): OwnershipRecord {
  return { bootId, owned: noBelongings, draining: [] };
}

/** A record in a file. */
export interface StoredRecord extends Omit<OwnershipRecord, 'owned'> {
  readonly owned: StoredBelongings;
}

const stateShape = objectOf<StateMark>({
  id: wholeNumber(0),
  replaced: optional(wholeNumber(0)),
  since: optional(amount),
  command: optional(oneOf('apply', 'watch', 'cleanup')),
  bundle: optional(objectOf<BundleMark>({ folder: text, digest: text })),
  drifted: optional(boolean),
});

export const recordShape = objectOf<StoredRecord>({
  bootId: text,
  owned: belongingsShape,
  draining: listOf(
    objectOf<DrainingServer>({ virtualServer: text, realServer: text, since: amount, sinceBoot: optional(amount) }),
  ),
  leftIpvs: optional(amount),
  state: optional(stateShape),
});

/** A reading in a file. Older versions did not know nftables, and did not touch it. */
interface StoredReading extends Omit<NodeReading, 'nftables'> {
  readonly nftables?: NodeReading['nftables'] | undefined;
}

/** A snapshot in a file. */
interface StoredSnapshot extends Pick<Snapshot, 'id' | 'takenAt' | 'uptime' | 'state' | 'settingsMade' | 'toolMark'> {
  readonly reading: StoredReading;
  readonly record: StoredRecord;
  readonly touched: StoredBelongings;
}

/** A way back writes these files: whatever a snapshot says, they are kernel settings of the network. */
const byPath =
  <T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> =>
  (value, path) =>
    mapOf(shape)(value, path) ??
    (Object.keys(value as object).every(isSettingPath) ? undefined : `${path} must name sysctls of the network`);

/** All processes that have it are ended one day: it must be no variable that others have. */
const toolMarkShape = textThat('a mark of kpc-apply', (mark) => /^KPC_APPLY_RUN=[\da-f-]{36}$/.test(mark));

const snapshotShape = objectOf<StoredSnapshot>({
  id: text,
  takenAt: amount,
  uptime: optional(amount),
  state: optional(stateShape),
  reading: objectOf<StoredReading>({
    iptables: objectOf<NodeReading['iptables']>({ ipv4: text, ipv6: text }),
    nftables: optional(objectOf<NodeReading['nftables']>({ ipv4: text, ipv6: text })),
    ipset: text,
    ipvsadm: text,
    ipvsTimeouts: text,
    addresses: text,
    settings: byPath(text),
  }),
  record: recordShape,
  touched: belongingsShape,
  settingsMade: optional(byPath(listOf(text))),
  toolMark: optional(toolMarkShape),
});

const adoptAdvice = 'remove it, then run apply or cleanup with --adopt, which takes over what it recorded';
const stateAdvice = 'remove it: that earlier state is lost, so apply the bundle that you want instead';

/** The record of this boot: one of an earlier boot speaks of a kernel that is gone. */
export async function readRecord(host: Host, folder: StateFolder, bootId: string): Promise<OwnershipRecord> {
  const record = await readJson(host, folder.record, recordShape, adoptAdvice);
  return record?.bootId === bootId ? completeRecord(record) : emptyRecord(bootId);
}

/** A snapshot, in the journal or kept as a state to go back to; undefined if there is none, or it is of an earlier boot. */
export async function readSnapshot(host: Host, path: string, bootId: string): Promise<Snapshot | undefined> {
  const advice = path.endsWith('/journal.json') ? adoptAdvice : stateAdvice;
  const snapshot = await readJson(host, path, snapshotShape, advice);
  if (snapshot?.record.bootId !== bootId) return undefined;
  return {
    ...snapshot,
    reading: completeReading(snapshot.reading),
    record: completeRecord(snapshot.record),
    touched: completeBelongings(snapshot.touched),
  };
}

function completeReading(stored: StoredReading): NodeReading {
  return { ...stored, nftables: stored.nftables ?? { ipv4: '', ipv6: '' } };
}

/** Fills in what older versions did not write. */
export function completeRecord(record: StoredRecord): OwnershipRecord {
  return { ...record, owned: completeBelongings(record.owned) };
}

/** A file of the state folder; undefined where there is none. Throws a Failure for one that is not of this shape. */
export async function readJson<T>(host: Host, path: string, shape: Shape<T>, advice: string): Promise<T | undefined> {
  let content: string | undefined;
  try {
    content = await host.readFile(path);
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
    throw new Failure('bad-state-folder', `${path} is damaged: ${error.reason}`, advice);
  }
  if (content === undefined) return undefined;
  const reading = parseJson(content, shape);
  if ('value' in reading) return reading.value;
  throw new Failure('bad-state-folder', `${path} is damaged: ${reading.wrong}`, advice);
}

function parseJson<T>(content: string, shape: Shape<T>): ShapeReading<T> {
  try {
    return readShape(shape, JSON.parse(content));
  } catch {
    // What the parser says quotes the text, and that may be of another file altogether.
    return { wrong: 'it is not JSON' };
  }
}

export function writeJson(host: Host, path: string, value: object): Promise<void> {
  return host.replaceFile(path, `${JSON.stringify(value)}\n`);
}
