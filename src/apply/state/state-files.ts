// Files of the state folder besides the record: kube-proxy's last known tables, and the balancer's file.
import { knownTables as knownTablesCheck, balancerRecord as balancerRecordCheck } from '#checks';
import type { Shaped } from '../../base/json/schema.ts';
import { isLaterBy, type NftGeneration } from '../node/nft-generation.ts';
import type { Host } from '../node/host.ts';
import { readJsonFile, writeJson, isOfNetwork, type StateFolder } from './record.ts';
import type { knownTablesSchema, balancerRecordSchema } from './schemas.ts';
import { hashHex } from '#hash';
import { UnreadableFile } from '../../base/read-file.ts';
import { formatBalancer, parseBalancer } from '../../kernel/balancer/balancer.ts';

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
