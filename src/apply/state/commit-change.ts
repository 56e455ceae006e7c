import { hasCode } from '../../bundle/errors.ts';
import { pruneStates, statePath } from './history.ts';
import type { Host } from '../node/host.ts';
import { writeJson, type OwnershipRecord, type StateFolder } from './record.ts';

/**
 * Ends a change that is to stay. The record first: if the journal is still there afterwards, the next apply finds that
 * nothing is left to do. The journal becomes the state that was replaced; a repair replaces none.
 */
export async function commit(
  host: Host,
  folder: StateFolder,
  record: OwnershipRecord,
  { isRepair = false } = {},
): Promise<void> {
  await writeRecord(host, folder, record);
  const { state } = record;
  if (isRepair || state?.replaced === undefined) return host.remove(folder.journal);
  const path = statePath(folder, state.replaced);
  await replacing(host, path, () => host.renameFile(folder.journal, path));
  await pruneStates(host, folder, state).catch(() => undefined);
}

export function writeRecord(host: Host, folder: StateFolder, record: OwnershipRecord): Promise<void> {
  return replacing(host, folder.record, () => writeJson(host, folder.record, record));
}

/** A folder in the place of the file has no owner, and no rename replaces it. */
async function replacing(host: Host, path: string, rename: () => Promise<void>): Promise<void> {
  try {
    await rename();
  } catch (error) {
    if (!hasCode(error, 'EISDIR')) throw error;
    await host.remove(path);
    await rename();
  }
}
