import type { StoredKind } from '../../base/findings/apply.ts';
import type { BundleFault } from '../../base/findings/bundle.ts';
import type { OtherNetwork } from '../../base/findings/node-checks.ts';
import { UnreadableFile } from '../../base/unread.ts';
import {
  ownershipRecord as recordCheck,
  snapshot as snapshotCheck,
  boot as bootCheck,
  knownTables as knownTablesCheck,
  balancerRecord as balancerRecordCheck,
} from '#checks';
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
  knownTablesSchema,
  balancerRecordSchema,
} from './schemas.ts';
import { isLaterBy, type NftGeneration } from '../node/tools.ts';
import { hashHex } from '#hash';
import { formatBalancer, parseBalancer } from '../../kernel/balancer/balancer.ts';

export const defaultStateFolder = '/var/lib/kpc';

export type BundleMark = Shaped<typeof bundleSchema>;

export type StateMark = Shaped<typeof stateSchema>;

export type DrainingServer = Shaped<typeof drainingSchema>;

/** The objects that kpc-apply made on this node and may remove. Valid for one network during one boot. */
export type OwnershipRecord = Shaped<typeof recordSchema>;

/**
 * Names the files of one network, which has its own folder unless it is the node's first. A journal exists from before the first change
 * until the last check, then becomes an earlier state: see history.ts.
 */
export function stateFolder(base: string, network: NodeNetwork) {
  const path = network.mark === undefined ? base : `${base}/network-${network.inode}-${network.mark}`;
  return {
    network,
    base,
    path,
    ...filesIn(path),
    /** The highest serial of an applied signed bundle, for all networks. */
    newestSerial: `${base}/newest-serial.json`,
    /** One file for all networks, because nginx knows this path. See BalancerFile. */
    balancer: `${base}/balancer.conf`,
    balancerRecord: `${base}/balancer.json`,
  } as const;
}

function filesIn(path: string) {
  return {
    record: `${path}/record.json`,
    journal: `${path}/journal.json`,
    lastCommand: `${path}/last-command.json`,
    awaiting: `${path}/awaiting.json`,
    confirmed: `${path}/confirmed.json`,
    unconfirmed: `${path}/unconfirmed.json`,
    doing: `${path}/doing.json`,
    tables: `${path}/tables.json`,
  } as const;
}

export type StateFolder = ReturnType<typeof stateFolder>;

export type StoredSnapshot = Shaped<typeof snapshotSchema>;

function isOfNetwork({ bootId, network }: Shaped<typeof bindingSchema>, here: NodeNetwork): boolean {
  return bootId === here.bootId && network?.inode === here.inode && network.mark === here.mark;
}

/** Returns this network's record; an empty one if the file is from another network or boot. */
export async function readRecord(host: Host, folder: StateFolder): Promise<OwnershipRecord> {
  const { bootId, ...network } = folder.network;
  const record = await readJsonFile(host, folder.record, recordCheck, 'record');
  return record && isOfNetwork(record, folder.network)
    ? record
    : { bootId, network, owned: nothingOwned, draining: [] };
}

export async function readLastBundle(host: Host, folder: StateFolder): Promise<BundleMark | undefined> {
  const record = await readJsonFile(host, folder.record, recordCheck, 'record').catch(() => undefined);
  return record?.state?.bundle;
}

/** Reads a kept state; undefined if there is none or it belongs to another network. */
export async function readSnapshot(host: Host, folder: StateFolder, path: string): Promise<StoredSnapshot | undefined> {
  const snapshot = await readJsonFile(host, path, snapshotCheck, path === folder.journal ? 'record' : 'state');
  return snapshot && isOfNetwork(snapshot.record, folder.network) ? snapshot : undefined;
}

/**
 * Reads the journal; undefined if there is none or it is from an earlier boot. Throws a Failure for a journal of this boot that may belong
 * to another network. Such a journal can only be rolled back there, so nothing may replace it. Test: apply/networks.test.ts.
 */
export async function readJournal(host: Host, folder: StateFolder): Promise<StoredSnapshot | undefined> {
  const journal = await readJsonFile(host, folder.journal, snapshotCheck, 'record');
  if (journal?.record.bootId !== folder.network.bootId) return undefined;
  if (isOfNetwork(journal.record, folder.network)) return journal;
  const { network } = journal.record;
  const networks = { network: network?.inode, here: folder.network.inode };
  throw new Failure('bad-state-folder', { problem: 'other-network', path: folder.journal, ...networks });
}

async function readBinding(host: Host, { record, journal }: ReturnType<typeof filesIn>) {
  return {
    record: await readJsonFile(host, record, recordCheck, 'copy').catch(() => undefined),
    journal: (await readJsonFile(host, journal, snapshotCheck, 'copy').catch(() => undefined))?.record,
  };
}

/** Reads a file in the state folder; undefined if missing. Throws a Failure if `check` refuses the content. */
export async function readJsonFile<T>(
  host: Host,
  path: string,
  check: Check<T>,
  of: StoredKind,
): Promise<T | undefined> {
  const damaged = (reason: BundleFault) => new Failure('bad-state-folder', { problem: 'damaged', path, of, reason });
  try {
    const content = await host.readFile(path);
    if (content === undefined) return undefined;
    const reading = readChecked(check, JSON.parse(content));
    if ('value' in reading) return reading.value;
    throw damaged(reading.wrong);
  } catch (error) {
    // Do not pass on the parser's message, because it quotes text that may come from an unrelated file.
    if (error instanceof SyntaxError) throw damaged({ problem: 'no-json' });
    throw error instanceof UnreadableFile ? damaged({ problem: 'unread', reason: error.reason }) : error;
  }
}

export function writeJson(host: Host, path: string, value: object): Promise<void> {
  return host.replaceFile(path, `${JSON.stringify(value)}\n`);
}

async function listPlaces(host: Host, { base }: StateFolder) {
  const names = (await host.list(base)).filter((name) => /^network-\d+-kpc-[\da-f]{16}$/.test(name));
  const places = [];
  for (const path of [base, ...names.map((name) => `${base}/${name}`)]) {
    places.push({ path, ...(await readBinding(host, filesIn(path))) });
  }
  return places;
}

/** Lists unfinished applies in other networks during this boot. Also lists other networks' records if this network has none. */
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

export async function forgetEarlierBoots(host: Host, folder: StateFolder): Promise<void> {
  for (const { path, record, journal } of await listPlaces(host, folder)) {
    if (path === folder.base) continue;
    const { lastCommand, tables } = filesIn(path);
    const read = (file: string) => readJsonFile(host, file, bootCheck, 'copy').catch(() => undefined);
    const boots = [record, journal, await read(lastCommand), await read(tables)].flatMap((each) => each?.bootId ?? []);
    if (boots.length > 0 && !boots.includes(folder.network.bootId)) await host.remove(path);
  }
}

/** kube-proxy's tables as `nft list` would print them, and the generation at which they have this content. */
export type KnownTables = Omit<Shaped<typeof knownTablesSchema>, 'bootId'>;

export async function recallTables(
  host: Host,
  folder: StateFolder,
  generation: NftGeneration,
): Promise<KnownTables | undefined> {
  // Ignore a damaged file, because it only costs a listing.
  const known = await readJsonFile(host, folder.tables, knownTablesCheck, 'copy').catch(() => undefined);
  const isStill = known?.bootId === folder.network.bootId && isLaterBy(0, known.generation, generation);
  return isStill ? known : undefined;
}

/** Stores the tables. Errors are ignored, because the file only saves a listing. */
export async function rememberTables(host: Host, folder: StateFolder, known: KnownTables): Promise<void> {
  try {
    await writeJson(host, folder.tables, { bootId: folder.network.bootId, ...known });
  } catch {
    // An outdated file would only take space that the next journal needs. Test: apply/nft-generation.test.ts.
    await host.remove(folder.tables).catch(() => undefined);
  }
}

type BalancerRecord = Shaped<typeof balancerRecordSchema>;

/** nginx's file in userspace mode. The file and its record outlive a reboot. */
export interface BalancerFile {
  readonly text: string;
  readonly isOwned: boolean;
  /** Whether --adopt may take the file over, because kpc-apply would write the same text and no other network owns it. */
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

function readBalancerRecord(host: Host, folder: StateFolder): Promise<BalancerRecord | undefined> {
  return readJsonFile(host, folder.balancerRecord, balancerRecordCheck, 'copy').catch(() => undefined);
}

/** Replaces the file if `check` accepts the new text. Records the old and the new text first, because the process may be killed. */
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

/** Records the file as kpc-apply's, because --adopt takes it over unchanged. */
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
  // After a rollback, the file again has the content that was found, which is not kpc-apply's. Test: apply/real-networks.slow.test.ts.
  const written = hashes.filter((hash) => hash !== found);
  await writeJson(host, folder.balancerRecord, { bootId, network, written, found } satisfies BalancerRecord);
}
