import { unconfirmed as unconfirmedCheck } from '#checks';
import type { Shaped } from '../../base/json/schema.ts';
import { describeError } from '../../base/system-errors.ts';
import type { Host } from '../node/host.ts';
import { readDoing, shortLimit } from '../node/tool-time-limits.ts';
import { Failure } from '../state/failure.ts';
import { commit } from '../state/history.ts';
import { noteCommand } from '../state/last-command.ts';
import { findHolder, findProcess, identifyOwnProcess, withLock } from '../state/lock.ts';
import { readJournal, readJson, writeJson, type OwnershipRecord, type StateFolder } from '../state/record.ts';
import type { unconfirmedSchema } from '../state/schemas.ts';
import type { Session } from './observe-node.ts';
import { assertNotInterrupted, putBack } from './carry-out.ts';

/**
 * An apply that is undone unless the operator confirms it, and the process that makes it. Its file exists from before the
 * first change until the change is kept or undone, so that another process can undo it if that one cannot. With the question it is in a second file, which the process that answers renames, yes or no.
 */
type Unconfirmed = Shaped<typeof unconfirmedSchema>;

/** An apply in one of these files, of this boot or another; undefined if there is none. */
function readApply(host: Host, path: string): Promise<Unconfirmed | undefined> {
  const advice = 'remove it and apply again: an apply that waits for confirmation is put back when its time is over';
  return readJson<Unconfirmed>(host, path, unconfirmedCheck, advice);
}

/** Whether an apply is one in this network. */
function isHere({ bootId, network }: Unconfirmed, folder: StateFolder): boolean {
  return bootId === folder.network.bootId && network === `net:[${folder.network.inode}]`;
}

/** What is asked or answered of this apply. A damaged question cannot be answered, and counts as none. */
async function findQuestion(host: Host, path: string, id: string): Promise<Unconfirmed['question']> {
  const asked = await readApply(host, path).catch(() => undefined);
  return asked?.id === id ? asked.question : undefined;
}

/** The standby that puts everything back: the name of the systemd timer and service of that apply. */
function unitName(id: string): string {
  return `kpc-apply-way-back-${id}`;
}

/** How long after the deadline systemd's timer fires. Normally another process has put everything back by then. */
const timerDelaySeconds = 5;

/**
 * Notes that the following change must be confirmed, and starts standby processes in case this process is killed, hangs
 * or is cut off: a process in its own session, which has loaded all it needs and so survives removal of the program,
 * and, if systemd runs, a timer, which survives the kill of the whole control group, as at logout. Both check that this
 * apply is still waiting; the lock decides which of them acts. Throws a Failure if no standby process can start.
 */
export async function beginUnconfirmed(session: Session, milliseconds: number): Promise<Unconfirmed> {
  const { host, folder, onEvent } = session;
  const process = await identifyOwnProcess(host);
  const id = `${process.pid}-${process.started}-${Math.round(host.uptime())}`;
  const unconfirmed: Unconfirmed = { ...process, id };
  const what = 'can put everything back if this process is killed';
  const warn = (only: string, error: unknown) =>
    onEvent({ kind: 'warning', text: `${only} ${what}: ${describeError(error)}` });
  try {
    await endUnconfirmed(session);
    await writeJson(host, folder.unconfirmed, unconfirmed);
    const [tool, ...start] = host.program ?? [];
    if (tool === undefined) throw new Error('kpc-apply does not know how it was started');
    const reload = session.balancerReload ? ['--balancer-reload', session.balancerReload.join(' ')] : [];
    const args = [...start, 'rollback', '--unconfirmed', id, '--state-dir', folder.base, ...reload];
    const [apart, timer] = await Promise.allSettled([
      host.startApart({ tool, args }),
      setTimer(host, id, [tool, ...args], Math.ceil(milliseconds / 1000) + timerDelaySeconds),
    ]);
    const hasTimer = timer.status === 'fulfilled' && timer.value;
    if (apart.status === 'rejected' && !hasTimer) throw apart.reason;
    if (apart.status === 'rejected') warn('only a systemd timer', apart.reason);
    if (timer.status === 'rejected') warn('no systemd timer', timer.reason);
    return unconfirmed;
  } catch (error) {
    await endUnconfirmed(session).catch(() => undefined);
    const advice = 'fix the cause, or apply without --confirm-timeout; nothing has been changed';
    throw new Failure('system-error', `nothing ${what}: ${describeError(error)}`, advice);
  }
}

/** Gives false where systemd does not run, or not for us: what it starts is in the namespaces of process 1. */
async function setTimer(host: Host, id: string, command: readonly string[], seconds: number): Promise<boolean> {
  if (!(await runsUnderSystemd(host))) return false;
  const args = [
    '--quiet',
    '--collect',
    `--unit=${unitName(id)}`,
    '--description=Puts back what kpc-apply did, unless it is confirmed',
    `--on-active=${seconds}s`,
    '--timer-property=AccuracySec=1s',
    ...(host.toolPath === undefined ? [] : [`--setenv=PATH=${host.toolPath}`]),
    '--',
    // systemd replaces variables in a command.
    // Test: a variable in the name of the state folder stays as it is.
    ...command.map((word) => word.replaceAll('$', '$$$$')),
  ];
  const result = await host.run({ tool: 'systemd-run', args }, { limit: shortLimit });
  if (result.kind === 'missing') throw new Error('systemd-run is missing');
  if (result.status === 0) return true;
  throw new Error(`systemd-run ended with ${result.status ?? result.signal}: ${result.stderr.trim()}`);
}

async function runsUnderSystemd(host: Host): Promise<boolean> {
  if (!(await host.isWritable('/run/systemd/system'))) return false;
  const namespaces = (process: string) =>
    Promise.all(['net', 'mnt', 'pid'].map((name) => host.readLink(`/proc/${process}/ns/${name}`)));
  return (await namespaces('self')).join() === (await namespaces('1')).join();
}

/** The standby process finds that there is nothing left to do, and so does a confirm. */
export async function endUnconfirmed(session: Session): Promise<void> {
  const { host, folder } = session;
  const unconfirmed = await readApply(host, folder.unconfirmed).catch(() => undefined);
  for (const path of [folder.awaiting, folder.confirmed, folder.unconfirmed, folder.doing]) await host.remove(path);
  // Where that may not be seen, no timer was set.
  if (unconfirmed && (await runsUnderSystemd(host).catch(() => false))) {
    // It may have fired already, or never have been there.
    const args = ['stop', `${unitName(unconfirmed.id)}.timer`];
    await host.run({ tool: 'systemctl', args }, { limit: shortLimit }).catch(() => undefined);
  }
}

/**
 * Keeps what was confirmed if the process that waited for it died before it could, and forgets what was before the
 * node booted. Anything else stays as it is until this command has begun to change the node: the standby processes must not
 * end for one that does not even begin. Call it with the lock held.
 * Test: goes on standing by where a later apply does not even begin.
 */
export async function keepOrForgetUnconfirmed(session: Session): Promise<void> {
  const { host, folder } = session;
  // A damaged one says nothing: the journal says what there is to put back.
  const unconfirmed = await readApply(host, folder.unconfirmed).catch(() => undefined);
  if (!unconfirmed) return;
  if (isHere(unconfirmed, folder)) await keepConfirmed(session, unconfirmed.id);
  else if (unconfirmed.bootId !== folder.network.bootId) await endUnconfirmed(session);
}

/** Makes an apply stay that was confirmed, and whose process has died since. Gives false if it was not confirmed. */
async function keepConfirmed(session: Session, id: string): Promise<boolean> {
  const { host, folder } = session;
  const answered = await findQuestion(host, folder.confirmed, id);
  if (!answered) return false;
  // Without the journal, all but the question was ended.
  if ((await host.readFile(folder.journal)) !== undefined) await commit(host, folder, answered.record);
  await endUnconfirmed(session);
  return true;
}

const pollMilliseconds = 200;

/**
 * Waits until the operator runs `kpc-apply confirm`, and throws a Failure if that does not happen in time. Both sides
 * rename the file that represents the question, and only one of two renames can succeed: the answer is never yes and no at once.
 * A yes stays on the disk until the change does.
 */
export async function awaitConfirmation(
  session: Session,
  unconfirmed: Unconfirmed,
  milliseconds: number,
  record: OwnershipRecord,
): Promise<void> {
  const { host, folder, signal } = session;
  await host.remove(folder.confirmed);
  const deadline = host.uptime() + milliseconds;
  await writeJson(host, folder.awaiting, { ...unconfirmed, question: { deadline, record } } satisfies Unconfirmed);
  const left = () => (signal?.aborted ? 0 : deadline - host.uptime());
  while (left() > 0) {
    if ((await host.readFile(folder.confirmed)) !== undefined) return;
    await host.sleep(Math.min(pollMilliseconds, left()));
  }
  if (await isConfirmedAfterAll(session)) return;
  assertNotInterrupted(signal);
  const advice = 'if the node can still be reached, run the command again, and "kpc-apply confirm" in time';
  throw new Failure('not-confirmed', `no confirmation within ${milliseconds / 1000} s`, advice);
}

/** Takes the question back; true if the operator has just said yes. Call it with the lock held. */
async function isConfirmedAfterAll({ host, folder }: Session): Promise<boolean> {
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

/** How long `kpc-apply confirm` waits for the apply to notice, and how often it checks. */
const noticeMilliseconds = 15_000;
const noticePollMilliseconds = 200;

/** Confirms the waiting apply, and commits its change if its process is gone. Throws a Failure if none is waiting. */
export async function confirmApply(session: Session): Promise<void> {
  const { host, folder } = session;
  const asking = await readApply(host, folder.awaiting);
  if (!asking || !isHere(asking, folder)) throw await explainSilence(session);
  try {
    await host.renameFile(folder.awaiting, folder.confirmed);
  } catch {
    throw await explainSilence(session);
  }
  const keep = () => unlessBusy(session, 'confirm', () => keepConfirmed(session, asking.id));
  const deadline = host.uptime() + noticeMilliseconds;
  while ((await host.readFile(folder.confirmed)) !== undefined && host.uptime() < deadline) {
    if ((await findProcess(host, asking)) === 'gone' && (await keep()) !== 'busy') return;
    await host.sleep(noticePollMilliseconds);
  }
}

/** Runs `work` with the lock held. Returns "busy" if another kpc-apply holds the lock. */
async function unlessBusy<T>({ host, folder }: Session, command: string, work: () => Promise<T>): Promise<T | 'busy'> {
  try {
    return await withLock(host, folder.base, command, work);
  } catch (error) {
    if (error instanceof Failure && error.code === 'busy') return 'busy';
    throw error;
  }
}

/** Why there is nothing to confirm. */
async function explainSilence({ host, folder }: Session): Promise<Failure> {
  const nothing = 'no apply is waiting to be confirmed';
  const holder = await findHolder(host, folder.base);
  if (holder && /^(?:apply |cleanup$)/.test(holder.command)) {
    const why = `process ${holder.pid} ("${holder.command}") is still changing the node, or putting it back`;
    const advice = 'wait until apply asks for it, then run "kpc-apply confirm"';
    return new Failure('nothing-to-confirm', `${nothing}: ${why}`, advice);
  }
  const advice =
    'run confirm within the time that --confirm-timeout gave to apply; one that was killed before is put back';
  return new Failure('nothing-to-confirm', nothing, advice);
}

/** What the standby process did about an unconfirmed apply. */
export type StandByOutcome = 'nothing-to-do' | 'kept' | 'put-back' | 'stuck';

const standByPollMilliseconds = 500;

/** How long after its deadline an apply may take to withdraw its question. Only a stopped process takes longer. */
const graceMilliseconds = 10_000;

/** How long an apply may take between two tools, to read their output. */
const hangMilliseconds = 40_000;

/** How long a tool may outlive the killed apply that fed it: it finds its input cut short, and exits. */
const orphanMilliseconds = 2000;

/** How many times putting back is tried, and the pause in between: the operator may be unable to reach the node. */
const attempts = 30;
const pauseMilliseconds = 10_000;

/**
 * Runs the standby of an unconfirmed apply: if its process is gone or hangs, puts everything back when the time is
 * over, or at once if it never asked. Ends as soon as another process ends the apply: its own, or one that confirms,
 * applies or rolls back.
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
      outcome = await unlessBusy(session, 'rollback of an unconfirmed apply', () => end(session, id));
    }
    if (outcome === 'busy') {
      await endIdle(session, unconfirmed);
      // The pid keeps two standby processes from polling in step.
      await host.sleep(standByPollMilliseconds + (host.pid % 100));
    } else if (outcome === 'stuck') {
      attempt++;
      await host.sleep(pauseMilliseconds);
    } else return outcome;
  }
  return isStopped() ? 'nothing-to-do' : 'stuck';
}

/** The apply with this id, in this network; undefined if it has ended. */
async function findUnconfirmed(session: Session, id: string): Promise<Unconfirmed | undefined> {
  const { host, folder } = session;
  const unconfirmed = await readApply(host, folder.unconfirmed);
  return unconfirmed?.id === id && isHere(unconfirmed, folder) ? unconfirmed : undefined;
}

/** Whether another process must end it: its deadline has passed, or it died without asking. */
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
  const snapshot = await readJournal(host, folder);
  const left = snapshot ? await putBack(session, snapshot) : 'nothing';
  if (left !== 'nothing') return 'stuck';
  await endUnconfirmed(session);
  if (!snapshot) return 'nothing-to-do';
  await noteCommand(session, { command: 'apply', outcome: 'put-back', reason: 'it was not confirmed' });
  return 'put-back';
}

/**
 * Kills an apply that makes no progress: one stopped (SIGSTOP) with its question open, which would hold the lock
 * forever; or one that hangs before it asks or while it puts everything back, long after its wait should be over.
 * Test: ends the process where that has been stopped and would hold the lock for ever.
 */
async function endIdle({ host, folder }: Session, unconfirmed: Unconfirmed): Promise<void> {
  const question = await findQuestion(host, folder.awaiting, unconfirmed.id);
  const doing = question ? undefined : await readDoing(host, folder);
  const isIdle = question
    ? host.uptime() >= question.deadline + graceMilliseconds
    : doing?.id === unconfirmed.id && host.uptime() >= doing.until + hangMilliseconds;
  if (isIdle && (await findProcess(host, unconfirmed)) === 'running') await host.kill(unconfirmed.pid);
}
