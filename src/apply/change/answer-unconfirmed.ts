import { readDoing } from '../node/tool-time-limits.ts';
import { Failure } from '../state/failure.ts';
import { formatTime } from '../state/history.ts';
import { noteCommand } from '../state/last-command.ts';
import { findHolder, withLock } from '../state/lock.ts';
import { findProcess, readBootId } from '../state/process-identity.ts';
import { readSnapshot } from '../state/record.ts';
import type { Session } from './observe-node.ts';
import { putBack } from './carry-out.ts';
import {
  endUnconfirmed,
  findQuestion,
  isConfirmedAfterAll,
  keepConfirmed,
  readQuestion,
  readUnconfirmed,
  type Place,
  type Unconfirmed,
} from './unconfirmed-apply.ts';

/** How long `kpc-apply confirm` waits for the apply to take notice, and how often it looks. */
const noticeMilliseconds = 15_000;
const noticePollMilliseconds = 200;

/** Says yes to an apply that waits for it, and makes the change stay where its process is gone. Throws a Failure if none waits. */
export async function confirmApply(place: Place): Promise<void> {
  const { host, folder } = place;
  const question = await readQuestion(host, folder.awaiting);
  if (!question || question.bootId !== (await readBootId(host))) throw await explainSilence(place);
  try {
    await host.renameFile(folder.awaiting, folder.confirmed);
  } catch {
    throw await explainSilence(place);
  }
  const keep = () => withLock(host, folder.path, 'confirm', () => keepConfirmed(place, question.id));
  const deadline = host.uptime() + noticeMilliseconds;
  while ((await host.readFile(folder.confirmed)) !== undefined && host.uptime() < deadline) {
    if ((await findProcess(host, question)) === 'gone' && (await unlessBusy(keep)) !== 'busy') return;
    await host.sleep(noticePollMilliseconds);
  }
}

/** Gives "busy" where another kpc-apply is at work just now. */
async function unlessBusy<T>(work: () => Promise<T>): Promise<T | 'busy'> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Failure && error.code === 'busy') return 'busy';
    throw error;
  }
}

const waitForQuestion = 'wait until apply asks for it, then run "kpc-apply confirm"';

/** Why there is nothing to say yes to. */
async function explainSilence(waiting: Place): Promise<Failure> {
  const { host, folder } = waiting;
  const unconfirmed = await readUnconfirmed(waiting);
  const explain = (advice: string, why = '') =>
    new Failure('nothing-to-confirm', `no apply is waiting to be confirmed${why}`, advice);
  if (!unconfirmed) {
    const holder = await findHolder(host, folder.path);
    if (!holder?.command.startsWith('apply '))
      return explain('run confirm within the time that --confirm-timeout gave to apply');
    return explain(waitForQuestion, `: process ${holder.pid} ("${holder.command}") is still at work`);
  }
  if (unconfirmed.bootId !== (await readBootId(host))) {
    await endUnconfirmed(waiting);
    return explain('apply the bundle again', ': the node has rebooted since, so the changes of that apply are gone');
  }
  if ((await findProcess(host, unconfirmed)) === 'gone') {
    return explain(
      '"kpc-apply rollback" restores the state before it, unless that has been done already',
      ': the apply was killed before it could ask, and its changes are being put back',
    );
  }
  const doing = await readDoing(host, folder);
  const what = doing?.id === unconfirmed.id ? `; it waits for ${doing.what} since ${formatTime(doing.since)}` : '';
  const why = `: process ${unconfirmed.pid} is still changing the node, or putting it back${what}`;
  return explain(waitForQuestion, why);
}

/** What became of an unconfirmed apply, as far as the standby process had to do with it. */
export type StandByOutcome = 'nothing-to-do' | 'kept' | 'put-back' | 'stuck';

const standByPollMilliseconds = 500;

/** How long an apply may take, once its time is over, to take its question back. It only stops if it was stopped. */
const graceMilliseconds = 10_000;

/** How long an apply may take for its own work between two tools: it reads what they print. */
const hangMilliseconds = 40_000;

/** How long a tool may go on that a killed apply has been feeding: it finds its input cut short, and ends. */
const orphanMilliseconds = 2000;

/** How often putting back is tried, and how long it waits in between: the operator may be unable to reach the node. */
const attempts = 30;
const pauseMilliseconds = 10_000;

/**
 * Does the work of the standby of an unconfirmed apply: if that process has gone or hangs, puts everything
 * back when the time is over, or at once if it never got to ask. Ends as soon as another has seen to it: that
 * process itself, or one that confirms, applies or rolls back.
 */
export async function standBy(session: Session, id: string): Promise<StandByOutcome> {
  const { host, folder } = session;
  const isStopped = () => session.signal?.aborted === true;
  for (let attempt = 0; attempt < attempts && !isStopped();) {
    const unconfirmed = await findUnconfirmed(session, id);
    if (!unconfirmed) return 'nothing-to-do';
    let outcome: StandByOutcome | 'busy' = 'busy';
    if (await isLeft(session, unconfirmed)) {
      if ((await host.readFile(folder.awaiting).catch(() => '')) === undefined) await host.sleep(orphanMilliseconds);
      outcome = await unlessBusy(() =>
        withLock(host, folder.path, 'rollback of an unconfirmed apply', () => end(session, id)),
      );
    }
    if (outcome === 'busy') {
      await endIdle(session, unconfirmed);
      // Two standby processes do not keep in step.
      await host.sleep(standByPollMilliseconds + (host.pid % 100));
    } else if (outcome === 'stuck') {
      attempt++;
      await host.sleep(pauseMilliseconds);
    } else return outcome;
  }
  return isStopped() ? 'nothing-to-do' : 'stuck';
}

/** That very apply, on this very node, unless it has ended. */
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
  const question = await findQuestion(host, folder.awaiting, unconfirmed.id);
  if (question) return host.uptime() >= question.deadline;
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

/**
 * Ends a process that does nothing any more: it has been stopped (SIGSTOP) with its question still there, and would hold the lock
 * for ever; or it hangs before it asks, or as it puts everything back: what it waits for should have ended long ago.
 */
async function endIdle({ host, folder }: Session, unconfirmed: Unconfirmed): Promise<void> {
  const question = await findQuestion(host, folder.awaiting, unconfirmed.id);
  const doing = question ? undefined : await readDoing(host, folder);
  const isIdle = question
    ? host.uptime() >= question.deadline + graceMilliseconds
    : doing?.id === unconfirmed.id && host.uptime() >= doing.until + hangMilliseconds;
  if (isIdle && (await findProcess(host, unconfirmed)) === 'running') await host.kill(unconfirmed.pid);
}
