import { hasCode } from '../bundle/errors.ts';
import type { Host } from './host.ts';
import { writeJson, type OwnershipRecord, type StateFolder } from './record.ts';

/**
 * Ends a change that is to stay. The record first: if the journal is still there afterwards, the next apply finds that
 * nothing is left to do.
 */
export async function commit(host: Host, folder: StateFolder, record: OwnershipRecord): Promise<void> {
  await writeJson(host, folder.record, record);
  try {
    await host.renameFile(folder.journal, folder.previous);
  } catch (error) {
    // A folder in the place of the file, which nobody can go back to.
    if (!hasCode(error, 'EISDIR')) throw error;
    await host.remove(folder.previous);
    await host.renameFile(folder.journal, folder.previous);
  }
}
