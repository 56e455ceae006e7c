import { UnreadableFile } from '../../base/read-file.ts';
import { ownershipRecord as recordCheck, snapshot as snapshotCheck, boot as bootCheck } from '#checks';
import { readChecked, type Check } from '../../base/json/check.ts';
import type { Shaped } from '../../base/json/schema.ts';
import { Failure } from './failure.ts';
import type { Host } from '../node/host.ts';
import type { NodeNetwork } from '../node/network.ts';
import { nothingOwned } from './owned-names.ts';
import type {
  bindingSchema,
  bundleSchema,
  drainingSchema,
  recordSchema,
  snapshotSchema,
  stateSchema,
} from './schemas.ts';

/** Where the state folder is unless --state-dir names another. */
export const defaultStateFolder = '/var/lib/kpc';

export type BundleMark = Shaped<typeof bundleSchema>;

export type StateMark = Shaped<typeof stateSchema>;

/** A TCP real server that has left the bundle but not the kernel. */
export type DrainingServer = Shaped<typeof drainingSchema>;

/** What kpc-apply made on this node and may remove. It holds for one network of one boot. */
export type OwnershipRecord = Shaped<typeof recordSchema>;

export type SettingsMade = Readonly<Record<string, readonly string[]>>;

/**
 * The files of one network, for all but the node's first in a folder of their own. A journal exists from before the first change until the
 * last check, then becomes an earlier state: see history.ts.
 */
export function stateFolder(base: string, network: NodeNetwork) {
  const path = network.mark === undefined ? base : `${base}/network-${network.inode}-${network.mark}`;
  return {
    network,
    /** The state folder of all networks. */
    base,
    path,
    ...filesIn(path),
    /** The highest serial of an applied signed bundle: a new network does not lower it. */
    newestSerial: `${base}/newest-serial.json`,
    /** nginx is told this path, so all networks share it. See state-files.ts. */
    balancer: `${base}/balancer.conf`,
    balancerRecord: `${base}/balancer.json`,
  } as const;
}

function filesIn(path: string) {
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
    /** See state-files.ts. */
    tables: `${path}/tables.json`,
  } as const;
}

export type StateFolder = ReturnType<typeof stateFolder>;

/** A state to go back to: raw output, which later versions and people can read, and what was owned. */
export type Snapshot = Shaped<typeof snapshotSchema>;

const adoptAdvice = 'remove it, then run apply or cleanup with --adopt, which takes over what it recorded';
const stateAdvice = 'remove it: that earlier state is lost, so apply the bundle that you want instead';

export function isOfNetwork({ bootId, network }: Shaped<typeof bindingSchema>, here: NodeNetwork): boolean {
  return bootId === here.bootId && network?.inode === here.inode && network.mark === here.mark;
}

/** This network's record. One of another network or boot is about rules that are elsewhere or gone. */
export async function readRecord(host: Host, folder: StateFolder): Promise<OwnershipRecord> {
  const { bootId, ...network } = folder.network;
  const record = await readJson(host, folder.record, recordCheck, adoptAdvice);
  return record && isOfNetwork(record, folder.network)
    ? record
    : { bootId, network, owned: nothingOwned, draining: [] };
}

/** The bundle recorded last, also from before a boot. Undefined if the record is damaged. */
export async function readLastBundle(host: Host, folder: StateFolder): Promise<BundleMark | undefined> {
  const record = await readJson(host, folder.record, recordCheck, adoptAdvice).catch(() => undefined);
  return record?.state?.bundle;
}

/** A kept earlier state; undefined if there is none, or it is of another network. */
export async function readSnapshot(host: Host, folder: StateFolder, path: string): Promise<Snapshot | undefined> {
  const snapshot = await readJson(host, path, snapshotCheck, path === folder.journal ? adoptAdvice : stateAdvice);
  return snapshot && isOfNetwork(snapshot.record, folder.network) ? snapshot : undefined;
}

/**
 * Undefined if there is none or it is of an earlier boot. Throws a Failure for one of this boot that may be another network's: only there
 * can it be put back, so nothing may replace it. Test: apply/networks.test.ts.
 */
export async function readJournal(host: Host, folder: StateFolder): Promise<Snapshot | undefined> {
  const journal = await readJson(host, folder.journal, snapshotCheck, adoptAdvice);
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

/** The record and the journal's record, of any network and boot. Undefined if damaged. */
async function readBinding(host: Host, { record, journal }: ReturnType<typeof filesIn>) {
  return {
    record: await readJson(host, record, recordCheck, '').catch(() => undefined),
    journal: (await readJson(host, journal, snapshotCheck, '').catch(() => undefined))?.record,
  };
}

/** A file of the state folder; undefined if missing. Throws a Failure if the check refuses it. */
export async function readJson<T>(host: Host, path: string, check: Check<T>, advice: string): Promise<T | undefined> {
  const damaged = (why: string) => new Failure('bad-state-folder', `${path} is damaged: ${why}`, advice);
  try {
    const content = await host.readFile(path);
    if (content === undefined) return undefined;
    const reading = readChecked(check, JSON.parse(content));
    if ('value' in reading) return reading.value;
    throw damaged(reading.wrong);
  } catch (error) {
    // The parser's message quotes the text, which may be of an unrelated file.
    if (error instanceof SyntaxError) throw damaged('it is not JSON');
    throw error instanceof UnreadableFile ? damaged(error.reason) : error;
  }
}

export function writeJson(host: Host, path: string, value: object): Promise<void> {
  return host.replaceFile(path, `${JSON.stringify(value)}\n`);
}

interface Place extends Awaited<ReturnType<typeof readBinding>> {
  readonly path: string;
}

/** Folders with a record or journal that says whose it is. */
async function listPlaces(host: Host, { base }: StateFolder): Promise<readonly Place[]> {
  const names = (await host.list(base)).filter((name) => /^network-\d+-kpc-[\da-f]{16}$/.test(name));
  const places: Place[] = [];
  for (const path of [base, ...names.map((name) => `${base}/${name}`)]) {
    places.push({ path, ...(await readBinding(host, filesIn(path))) });
  }
  return places;
}

/** Unfinished applies in other networks of this boot, and records if this network has none. */
export async function describeOtherNetworks(host: Host, folder: StateFolder): Promise<readonly string[]> {
  const { network: here } = folder;
  const places = await listPlaces(host, folder);
  const isOwn = (record: OwnershipRecord | undefined) => record !== undefined && isOfNetwork(record, here);
  const isOther = (record: OwnershipRecord | undefined): record is OwnershipRecord =>
    record?.bootId === here.bootId && !isOwn(record);
  const hasOwn = places.some(({ record, journal }) => isOwn(record) || isOwn(journal));
  return places.flatMap(({ path, record, journal }) => {
    const files = filesIn(path);
    if (isOther(journal)) {
      return `${files.journal} is of an apply that runs, or did not finish, ${nameNetwork(journal, here)}; it waits for "kpc-apply rollback" there`;
    }
    if (hasOwn || !isOther(record)) return [];
    return `${files.record} is of what was made ${nameNetwork(record, here)}: here, it owns nothing`;
  });
}

/** "in network 4026531840 (this is 4026532281)". */
function nameNetwork({ network }: OwnershipRecord, here: StateFolder['network']): string {
  if (!network) return `by an earlier version, in a network that it does not name (this is ${here.inode})`;
  if (network.inode !== here.inode) return `in network ${network.inode} (this is ${here.inode})`;
  return `in an earlier network ${network.inode}, or in this one before it lost its mark ${network.mark ?? ''}`;
}

/** Removes the folders of networks that ended with an earlier boot. */
export async function forgetEarlierBoots(host: Host, folder: StateFolder): Promise<void> {
  for (const { path, record, journal } of await listPlaces(host, folder)) {
    if (path === folder.base) continue;
    const { lastCommand, tables } = filesIn(path);
    const read = (file: string) => readJson(host, file, bootCheck, '').catch(() => undefined);
    const boots = [record, journal, await read(lastCommand), await read(tables)].flatMap((each) => each?.bootId ?? []);
    if (boots.length > 0 && !boots.includes(folder.network.bootId)) await host.remove(path);
  }
}
