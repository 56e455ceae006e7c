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
import type { NodeNetwork } from '../node/network.ts';
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

/** What a file of the state folder is true of. */
export const bindingFields = {
  bootId: text,
  /** The network of that boot. Undefined in a record of a kpc-apply that did not note it: it may be of any network. */
  network: optional(objectOf({ inode: text, mark: optional(text) })),
};

const bindingShape = objectOf(bindingFields);

/** On-disk form of a record. */
export const recordShape = objectOf({
  ...bindingFields,
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

/** What kpc-apply made on this node, and so may change and take away. It holds for one network of one boot of the kernel. */
export type OwnershipRecord = Shaped<typeof recordShape>;

/** The values that kpc-apply wrote, by the path of the setting. */
export type SettingsMade = Readonly<Record<string, readonly string[]>>;

/**
 * The files that kpc-apply keeps for one network, most of them in a folder of that network: the state folder itself is that of the
 * node's first one. A journal is there from before the first change until the last check; then it becomes one of the states to go
 * back to, see history.ts.
 */
export function stateFolder(base: string, network: NodeNetwork) {
  const path = network.mark === undefined ? base : `${base}/network-${network.inode}-${network.mark}`;
  return {
    network,
    /** The state folder of all networks. */
    base,
    path,
    ...filesIn(path),
    /** The highest serial of a signed bundle that the node was on: a network made anew does not lower it. */
    newestSerial: `${base}/newest-serial.json`,
    /** See balancer-file.ts. nginx is told this path, so it is the same for each network. */
    balancer: `${base}/balancer.conf`,
    balancerRecord: `${base}/balancer.json`,
  } as const;
}

/** The files of one network. */
export function filesIn(path: string) {
  return {
    record: `${path}/record.json`,
    journal: `${path}/journal.json`,
    /** See last-command.ts. */
    lastCommand: `${path}/last-command.json`,
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
  /** When that process started, see readStartTime: its tools are younger. An earlier version did not note it. */
  started: optional(textThat('a number of ticks', (ticks) => /^\d{1,20}$/.test(ticks))),
});

/**
 * A state of the node to go back to: what the tools printed, and what was kpc-apply's then. Raw output and not parsed
 * values: it outlives changes of this program, and a person can read it.
 */
export type Snapshot = Shaped<typeof snapshotShape>;

const adoptAdvice = 'remove it, then run apply or cleanup with --adopt, which takes over what it recorded';
const stateAdvice = 'remove it: that earlier state is lost, so apply the bundle that you want instead';

/** Whether a file is of this network. */
export function isOfNetwork({ bootId, network }: Shaped<typeof bindingShape>, here: NodeNetwork): boolean {
  return bootId === here.bootId && network?.inode === here.inode && network.mark === here.mark;
}

/** The record of this network: one of another, or of an earlier boot, speaks of rules that are elsewhere or gone. */
export async function readRecord(host: Host, folder: StateFolder): Promise<OwnershipRecord> {
  const { bootId, ...network } = folder.network;
  const record = await readJson(host, folder.record, recordShape, adoptAdvice);
  return record && isOfNetwork(record, folder.network)
    ? record
    : { bootId, network, owned: nothingOwned, draining: [] };
}

/** The bundle that the node is recorded to be on, or was on before it booted. Undefined where the record is damaged, too. */
export async function readLastBundle(host: Host, folder: StateFolder): Promise<BundleMark | undefined> {
  const record = await readJson(host, folder.record, recordShape, adoptAdvice).catch(() => undefined);
  return record?.state?.bundle;
}

/** A snapshot that is kept as a state to go back to; undefined if there is none, or it is not of this network. */
export async function readSnapshot(host: Host, folder: StateFolder, path: string): Promise<Snapshot | undefined> {
  const snapshot = await readJson(host, path, snapshotShape, path === folder.journal ? adoptAdvice : stateAdvice);
  return snapshot && isOfNetwork(snapshot.record, folder.network) ? snapshot : undefined;
}

/**
 * The journal of an apply in this network that did not finish; undefined if there is none, or it is of an earlier boot. Throws a
 * Failure for one of this boot that is not known to be of this network: only there can it be put back, so nothing may take its place.
 * Test: a journal that names no network stops each change, and stays.
 */
export async function readJournal(host: Host, folder: StateFolder): Promise<Snapshot | undefined> {
  const journal = await readJson(host, folder.journal, snapshotShape, adoptAdvice);
  if (journal?.record.bootId !== folder.network.bootId) return undefined;
  if (isOfNetwork(journal.record, folder.network)) return journal;
  const { network } = journal.record;
  const whose = network ? `belongs to network ${network.inode}` : 'does not say to which network it belongs';
  throw new Failure(
    'bad-state-folder',
    `an apply did not finish, and its journal ${folder.journal} ${whose}; this is network ${folder.network.inode}`,
    network
      ? 'run "kpc-apply rollback" there, or choose another folder with --state-dir'
      : 'an earlier version wrote it: run rollback with that version, in the network that it changed; or remove it, then apply with --adopt',
  );
}

/** The record, and that in the journal, of whatever network and boot. Undefined for one that is damaged, too. */
export async function readBinding(host: Host, { record, journal }: ReturnType<typeof filesIn>) {
  return {
    record: await readJson(host, record, recordShape, '').catch(() => undefined),
    journal: (await readJson(host, journal, snapshotShape, '').catch(() => undefined))?.record,
  };
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
