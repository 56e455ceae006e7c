import { unconfirmed as unconfirmedCheck } from '#checks';
import type { Shaped } from '../../base/json/schema.ts';
import type { Host } from '../node/host.ts';
import { readDoing, shortLimit } from '../node/tool-time-limits.ts';
import { causeOf, Failure } from '../state/failure.ts';
import { commit } from '../state/history.ts';
import { noteCommand } from '../state/last-command.ts';
import { findHolder, findProcess, identifyOwnProcess, withLock } from '../state/lock.ts';
import { readJournal, readJsonFile, writeJson, type OwnershipRecord, type StateFolder } from '../state/record.ts';
import type { unconfirmedSchema } from '../state/schemas.ts';
import { remark, type Session } from './observe-node.ts';
import { assertNotInterrupted, putBack } from './carry-out.ts';

/** An unconfirmed apply. Its file exists until the change is kept or undone. The operator's answer renames a second file: the question. */
type Unconfirmed = Shaped<typeof unconfirmedSchema>;

function readApply(host: Host, path: string): Promise<Unconfirmed | undefined> {
  return readJsonFile<Unconfirmed>(host, path, unconfirmedCheck, 'unconfirmed');
}

function isHere({ bootId, network }: Unconfirmed, folder: StateFolder): boolean {
  return bootId === folder.network.bootId && network === `net:[${folder.network.inode}]`;
}

async function findQuestion(host: Host, path: string, id: string): Promise<Unconfirmed['question']> {
  const asked = await readApply(host, path).catch(() => undefined);
  return asked?.id === id ? asked.question : undefined;
}

function unitName(id: string): string {
  return `kpc-apply-way-back-${id}`;
}

/** Delay of the timer after the deadline. Normally another process has rolled back the change by then. */
const timerDelaySeconds = 5;

export async function beginUnconfirmed(session: Session, milliseconds: number): Promise<Unconfirmed> {
  const { host, folder, onEvent } = session;
  const process = await identifyOwnProcess(host);
  const id = `${process.pid}-${process.started}-${Math.round(host.uptime())}`;
  const unconfirmed: Unconfirmed = { ...process, id };
  const warn = (lacks: 'process' | 'timer', error: unknown) =>
    onEvent(remark('one-standby', { lacks, cause: causeOf(error) }));
  try {
    await endUnconfirmed(session);
    await writeJson(host, folder.unconfirmed, unconfirmed);
    const [tool, ...start] = host.program ?? [];
    if (tool === undefined) throw new Failure('system-error', { problem: 'unknown-start' });
    const reload = session.balancerReload ? ['--balancer-reload', session.balancerReload.join(' ')] : [];
    const args = [...start, 'rollback', '--unconfirmed', id, '--state-dir', folder.base, ...reload];
    const [apart, timer] = await Promise.allSettled([
      host.startApart({ tool, args }),
      setTimer(host, id, [tool, ...args], Math.ceil(milliseconds / 1000) + timerDelaySeconds),
    ]);
    const hasTimer = timer.status === 'fulfilled' && timer.value;
    if (apart.status === 'rejected' && !hasTimer) throw apart.reason;
    if (apart.status === 'rejected') warn('process', apart.reason);
    if (timer.status === 'rejected') warn('timer', timer.reason);
    return unconfirmed;
  } catch (error) {
    await endUnconfirmed(session).catch(() => undefined);
    throw new Failure('system-error', { problem: 'no-standby', cause: causeOf(error) });
  }
}

/** Starts the timer. Returns false unless systemd runs in this process's namespaces, because systemd starts programs in its own. */
async function setTimer(host: Host, id: string, command: readonly string[], seconds: number): Promise<boolean> {
  if (!(await runsUnderSystemd(host))) return false;
  const args = [
    '--quiet',
    '--collect',
    `--unit=${unitName(id)}`,
    `--on-active=${seconds}s`,
    '--timer-property=AccuracySec=1s',
    ...(host.toolPath === undefined ? [] : [`--setenv=PATH=${host.toolPath}`]),
    '--',
    // Escape $, because systemd expands variables in a command. Test: apply/unconfirmed.test.ts.
    ...command.map((word) => word.replaceAll('$', '$$$$')),
  ];
  const result = await host.run({ tool: 'systemd-run', args }, { limit: shortLimit });
  if (result.kind === 'missing') throw new Failure('tool-missing', { tool: 'systemd-run', to: 'change' });
  if (result.status === 0) return true;
  const { status, signal } = result;
  throw new Failure('system-error', { problem: 'no-timer', status: status ?? signal, said: result.stderr.trim() });
}

async function runsUnderSystemd(host: Host): Promise<boolean> {
  if (!(await host.isWritable('/run/systemd/system'))) return false;
  const namespaces = (process: string) =>
    Promise.all(['net', 'mnt', 'pid'].map((name) => host.readLink(`/proc/${process}/ns/${name}`)));
  return (await namespaces('self')).join() === (await namespaces('1')).join();
}

export async function endUnconfirmed(session: Session): Promise<void> {
  const { host, folder } = session;
  const unconfirmed = await readApply(host, folder.unconfirmed).catch(() => undefined);
  for (const path of [folder.awaiting, folder.confirmed, folder.unconfirmed, folder.doing]) await host.remove(path);
  // A process that is not allowed to look for systemd cannot have set a timer.
  if (unconfirmed && (await runsUnderSystemd(host).catch(() => false))) {
    // Ignore errors, because the timer may have fired or may never have been set.
    const args = ['stop', `${unitName(unconfirmed.id)}.timer`];
    await host.run({ tool: 'systemctl', args }, { limit: shortLimit }).catch(() => undefined);
  }
}

/**
 * Commits a confirmed apply whose process died, and forgets one from an earlier boot. Any other keeps its standby process until this
 * command changes the node. Needs the lock. Test: apply/unconfirmed.test.ts.
 */
export async function keepOrForgetUnconfirmed(session: Session): Promise<void> {
  const { host, folder } = session;
  // Ignore a damaged file, because the journal says what to restore.
  const unconfirmed = await readApply(host, folder.unconfirmed).catch(() => undefined);
  if (!unconfirmed) return;
  if (isHere(unconfirmed, folder)) await keepConfirmed(session, unconfirmed.id);
  else if (unconfirmed.bootId !== folder.network.bootId) await endUnconfirmed(session);
}

async function keepConfirmed(session: Session, id: string): Promise<boolean> {
  const { host, folder } = session;
  const answered = await findQuestion(host, folder.confirmed, id);
  if (!answered) return false;
  if ((await host.readFile(folder.journal)) !== undefined) await commit(host, folder, answered.record);
  await endUnconfirmed(session);
  return true;
}

const pollMilliseconds = 200;

/**
 * Waits for `kpc-apply confirm`. Throws a Failure if the confirmation is late. Yes and no rename the same file, so only one can win. The
 * file for yes stays until the change is committed.
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
  throw new Failure('not-confirmed', { seconds: milliseconds / 1000 });
}

/** Withdraws the question. Returns true if the operator has just confirmed. Needs the lock. */
async function isConfirmedAfterAll({ host, folder }: Session): Promise<boolean> {
  try {
    await host.renameFile(folder.awaiting, `${folder.awaiting}.expired`);
  } catch {
    // The question may be lost or the disk may fail, so only the file for yes counts.
    await host.remove(folder.awaiting);
    if ((await host.readFile(folder.confirmed)) !== undefined) return true;
  }
  await host.remove(`${folder.awaiting}.expired`);
  return false;
}

const noticeMilliseconds = 15_000;

/** Confirms the waiting apply, and commits the change if the apply's process has died. Throws a Failure if no apply is waiting. */
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
    await host.sleep(pollMilliseconds);
  }
}

async function unlessBusy<T>({ host, folder }: Session, command: string, work: () => Promise<T>): Promise<T | 'busy'> {
  try {
    return await withLock(host, folder.base, command, work);
  } catch (error) {
    if (error instanceof Failure && error.code === 'busy') return 'busy';
    throw error;
  }
}

async function explainSilence({ host, folder }: Session): Promise<Failure> {
  const holder = await findHolder(host, folder.base);
  const isChanging = holder !== undefined && /^(?:apply |cleanup$)/.test(holder.command);
  return new Failure('nothing-to-confirm', isChanging ? { holder: { pid: holder.pid, command: holder.command } } : {});
}

export type StandByOutcome = 'nothing-to-do' | 'kept' | 'put-back' | 'stuck';

const standByPollMilliseconds = 500;

/** Time for an apply to withdraw its question after the deadline. Only a process stopped by SIGSTOP takes longer. */
const graceMilliseconds = 10_000;

/** Time for an apply to read a tool's output before it starts the next tool. */
const hangMilliseconds = 40_000;

/** Time for a tool to exit on truncated input after its apply was killed. */
const orphanMilliseconds = 2000;

/** Number of attempts to restore the node. High, because the operator may be unable to reach the node. */
const attempts = 30;
const pauseMilliseconds = 10_000;

/**
 * Restores the node at the deadline, or at once if the apply died before asking. Kills an apply that hangs. Returns once the apply has
 * ended.
 */
export async function standBy(session: Session, id: string): Promise<StandByOutcome> {
  const { host, folder } = session;
  const isStopped = () => session.signal?.aborted === true;
  for (let attempt = 0; attempt < attempts && !isStopped();) {
    const unconfirmed = await findUnconfirmed(session, id);
    if (!unconfirmed) return 'nothing-to-do';
    let outcome: StandByOutcome | 'busy' = 'busy';
    if (await isAbandoned(session, unconfirmed)) {
      if ((await host.readFile(folder.awaiting).catch(() => '')) === undefined) await host.sleep(orphanMilliseconds);
      outcome = await unlessBusy(session, `rollback --unconfirmed ${id}`, () => endStandBy(session, id));
    }
    if (outcome === 'busy') {
      await endIdle(session, unconfirmed);
      // The pid keeps two standby processes from polling at the same moments.
      await host.sleep(standByPollMilliseconds + (host.pid % 100));
    } else if (outcome === 'stuck') {
      attempt++;
      await host.sleep(pauseMilliseconds);
    } else return outcome;
  }
  return isStopped() ? 'nothing-to-do' : 'stuck';
}

async function findUnconfirmed(session: Session, id: string): Promise<Unconfirmed | undefined> {
  const { host, folder } = session;
  const unconfirmed = await readApply(host, folder.unconfirmed);
  return unconfirmed?.id === id && isHere(unconfirmed, folder) ? unconfirmed : undefined;
}

async function isAbandoned({ host, folder }: Session, unconfirmed: Unconfirmed): Promise<boolean> {
  const question = await findQuestion(host, folder.awaiting, unconfirmed.id);
  if (question) return host.uptime() >= question.deadline;
  return (await findProcess(host, unconfirmed)) === 'gone';
}

/** Needs the lock. */
async function endStandBy(session: Session, id: string): Promise<StandByOutcome> {
  const { host, folder } = session;
  const unconfirmed = await findUnconfirmed(session, id);
  if (!unconfirmed) return 'nothing-to-do';
  if ((await isConfirmedAfterAll(session)) && (await keepConfirmed(session, id))) return 'kept';
  const snapshot = await readJournal(host, folder);
  const left = snapshot ? await putBack(session, snapshot) : 'nothing';
  if (left !== 'nothing') return 'stuck';
  await endUnconfirmed(session);
  if (!snapshot) return 'nothing-to-do';
  const reason = session.say(new Failure('not-confirmed', {}));
  await noteCommand(session, { command: 'apply', outcome: 'put-back', reason });
  return 'put-back';
}

/**
 * Kills an apply that makes no progress. Either it was stopped (SIGSTOP) with its question open and would hold the lock forever, or it
 * hangs before the question or during the rollback. Test: apply/unconfirmed.test.ts.
 */
async function endIdle({ host, folder }: Session, unconfirmed: Unconfirmed): Promise<void> {
  const question = await findQuestion(host, folder.awaiting, unconfirmed.id);
  const doing = question ? undefined : await readDoing(host, folder);
  const isIdle = question
    ? host.uptime() >= question.deadline + graceMilliseconds
    : doing?.id === unconfirmed.id && host.uptime() >= doing.until + hangMilliseconds;
  if (isIdle && (await findProcess(host, unconfirmed)) === 'running') await host.kill(unconfirmed.pid);
}
