import { isConfirmedAfterAll } from './confirm-apply.ts';
import { putBack, type Session } from './change-node.ts';
import { Failure } from '../state/failure.ts';
import { noteCommand } from '../state/last-command.ts';
import { withLock } from '../state/lock.ts';
import { readDoing } from '../node/tool-time-limits.ts';
import { findProcess, readBootId } from '../state/process-identity.ts';
import { readSnapshot } from '../state/record.ts';
import { endUnconfirmed, keepConfirmed, readUnconfirmed, type Unconfirmed, readQuestion } from './unconfirmed-apply.ts';

/** What became of an apply that was to be confirmed, as far as the process that stood by had to do with it. */
export type StandByOutcome = 'nothing-to-do' | 'kept' | 'put-back' | 'stuck';

const pollMilliseconds = 500;

/** How long an apply may take, once its time is over, to take its question back. It only stops where it was stopped. */
const graceMilliseconds = 10_000;

/** How long an apply may take for its own work between two tools: it reads what they print. */
const hangMilliseconds = 40_000;

/** How long a tool may go on that a killed apply has been feeding: it finds its input cut short, and ends. */
const orphanMilliseconds = 2000;

/** How often putting back is tried, and how long it waits in between: the operator may be unable to reach the node. */
const attempts = 30;
const pauseMilliseconds = 10_000;

/**
 * Stands by for an apply that is to be confirmed: where its process has gone or does nothing any more, everything is put
 * back when the time is over, or at once where it never came to ask. Ends as soon as another has seen to it: that
 * process itself, or one that confirms, applies or rolls back.
 */
export async function standBy(session: Session, id: string): Promise<StandByOutcome> {
  const { host, folder } = session;
  let attempt = 0;
  const isStopped = () => session.signal?.aborted === true;
  while (attempt < attempts && !isStopped()) {
    const unconfirmed = await findUnconfirmed(session, id);
    if (!unconfirmed) return 'nothing-to-do';
    if (!(await isLeft(session, unconfirmed))) {
      await endHanging(session, unconfirmed);
      // Two that stand by do not keep in step.
      await host.sleep(pollMilliseconds + (host.pid % 100));
      continue;
    }
    if ((await host.readFile(folder.awaiting).catch(() => '')) === undefined) await host.sleep(orphanMilliseconds);
    const outcome = await unlessBusy(() =>
      withLock(host, folder.path, 'rollback of an unconfirmed apply', () => end(session, id)),
    );
    if (outcome === 'busy') {
      await endStopped(session, unconfirmed);
      await host.sleep(pollMilliseconds + (host.pid % 100));
    } else if (outcome === 'stuck') {
      attempt++;
      await host.sleep(pauseMilliseconds);
    } else return outcome;
  }
  return isStopped() ? 'nothing-to-do' : 'stuck';
}

/** That very apply, on this very node, where it has not ended. */
async function findUnconfirmed(session: Session, id: string): Promise<Unconfirmed | undefined> {
  const { host } = session;
  const unconfirmed = await readUnconfirmed(session);
  const isIt =
    unconfirmed?.id === id &&
    unconfirmed.bootId === (await readBootId(host)) &&
    unconfirmed.network === (await host.readLink('/proc/self/ns/net'));
  return isIt ? unconfirmed : undefined;
}

/** Whether it is for others than its process to end it. */
async function isLeft({ host, folder }: Session, unconfirmed: Unconfirmed): Promise<boolean> {
  // One that is damaged cannot be answered, and so is none.
  const question = await readQuestion(host, folder.awaiting).catch(() => undefined);
  if (question?.id === unconfirmed.id) return host.uptime() >= question.deadline;
  return (await findProcess(host, unconfirmed)) === 'gone';
}

/** Call it with the lock held. */
async function end(session: Session, id: string): Promise<StandByOutcome> {
  const { host, folder } = session;
  const unconfirmed = await findUnconfirmed(session, id);
  if (!unconfirmed) return 'nothing-to-do';
  if ((await isConfirmedAfterAll(session)) && (await keepConfirmed(session, id))) return 'kept';
  const snapshot = await readSnapshot(host, folder.journal, unconfirmed.bootId);
  const left = snapshot ? await putBack(session, snapshot) : 'nothing';
  if (left !== 'nothing') return 'stuck';
  await endUnconfirmed(session);
  if (!snapshot) return 'nothing-to-do';
  await noteCommand(session, { command: 'apply', outcome: 'put-back', reason: 'it was not confirmed' });
  return 'put-back';
}

async function unlessBusy<T>(work: () => Promise<T>): Promise<T | 'busy'> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Failure && error.code === 'busy') return 'busy';
    throw error;
  }
}

/** Ends a process that hangs before it asks, or as it puts everything back: what it waits for should have ended long ago. */
async function endHanging({ host, folder }: Session, unconfirmed: Unconfirmed): Promise<void> {
  const question = await readQuestion(host, folder.awaiting).catch(() => undefined);
  const doing = await readDoing(host, folder);
  if (question?.id === unconfirmed.id || doing?.id !== unconfirmed.id) return;
  if (host.uptime() < doing.until + hangMilliseconds) return;
  if ((await findProcess(host, unconfirmed)) === 'running') await host.kill(unconfirmed.pid);
}

/** Ends a process that has been stopped (SIGSTOP) and would hold the lock for ever: its question is still there. */
async function endStopped({ host, folder }: Session, unconfirmed: Unconfirmed): Promise<void> {
  const question = await readQuestion(host, folder.awaiting).catch(() => undefined);
  if (question?.id !== unconfirmed.id || host.uptime() < question.deadline + graceMilliseconds) return;
  if ((await findProcess(host, unconfirmed)) === 'running') await host.kill(unconfirmed.pid);
}
