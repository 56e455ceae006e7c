import { UnreadableFile } from '../../base/read-file.ts';
import { servicePortShape } from '../../bundle/services-file.ts';
import {
  amount,
  listOf,
  mapOf,
  narrowed,
  objectOf,
  oneOf,
  optional,
  readShape,
  text,
  textThat,
  wholeNumber,
  type Shape,
  type Shaped,
} from '../../base/json-shape.ts';
import { Failure } from './failure.ts';
import type { Host } from '../node/host.ts';
import { isSettingPath } from '../plan/node-decisions.ts';
import type { Variants } from '../node/iptables-variants.ts';
import type { NodeReading } from '../node/node-reading.ts';
import { ownedNamesShape, nothingOwned } from './owned-names.ts';

/** Where the state folder is unless --state-dir names another. */
export const defaultStateFolder = '/var/lib/kpc';

const bundleShape = objectOf({
  /** The path that it was read from. */
  folder: text,
  /** SHA-256 of its manifest, which has the checksums of all its files. */
  digest: text,
  /** The serial of its signature, where that was checked. */
  serial: optional(wholeNumber(0)),
});

/** A bundle that was applied. */
export type BundleMark = Shaped<typeof bundleShape>;

const stateShape = objectOf({
  /** Of this state and no other, as long as any state is kept: later ones have higher ids. */
  id: wholeNumber(0),
  /** The state before the last change: the one that a rollback goes to. Undefined if none is known. */
  replaced: optional(wholeNumber(0)),
  /** Milliseconds since 1970, at which it was made. Undefined, as the next two, for what kpc-apply found. */
  since: optional(amount),
  /** The command that made it. */
  command: optional(oneOf('apply', 'watch', 'cleanup')),
  bundle: optional(bundleShape),
});

/** A state of the node, from one change to the next: what a person sees of it, and what distinguishes it from others. */
export type StateMark = Shaped<typeof stateShape>;

const drainingShape = objectOf({
  /** virtualServerKey and realServerKey of src/kernel. */
  virtualServer: text,
  realServer: text,
  /** Milliseconds since 1970, for people. */
  since: amount,
  /** In milliseconds since the node booted, the clock that draining is measured by. */
  sinceBoot: amount,
});

/** A TCP real server that has left the bundle but not the kernel. */
export type DrainingServer = Shaped<typeof drainingShape>;

/** On-disk form of a record. */
export const recordShape = objectOf({
  bootId: text,
  owned: ownedNamesShape,
  /** Real servers at weight 0 that wait for their connections to end. */
  draining: listOf(drainingShape),
  /** When the node left IPVS for rules, in milliseconds since it booted, while addresses of that are still there. */
  leftIpvs: optional(amount),
  /** The state that the node is in; undefined before the first change. */
  state: optional(stateShape),
  /** The Service ports of UDP, without endpoints: flows to one that goes may stay. Undefined where no bundle tells them. */
  udpPorts: optional(listOf(servicePortShape)),
});

/** What kpc-apply made on this node, and so may change and take away. It holds for one boot of the kernel. */
export type OwnershipRecord = Shaped<typeof recordShape>;

/** The values that kpc-apply wrote, by the path of the setting. */
export type SettingsMade = Readonly<Record<string, readonly string[]>>;

/**
 * The files that kpc-apply keeps. A journal is there from before the first change until the last check; then it becomes one of
 * the states to go back to, see history.ts.
 */
export function stateFolder(path: string) {
  return {
    path,
    record: `${path}/record.json`,
    journal: `${path}/journal.json`,
    /** See last-command.ts. */
    lastCommand: `${path}/last-command.json`,
    /** The highest serial of a signed bundle that the node was on. */
    newestSerial: `${path}/newest-serial.json`,
    awaiting: `${path}/awaiting.json`,
    confirmed: `${path}/confirmed.json`,
    unconfirmed: `${path}/unconfirmed.json`,
    /** See tool-time-limits.ts. */
    doing: `${path}/doing.json`,
    /** See known-tables.ts. */
    tables: `${path}/tables.json`,
  } as const;
}

/** The paths of these files. */
export type StateFolder = ReturnType<typeof stateFolder>;

/**
 * A way back writes these files: whatever a snapshot says, they are kernel settings of the network.
 * Test: where state-1.json %s, rollback says what to do instead.
 */
function byPath<T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return narrowed<Readonly<Record<string, T>>>(mapOf(shape), 'an object with paths of network sysctls', (value) =>
    Object.keys(value).every(isSettingPath),
  );
}

/**
 * Marks our own child processes, which a later kpc-apply may kill: it must not collide with another program's variable.
 * Test: ends nothing for a mark that is not one of kpc-apply.
 */
const toolMarkShape = textThat('a mark of kpc-apply', (mark) => /^KPC_APPLY_RUN=[\da-f-]{36}$/.test(mark));

const variantShape = oneOf('nft', 'legacy');
const variantsShape = objectOf<Variants>({ ipv4: variantShape, ipv6: variantShape });

const snapshotShape = objectOf({
  /** Milliseconds since 1970. */
  takenAt: amount,
  /** The state that this is of. */
  state: stateShape,
  reading: objectOf<NodeReading>({
    ipv4: text,
    ipv6: text,
    'other ipv4': text,
    'other ipv6': text,
    'nft ipv4': text,
    'nft ipv6': text,
    ipset: text,
    ipvsadm: text,
    'ipvs timeouts': text,
    addresses: text,
    settings: byPath(text),
    variants: variantsShape,
    balancer: optional(text),
  }),
  record: recordShape,
  /** What has been changed or made since, at most: it is put back or taken away. */
  touched: ownedNamesShape,
  /** The settings that have been changed since, and all values that they got. */
  settingsMade: byPath(listOf(text)),
  /** Identifies the tools of the process that made the change: see Host. */
  toolMark: toolMarkShape,
});

/**
 * A state of the node to go back to: what the tools printed, and what was kpc-apply's then. Raw output and not parsed
 * values: it outlives changes of this program, and a person can read it.
 */
export type Snapshot = Shaped<typeof snapshotShape>;

const adoptAdvice = 'remove it, then run apply or cleanup with --adopt, which takes over what it recorded';
const stateAdvice = 'remove it: that earlier state is lost, so apply the bundle that you want instead';

/** The kernel's id of this boot: what was true of the kernel before it says nothing of the kernel now. */
export async function readBootId(host: Host): Promise<string> {
  return ((await host.readFile('/proc/sys/kernel/random/boot_id')) ?? '').trim();
}

/** The record of this boot: one of an earlier boot speaks of a kernel that is gone. */
export async function readRecord(host: Host, folder: StateFolder): Promise<OwnershipRecord> {
  const bootId = await readBootId(host);
  const record = await readJson(host, folder.record, recordShape, adoptAdvice);
  return record?.bootId === bootId ? record : { bootId, owned: nothingOwned, draining: [] };
}

/** The bundle that the node is recorded to be on, or was on before it booted. Undefined where the record is damaged, too. */
export async function readLastBundle(host: Host, folder: StateFolder): Promise<BundleMark | undefined> {
  const record = await readJson(host, folder.record, recordShape, adoptAdvice).catch(() => undefined);
  return record?.state?.bundle;
}

/** A snapshot, in the journal or kept as a state to go back to; undefined if there is none, or it is of an earlier boot. */
export async function readSnapshot(host: Host, path: string): Promise<Snapshot | undefined> {
  const advice = path.endsWith('/journal.json') ? adoptAdvice : stateAdvice;
  const snapshot = await readJson(host, path, snapshotShape, advice);
  return snapshot?.record.bootId === (await readBootId(host)) ? snapshot : undefined;
}

/** A file of the state folder; undefined if there is none. Throws a Failure for one that is not of this shape. */
export async function readJson<T>(host: Host, path: string, shape: Shape<T>, advice: string): Promise<T | undefined> {
  const damaged = (why: string) => new Failure('bad-state-folder', `${path} is damaged: ${why}`, advice);
  try {
    const content = await host.readFile(path);
    if (content === undefined) return undefined;
    const reading = readShape(shape, JSON.parse(content));
    if ('value' in reading) return reading.value;
    throw damaged(reading.wrong);
  } catch (error) {
    // What the parser says quotes the text, and that may be of another file altogether.
    if (error instanceof SyntaxError) throw damaged('it is not JSON');
    throw error instanceof UnreadableFile ? damaged(error.reason) : error;
  }
}

/** Writes a file of the state folder as one line of JSON. */
export function writeJson(host: Host, path: string, value: object): Promise<void> {
  return host.replaceFile(path, `${JSON.stringify(value)}\n`);
}
