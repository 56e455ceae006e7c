import { knownTables as knownTablesCheck } from '#checks';
import type { Shaped } from '../../base/json/schema.ts';
import { isLaterBy, type NftGeneration } from '../node/nft-generation.ts';
import type { Host } from '../node/host.ts';
import { readJson, writeJson, type StateFolder } from './record.ts';
import type { knownTablesSchema } from './schemas.ts';

/** kube-proxy's tables of nftables as `nft list` would print them, and the generation of the rules that this is true of. */
export type KnownTables = Omit<Shaped<typeof knownTablesSchema>, 'bootId'>;

/** The tables, if the rules are still of the generation in which kpc-apply last knew them. */
export async function recallTables(
  host: Host,
  folder: StateFolder,
  generation: NftGeneration,
): Promise<KnownTables | undefined> {
  // A damaged file only costs a listing.
  const known = await readJson(host, folder.tables, knownTablesCheck, 'remove it').catch(() => undefined);
  const isStill = known?.bootId === folder.network.bootId && isLaterBy(0, known.generation, generation);
  return isStill ? known : undefined;
}

/** Remembers them. This saves the next command a listing and no more, so it may fail. */
export async function rememberTables(host: Host, folder: StateFolder, known: KnownTables): Promise<void> {
  try {
    await writeJson(host, folder.tables, { bootId: folder.network.bootId, ...known });
  } catch {
    // Of another generation, it would only take the space that the next journal needs.
    // Test: what is known saves time and no more: without space for it an apply lists, and ends well.
    await host.remove(folder.tables).catch(() => undefined);
  }
}
