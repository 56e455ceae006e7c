import { Failure } from './failure.ts';
import type { Host } from './host.ts';
import { findProcess, identifyOwnProcess, processShape, type ProcessIdentity } from './process-identity.ts';
import { readJson, type StateFolder } from './record.ts';

/** Who waits for whose word: what confirmation needs of a session. */
interface Waiting {
  readonly host: Host;
  readonly folder: StateFolder;
  readonly signal?: AbortSignal | undefined;
}

const pollMilliseconds = 200;

/**
 * Waits until somebody runs `kpc-apply confirm`, and throws a Failure where nobody does in time. Both sides rename the
 * file that stands for the question, and only one of two renames can succeed: the answer is never yes and no at once.
 */
export async function awaitConfirmation({ host, folder, signal }: Waiting, milliseconds: number): Promise<void> {
  await host.remove(folder.confirmed);
  await host.replaceFile(folder.awaiting, `${JSON.stringify(await identifyOwnProcess(host))}\n`);
  const deadline = host.uptime() + milliseconds;
  const left = () => (signal?.aborted ? 0 : deadline - host.uptime());
  while (left() > 0) {
    if ((await host.readFile(folder.confirmed)) !== undefined) return finish(host, folder);
    await host.sleep(Math.min(pollMilliseconds, left()));
  }
  try {
    await host.renameFile(folder.awaiting, `${folder.awaiting}.expired`);
  } catch {
    // Only the other's rename is a yes: the question may as well have been lost, or the disk have failed. Once the
    // question has gone, nobody can say yes any more.
    await host.remove(folder.awaiting);
    if ((await host.readFile(folder.confirmed)) !== undefined) return finish(host, folder);
  }
  await host.remove(`${folder.awaiting}.expired`);
  if (signal?.aborted) throw new Failure('interrupted', 'stopped by a signal', 'apply again when you are ready');
  throw new Failure(
    'not-confirmed',
    `nobody confirmed within ${milliseconds / 1000} s`,
    'if the node can still be reached, apply again and run "kpc-apply confirm" in time',
  );
}

async function finish(host: Host, folder: StateFolder): Promise<void> {
  await host.remove(folder.confirmed);
}

/** Says yes to an apply that waits for it. Throws a Failure where none does. */
export async function confirmApply({ host, folder }: Waiting): Promise<void> {
  const waiting = await readJson<ProcessIdentity>(
    host,
    folder.awaiting,
    processShape,
    'remove it and apply again: an apply that waits goes back by itself when its time is over',
  );
  if (waiting && (await findProcess(host, waiting)) !== 'gone') {
    try {
      return await host.renameFile(folder.awaiting, folder.confirmed);
    } catch {
      // It gave up just now.
    }
  }
  throw new Failure(
    'nothing-to-confirm',
    'no apply is waiting to be confirmed',
    waiting
      ? 'the one that waited has ended; "kpc-apply rollback" brings the node to the state before it'
      : 'confirm within the time that apply was given with --confirm-timeout',
  );
}
