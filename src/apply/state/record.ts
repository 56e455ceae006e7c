// The record, the journal and other files of the state folder: kube-proxy's last known tables, and the balancer's file.
import type { StoredKind } from '../../base/findings/apply.ts';
import type { OtherNetwork } from '../../base/findings/node-checks.ts';
import { UnreadableFile } from '../../base/read-file.ts';
import {
  ownershipRecord as recordCheck,
  snapshot as snapshotCheck,
  boot as bootCheck,
  knownTables as knownTablesCheck,
  balancerRecord as balancerRecordCheck,
} from '#checks';
import { readChecked, type Check, type JsonFault } from '../../base/json/check.ts';
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
  knownTablesSchema,
  balancerRecordSchema,
} from './schemas.ts';
import { isLaterBy, type NftGeneration } from '../node/tools.ts';
import { hashHex } from '#hash';
import { formatBalancer, parseBalancer } from '../../kernel/balancer/balancer.ts';

/** Where the state folder is unless --state-dir names another. */
export const defaultStateFolder = '/var/lib/kpc';

export type BundleMark = Shaped<typeof bundleSchema>;

export type StateMark = Shaped<typeof stateSchema>;

/** A TCP real server that has left the bundle but not the kernel. */
export type DrainingServer = Shaped<typeof drainingSchema>;

/** The objects that kpc-apply made on this node and may remove. It holds for one network of one boot. */
export type OwnershipRecord = Shaped<typeof recordSchema>;

/**
 * The files of one network; they have their own folder, except those of the node's first network. A journal exists from
 * before the first change until the last check, then becomes an earlier state: see history.ts.
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
    /** nginx is told this path, so all networks share it. See BalancerFile. */
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
    /** See KnownTables. */
    tables: `${path}/tables.json`,
  } as const;
}

export type StateFolder = ReturnType<typeof stateFolder>;

/** A state to go back to: raw tool output, which later versions and people can read, and the owned objects. */
export type StoredSnapshot = Shaped<typeof snapshotSchema>;

function isOfNetwork({ bootId, network }: Shaped<typeof bindingSchema>, here: NodeNetwork): boolean {
  return bootId === here.bootId && network?.inode === here.inode && network.mark === here.mark;
}

/** This network's record. A record of another network or boot describes rules that are elsewhere or gone. */
export async function readRecord(host: Host, folder: StateFolder): Promise<OwnershipRecord> {
  const { bootId, ...network } = folder.network;
  const record = await readJsonFile(host, folder.record, recordCheck, 'record');
  return record && isOfNetwork(record, folder.network)
    ? record
    : { bootId, network, owned: nothingOwned, draining: [] };
}

/** The bundle recorded last, also from before a boot. Undefined if the record is damaged. */
export async function readLastBundle(host: Host, folder: StateFolder): Promise<BundleMark | undefined> {
  const record = await readJsonFile(host, folder.record, recordCheck, 'record').catch(() => undefined);
  return record?.state?.bundle;
}

/** A kept earlier state; undefined if there is none, or it is of another network. */
export async function readSnapshot(host: Host, folder: StateFolder, path: string): Promise<StoredSnapshot | undefined> {
  const snapshot = await readJsonFile(host, path, snapshotCheck, path === folder.journal ? 'record' : 'state');
  return snapshot && isOfNetwork(snapshot.record, folder.network) ? snapshot : undefined;
}

/**
 * Undefined if there is none or it is of an earlier boot. Throws a Failure for a journal of this boot that may belong
 * to another network: it can only be put back there, so nothing may replace it. Test: apply/networks.test.ts.
 */
export async function readJournal(host: Host, folder: StateFolder): Promise<StoredSnapshot | undefined> {
  const journal = await readJsonFile(host, folder.journal, snapshotCheck, 'record');
  if (journal?.record.bootId !== folder.network.bootId) return undefined;
  if (isOfNetwork(journal.record, folder.network)) return journal;
  const { network } = journal.record;
  const networks = { network: network?.inode, here: folder.network.inode };
  throw new Failure('bad-state-folder', { problem: 'other-network', path: folder.journal, ...networks });
}

/** The record and the journal's record, of any network and boot. Undefined if damaged. */
async function readBinding(host: Host, { record, journal }: ReturnType<typeof filesIn>) {
  return {
    record: await readJsonFile(host, record, recordCheck, 'copy').catch(() => undefined),
    journal: (await readJsonFile(host, journal, snapshotCheck, 'copy').catch(() => undefined))?.record,
  };
}

/** A file of the state folder; undefined if missing. Throws a Failure if the check refuses it. */
export async function readJsonFile<T>(
  host: Host,
  path: string,
  check: Check<T>,
  of: StoredKind,
): Promise<T | undefined> {
  const damaged = (reason: JsonFault | string) =>
    new Failure('bad-state-folder', { problem: 'damaged', path, of, reason });
  try {
    const content = await host.readFile(path);
    if (content === undefined) return undefined;
    const reading = readChecked(check, JSON.parse(content));
    if ('value' in reading) return reading.value;
    throw damaged(reading.wrong);
  } catch (error) {
    // The parser's message quotes the text, which may be of an unrelated file.
    if (error instanceof SyntaxError) throw damaged({ problem: 'no-json' });
    throw error instanceof UnreadableFile ? damaged(error.reason) : error;
  }
}

export function writeJson(host: Host, path: string, value: object): Promise<void> {
  return host.replaceFile(path, `${JSON.stringify(value)}\n`);
}

/** Folders with a record or journal that says whose it is. */
async function listPlaces(host: Host, { base }: StateFolder) {
  const names = (await host.list(base)).filter((name) => /^network-\d+-kpc-[\da-f]{16}$/.test(name));
  const places = [];
  for (const path of [base, ...names.map((name) => `${base}/${name}`)]) {
    places.push({ path, ...(await readBinding(host, filesIn(path))) });
  }
  return places;
}

/** Unfinished applies in other networks of this boot, and their records if this network has none. */
export async function listOtherNetworks(host: Host, folder: StateFolder): Promise<readonly OtherNetwork[]> {
  const { network: here } = folder;
  const places = await listPlaces(host, folder);
  const isOwn = (record: OwnershipRecord | undefined) => record !== undefined && isOfNetwork(record, here);
  const isOther = (record: OwnershipRecord | undefined): record is OwnershipRecord =>
    record?.bootId === here.bootId && !isOwn(record);
  const hasOwn = places.some(({ record, journal }) => isOwn(record) || isOwn(journal));
  return places.flatMap(({ path, record, journal }): readonly OtherNetwork[] => {
    const other = (of: OtherNetwork['of'], { network }: OwnershipRecord): OtherNetwork => {
      return { of, path: filesIn(path)[of], here: here.inode, network: network?.inode, mark: network?.mark };
    };
    if (isOther(journal)) return [other('journal', journal)];
    return hasOwn || !isOther(record) ? [] : [other('record', record)];
  });
}

/** Removes the folders of networks that ended with an earlier boot. */
export async function forgetEarlierBoots(host: Host, folder: StateFolder): Promise<void> {
  for (const { path, record, journal } of await listPlaces(host, folder)) {
    if (path === folder.base) continue;
    const { lastCommand, tables } = filesIn(path);
    const read = (file: string) => readJsonFile(host, file, bootCheck, 'copy').catch(() => undefined);
    const boots = [record, journal, await read(lastCommand), await read(tables)].flatMap((each) => each?.bootId ?? []);
    if (boots.length > 0 && !boots.includes(folder.network.bootId)) await host.remove(path);
  }
}

/** kube-proxy's tables as `nft list` would print them, and the generation for which that holds. */
export type KnownTables = Omit<Shaped<typeof knownTablesSchema>, 'bootId'>;

/** The stored tables, if the rules are still of their generation. */
export async function recallTables(
  host: Host,
  folder: StateFolder,
  generation: NftGeneration,
): Promise<KnownTables | undefined> {
  // A damaged file only costs a listing.
  const known = await readJsonFile(host, folder.tables, knownTablesCheck, 'copy').catch(() => undefined);
  const isStill = known?.bootId === folder.network.bootId && isLaterBy(0, known.generation, generation);
  return isStill ? known : undefined;
}

/** Stores the tables; may fail, since they only save a listing. */
export async function rememberTables(host: Host, folder: StateFolder, known: KnownTables): Promise<void> {
  try {
    await writeJson(host, folder.tables, { bootId: folder.network.bootId, ...known });
  } catch {
    // An outdated one would only take space that the next journal needs. Test: apply/nft-generation.test.ts.
    await host.remove(folder.tables).catch(() => undefined);
  }
}

type BalancerRecord = Shaped<typeof balancerRecordSchema>;

/** nginx's file in userspace mode. It outlives a reboot, and so does its record. */
export interface BalancerFile {
  readonly text: string;
  /** Whether its content is what kpc-apply wrote, in this network or before a reboot. */
  readonly isOwned: boolean;
  /** Whether --adopt takes it over: kpc-apply would write the same, and no other network owns it. */
  readonly isAdoptable: boolean;
}

export async function readBalancerFile(host: Host, folder: StateFolder): Promise<BalancerFile | undefined> {
  let content: string | undefined;
  try {
    content = await host.readFile(folder.balancer);
  } catch (error) {
    if (error instanceof UnreadableFile) return { text: '', isOwned: false, isAdoptable: false };
    throw error;
  }
  if (content === undefined) return undefined;
  const record = await readBalancerRecord(host, folder);
  const isWritten = record?.written.includes(hashHex(content)) ?? false;
  const isOthers = record?.bootId === folder.network.bootId && !isOfNetwork(record, folder.network);
  const isOwned = isWritten && !isOthers;
  const isWhole = formatBalancer(parseBalancer(content).proxyPorts).join('') === content;
  return { text: content, isOwned, isAdoptable: isOwned || (isWhole && !(isWritten && isOthers)) };
}

/** A damaged record owns nothing. */
function readBalancerRecord(host: Host, folder: StateFolder): Promise<BalancerRecord | undefined> {
  return readJsonFile(host, folder.balancerRecord, balancerRecordCheck, 'copy').catch(() => undefined);
}

/** Replaces the file if `check` accepts the new text. Both texts are recorded first, in case this is killed. */
export async function replaceBalancerFile(
  host: Host,
  folder: StateFolder,
  content: string,
  check: (path: string) => Promise<void>,
): Promise<void> {
  const next = `${folder.balancer}.new`;
  await host.replaceFile(next, content);
  await check(next);
  await recordBalancer(host, folder, content);
  await host.renameFile(next, folder.balancer);
}

/** Records the file as it is: --adopt takes it over unchanged. */
export async function claimBalancerFile(host: Host, folder: StateFolder): Promise<void> {
  const file = await readBalancerFile(host, folder);
  if (!file || file.isOwned) return;
  const { bootId, ...network } = folder.network;
  await writeJson(host, folder.balancerRecord, {
    bootId,
    network,
    written: [hashHex(file.text)],
  } satisfies BalancerRecord);
}

async function recordBalancer(host: Host, folder: StateFolder, content: string): Promise<void> {
  const file = await readBalancerFile(host, folder);
  const present = file && hashHex(file.text);
  const record = file?.isOwned ? await readBalancerRecord(host, folder) : undefined;
  const found = file?.isOwned ? record?.found : present;
  const hashes = [...(file?.isOwned && present !== undefined ? [present] : []), hashHex(content)];
  const { bootId, ...network } = folder.network;
  // After a rollback, the file again has the content that was found. Test: apply/real-networks.slow.test.ts.
  const written = hashes.filter((hash) => hash !== found);
  await writeJson(host, folder.balancerRecord, { bootId, network, written, found } satisfies BalancerRecord);
}
