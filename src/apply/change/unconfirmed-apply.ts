import { amount, objectOf, optional, text, type Shaped } from '../../base/json-shape.ts';
import { describeError } from '../../base/system-errors.ts';
import type { Host } from '../node/host.ts';
import { shortLimit } from '../node/tool-time-limits.ts';
import { Failure } from '../state/failure.ts';
import { commit } from '../state/history.ts';
import { identifyOwnProcess, processFields, readBootId } from '../state/process-identity.ts';
import { readJson, recordShape, writeJson, type OwnershipRecord } from '../state/record.ts';
import type { Session } from './observe-node.ts';
import { assertNotInterrupted } from './carry-out.ts';

const unconfirmedShape = objectOf({
  ...processFields,
  /** Of this apply and no other, as long as the node is up. */
  id: text,
  /** The network namespace that it changes. Undefined where unknown. */
  network: optional(text),
});

/**
 * An apply that goes back unless the operator confirms it, and the process that makes it. It is in a file of its own from
 * before the first change until the change stays or is put back, so that others can see to the way back where that
 * process cannot.
 */
export type Unconfirmed = Shaped<typeof unconfirmedShape>;

const questionShape = objectOf({
  ...processFields,
  /** Of the apply. */
  id: text,
  /** Milliseconds since the node booted. */
  deadline: amount,
  /** What is kpc-apply's when the change stays. */
  record: recordShape,
});

/**
 * What an apply asks that waits to be confirmed: the file with it is renamed by the process that answers, yes or no. It holds
 * all that is needed to make the change stay, because the process that asks may be gone by then.
 */
export type Question = Shaped<typeof questionShape>;

/** A node and the files that kpc-apply keeps of it, for a command that does not change it. */
export type Place = Omit<Session, 'onEvent'>;

/** Undefined if nothing is asked. */
export function readQuestion(host: Host, path: string): Promise<Question | undefined> {
  const advice = 'remove it and apply again: an apply that waits for confirmation is put back when its time is over';
  return readJson(host, path, questionShape, advice);
}

/** What is asked or answered of this apply. A damaged question cannot be answered, and counts as none. */
export async function findQuestion(host: Host, path: string, id: string): Promise<Question | undefined> {
  const question = await readQuestion(host, path).catch(() => undefined);
  return question?.id === id ? question : undefined;
}

/** The apply that waits for confirmation, of this boot or another; undefined if there is none. */
export function readUnconfirmed({ host, folder }: Place): Promise<Unconfirmed | undefined> {
  const advice = 'remove it, and apply again: then nothing waits to be confirmed';
  return readJson<Unconfirmed>(host, folder.unconfirmed, unconfirmedShape, advice);
}

/** The standby that puts everything back: the name of the systemd timer and service of that apply. */
function unitName(id: string): string {
  return `kpc-apply-way-back-${id}`;
}

/** How long after the time is over systemd looks whether all is put back, which is sooner done by the others. */
const timerDelaySeconds = 5;

/**
 * Notes that the following change must be confirmed, and starts standby processes in case this process is killed, hangs or is
 * cut off: a process in a session of its own, which has loaded all it needs and so also survives that the program is
 * taken away; and where systemd runs, a timer, which survives that the whole control group is killed, as at the end of a
 * login. Both look again whether it is still this apply that waits, and which of them does it the lock decides. Gives the
 * apply's id. Throws a Failure if no standby process can start.
 */
export async function beginUnconfirmed(session: Session, milliseconds: number): Promise<string> {
  const { host, folder, onEvent } = session;
  const process = await identifyOwnProcess(host);
  const id = `${process.pid}-${process.started}-${Math.round(host.uptime())}`;
  const network = await host.readLink('/proc/self/ns/net');
  const warn = (only: string, error: unknown) =>
    onEvent({
      kind: 'warning',
      text: `${only} can put everything back if this process is killed: ${describeError(error)}`,
    });
  try {
    await endUnconfirmed(session);
    await writeJson(host, folder.unconfirmed, { ...process, id, network } satisfies Unconfirmed);
    const [tool, ...start] = host.program ?? [];
    if (tool === undefined) throw new Error('kpc-apply does not know how it was started');
    const args = [...start, 'rollback', '--unconfirmed', id, '--state-dir', folder.path];
    const [apart, timer] = await Promise.allSettled([
      host.startApart({ tool, args }),
      setTimer(host, id, [tool, ...args], Math.ceil(milliseconds / 1000) + timerDelaySeconds),
    ]);
    const hasTimer = timer.status === 'fulfilled' && timer.value;
    if (apart.status === 'rejected' && !hasTimer) throw apart.reason;
    if (apart.status === 'rejected') warn('only a systemd timer', apart.reason);
    if (timer.status === 'rejected') warn('no systemd timer', timer.reason);
    return id;
  } catch (error) {
    await endUnconfirmed(session).catch(() => undefined);
    throw new Failure(
      'system-error',
      `nothing can put everything back if this process is killed: ${describeError(error)}`,
      'fix the cause, or apply without --confirm-timeout; nothing has been changed',
    );
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
export async function endUnconfirmed(place: Place): Promise<void> {
  const { host, folder } = place;
  const unconfirmed = await readUnconfirmed(place).catch(() => undefined);
  for (const path of [folder.awaiting, folder.confirmed, folder.unconfirmed, folder.doing]) await host.remove(path);
  if (unconfirmed && (await runsUnderSystemd(host))) {
    // It may have fired already, or never have been there.
    const args = ['stop', `${unitName(unconfirmed.id)}.timer`];
    await host.run({ tool: 'systemctl', args }, { limit: shortLimit }).catch(() => undefined);
  }
}

/**
 * Keeps what was confirmed if the process that waited for it died before it could, and forgets what was before the
 * node booted. Anything else stays as it is until this command has begun to change the node: the standby processes must not
 * end for one that does not even begin. Call it with the lock held.
 */
export async function settleUnconfirmed(session: Session): Promise<void> {
  // A damaged one says nothing: the journal says what there is to put back.
  const unconfirmed = await readUnconfirmed(session).catch(() => undefined);
  if (!unconfirmed) return;
  if (unconfirmed.bootId === (await readBootId(session.host))) {
    await keepConfirmed(session, unconfirmed.id);
    return;
  }
  session.onEvent({
    kind: 'warning',
    text: 'the node has rebooted since an apply that was not confirmed: its changes are gone',
  });
  await endUnconfirmed(session);
}

/** Makes an apply stay that was confirmed, and whose process has died since. Gives false if it was not confirmed. */
export async function keepConfirmed(place: Place, id: string): Promise<boolean> {
  const { host, folder } = place;
  const answered = await findQuestion(host, folder.confirmed, id);
  if (!answered) return false;
  // Without the journal, all but the question was ended.
  if ((await host.readFile(folder.journal)) !== undefined) await commit(host, folder, answered.record);
  await endUnconfirmed(place);
  return true;
}

const pollMilliseconds = 200;

/**
 * Waits until the operator runs `kpc-apply confirm`, and throws a Failure if that does not happen in time. Both sides
 * rename the file that represents the question, and only one of two renames can succeed: the answer is never yes and no at once.
 * A yes stays on the disk until the change does.
 */
export async function awaitConfirmation(
  place: Place,
  { id, milliseconds }: { readonly id: string; readonly milliseconds: number },
  record: OwnershipRecord,
): Promise<void> {
  const { host, folder, signal } = place;
  await host.remove(folder.confirmed);
  const deadline = host.uptime() + milliseconds;
  await writeJson(host, folder.awaiting, {
    ...(await identifyOwnProcess(host)),
    id,
    deadline,
    record,
  } satisfies Question);
  const left = () => (signal?.aborted ? 0 : deadline - host.uptime());
  while (left() > 0) {
    if ((await host.readFile(folder.confirmed)) !== undefined) return;
    await host.sleep(Math.min(pollMilliseconds, left()));
  }
  if (await isConfirmedAfterAll(place)) return;
  assertNotInterrupted(signal);
  throw new Failure(
    'not-confirmed',
    `no confirmation within ${milliseconds / 1000} s`,
    'if the node can still be reached, apply again and run "kpc-apply confirm" in time',
  );
}

/** Takes the question back; true if the operator has just said yes. Call it with the lock held. */
export async function isConfirmedAfterAll({ host, folder }: Place): Promise<boolean> {
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
