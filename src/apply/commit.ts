import { hasCode } from '../bundle/errors.ts';
import type { Host } from './host.ts';
import { writeJson } from './record.ts';
import type { OwnershipRecord, StateFolder } from './record.ts';

/**
 * Ends a change that is to stay. The record first: if the journal is still there afterwards, the next apply finds that
 * nothing is left to do.
 */
export async function commit(host: Host, folder: StateFolder, record: OwnershipRecord): Promise<void> {
  await writeRecord(host, folder, record);
  await replacing(host, folder.previous, () => host.renameFile(folder.journal, folder.previous));
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
