import { Failure } from '../state/failure.ts';
import { formatTime } from '../state/history.ts';
import type { Host } from '../node/host.ts';
import { findHolder, withLock } from '../state/lock.ts';
import { readDoing } from '../node/tool-time-limits.ts';
import { findProcess, identifyOwnProcess, readBootId } from '../state/process-identity.ts';
import { writeJson, type OwnershipRecord, type StateFolder } from '../state/record.ts';
import { endUnconfirmed, keepConfirmed, readUnconfirmed, readQuestion, type Question } from './unconfirmed-apply.ts';

/** Who waits for whose word: what confirmation needs of a session. */
interface Waiting {
  readonly host: Host;
  readonly folder: StateFolder;
  readonly signal?: AbortSignal | undefined;
}

const pollMilliseconds = 200;

/** How long `kpc-apply confirm` waits for the apply to take notice. */
const noticeMilliseconds = 15_000;

/**
 * Waits until the operator runs `kpc-apply confirm`, and throws a Failure where that does not happen in time. Both sides
 * rename the file that stands for the question, and only one of two renames can succeed: the answer is never yes and no at once.
 * A yes stays on the disk until the change does.
 */
export async function awaitConfirmation(
  { host, folder, signal }: Waiting,
  {
    id,
    milliseconds,
    record,
  }: { readonly id: string; readonly milliseconds: number; readonly record: OwnershipRecord },
): Promise<void> {
  await host.remove(folder.confirmed);
  const deadline = host.uptime() + milliseconds;
  const question: Question = { ...(await identifyOwnProcess(host)), id, deadline, record };
  await writeJson(host, folder.awaiting, question);
  const left = () => (signal?.aborted ? 0 : deadline - host.uptime());
  while (left() > 0) {
    if ((await host.readFile(folder.confirmed)) !== undefined) return;
    await host.sleep(Math.min(pollMilliseconds, left()));
  }
  if (await isConfirmedAfterAll({ host, folder })) return;
  if (signal?.aborted) throw new Failure('interrupted', 'stopped by a signal', 'apply again when you are ready');
  throw new Failure(
    'not-confirmed',
    `no confirmation within ${milliseconds / 1000} s`,
    'if the node can still be reached, apply again and run "kpc-apply confirm" in time',
  );
}

/** Takes the question back; true where the operator has just said yes. Call it with the lock held. */
export async function isConfirmedAfterAll({ host, folder }: Waiting): Promise<boolean> {
  try {
    await host.renameFile(folder.awaiting, `${folder.awaiting}.expired`);
  } catch {
    // Only the other's rename is a yes: the question may as well have been lost, or the disk have failed. Once the
    // question has gone, the operator cannot say yes any more.
    await host.remove(folder.awaiting);
    if ((await host.readFile(folder.confirmed)) !== undefined) return true;
  }
  await host.remove(`${folder.awaiting}.expired`);
  return false;
}

/** Says yes to an apply that waits for it, and makes the change stay where its process is gone. Throws a Failure where none waits. */
export async function confirmApply(waiting: Waiting): Promise<void> {
  const { host, folder } = waiting;
  const question = await readQuestion(host, folder.awaiting);
  if (!question || question.bootId !== (await readBootId(host))) throw await explainSilence(waiting);
  try {
    await host.renameFile(folder.awaiting, folder.confirmed);
  } catch {
    throw await explainSilence(waiting);
  }
  const deadline = host.uptime() + noticeMilliseconds;
  while ((await host.readFile(folder.confirmed)) !== undefined && host.uptime() < deadline) {
    if ((await findProcess(host, question)) === 'gone' && (await keepAlone(waiting, question))) return;
    await host.sleep(pollMilliseconds);
  }
}

/** In the place of the process that asked. Gives false where another kpc-apply is at work just now. */
async function keepAlone({ host, folder }: Waiting, { id }: Question): Promise<boolean> {
  try {
    await withLock(host, folder.path, 'confirm', () => keepConfirmed({ host, folder }, id));
    return true;
  } catch (error) {
    if (error instanceof Failure && error.code === 'busy') return false;
    throw error;
  }
}

const waitForQuestion = 'wait until apply asks for it, then run "kpc-apply confirm"';

/** Why there is nothing to say yes to. */
async function explainSilence({ host, folder }: Waiting): Promise<Failure> {
  const unconfirmed = await readUnconfirmed({ host, folder });
  const explain = (advice: string, why = '') =>
    new Failure('nothing-to-confirm', `no apply is waiting to be confirmed${why}`, advice);
  if (!unconfirmed) {
    const holder = await findHolder(host, folder.path);
    if (!holder?.command.startsWith('apply '))
      return explain('run confirm within the time that --confirm-timeout gave to apply');
    return explain(waitForQuestion, `: process ${holder.pid} ("${holder.command}") is still at work`);
  }
  if (unconfirmed.bootId !== (await readBootId(host))) {
    await endUnconfirmed({ host, folder });
    return explain('apply the bundle again', ': the node has rebooted since, so the changes of that apply are gone');
  }
  const place = await findProcess(host, unconfirmed);
  switch (place) {
    case 'running':
    case 'out of sight': {
      const doing = await readDoing(host, folder);
      const what = doing?.id === unconfirmed.id ? `; it waits for ${doing.what} since ${formatTime(doing.since)}` : '';
      return explain(
        waitForQuestion,
        `: process ${unconfirmed.pid} is still changing the node, or putting it back${what}`,
      );
    }
    case 'gone':
      return explain(
        '"kpc-apply rollback" restores the state before it, unless that has been done already',
        ': the apply was killed before it could ask, and its changes are being put back',
      );
    default:
      return place satisfies never;
  }
}
