import { boot as bootCheck } from '#checks';
import type { Host } from '../node/host.ts';
import { filesIn, isOfNetwork, readBinding, readJson, type OwnershipRecord, type StateFolder } from './record.ts';

interface Place extends Awaited<ReturnType<typeof readBinding>> {
  readonly path: string;
}

/** All folders with a record or a journal, whole enough to say whose it is. */
async function listPlaces(host: Host, { base }: StateFolder): Promise<readonly Place[]> {
  const names = (await host.list(base)).filter((name) => /^network-\d+-kpc-[\da-f]{16}$/.test(name));
  const places: Place[] = [];
  for (const path of [base, ...names.map((name) => `${base}/${name}`)]) {
    places.push({ path, ...(await readBinding(host, filesIn(path))) });
  }
  return places;
}

/**
 * What the state folder holds of other networks of this boot, where a command may be meant for them: each apply that did not finish,
 * and each record while this network has none.
 */
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
