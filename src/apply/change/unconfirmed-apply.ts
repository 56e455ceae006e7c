import { amount, objectOf, optional, text, type Shaped } from '../../base/json-shape.ts';
import type { ChangeEvent } from './change-event.ts';
import { describeError } from '../../bundle/errors.ts';
import { commit } from '../state/history.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from '../node/host.ts';
import { shortLimit } from '../node/tool-time-limits.ts';
import { identifyOwnProcess, processFields, readBootId } from '../state/process-identity.ts';
import { readJson, recordShape, writeJson, type StateFolder } from '../state/record.ts';

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

/** Undefined where nothing is asked. */
export function readQuestion(host: Host, path: string): Promise<Question | undefined> {
  const advice = 'remove it and apply again: an apply that waits for confirmation is put back when its time is over';
  return readJson(host, path, questionShape, advice);
}

/** What this needs of a session. */
export interface Keeper {
  readonly host: Host;
  readonly folder: StateFolder;
  readonly onEvent: (event: ChangeEvent) => void;
}

/** What stands by to put everything back: the name of the systemd timer and service of that apply. */
function unitName(id: string): string {
  return `kpc-apply-way-back-${id}`;
}

/** How long after the time is over systemd looks whether all is put back, which is sooner done by the others. */
const timerDelaySeconds = 5;

/**
 * Says that what comes is to be confirmed, and has others stand by for the case that this process is killed, hangs or is
 * cut off: a process in a session of its own, which has loaded all it needs and so also survives that the program is
 * taken away; and where systemd runs, a timer, which survives that the whole control group is killed, as at the end of a
 * login. Both look again whether it is still this apply that waits, and which of them does it the lock decides. Gives the
 * apply's id. Throws a Failure where no process can stand by.
 */
export async function beginUnconfirmed(keeper: Keeper, milliseconds: number): Promise<string> {
  const { host, folder, onEvent } = keeper;
  const process = await identifyOwnProcess(host);
  const id = `${process.pid}-${process.started}-${Math.round(host.uptime())}`;
  const network = await host.readLink('/proc/self/ns/net');
  const unconfirmed: Unconfirmed = { ...process, id, network };
  try {
    await endUnconfirmed(keeper);
    await writeJson(host, folder.unconfirmed, unconfirmed);
    const [tool, ...start] = host.program ?? [];
    if (tool === undefined) throw new Error('kpc-apply does not know how it was started');
    const args = [...start, 'rollback', '--unconfirmed', id, '--state-dir', folder.path];
    const [apart, timer] = await Promise.allSettled([
      host.startApart({ tool, args }),
      setTimer(host, id, [tool, ...args], Math.ceil(milliseconds / 1000) + timerDelaySeconds),
    ]);
    if (apart.status === 'rejected') {
      if (timer.status === 'rejected' || !timer.value) throw apart.reason;
      const reason = describeError(apart.reason);
      onEvent({
        kind: 'warning',
        text: `only a systemd timer can put everything back if this process is killed: ${reason}`,
      });
    } else if (timer.status === 'rejected') {
      const reason = describeError(timer.reason);
      onEvent({
        kind: 'warning',
        text: `no systemd timer can put everything back if this process is killed: ${reason}`,
      });
    }
    return id;
  } catch (error) {
    await endUnconfirmed(keeper).catch(() => undefined);
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
  const path = host.toolPath === undefined ? [] : [`--setenv=PATH=${host.toolPath}`];
  const args = [
    '--quiet',
    '--collect',
    `--unit=${unitName(id)}`,
    '--description=Puts back what kpc-apply did, unless it is confirmed',
    `--on-active=${seconds}s`,
    '--timer-property=AccuracySec=1s',
    ...path,
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
  const own = await Promise.all(['net', 'mnt', 'pid'].map((name) => host.readLink(`/proc/self/ns/${name}`)));
  const first = await Promise.all(['net', 'mnt', 'pid'].map((name) => host.readLink(`/proc/1/ns/${name}`)));
  return own.every((namespace, i) => namespace === first[i]);
}

/** The apply that is to be confirmed, of this boot or another; undefined where there is none. */
export function readUnconfirmed({ host, folder }: Pick<Keeper, 'host' | 'folder'>): Promise<Unconfirmed | undefined> {
  const advice = 'remove it, and apply again: then nothing waits to be confirmed';
  return readJson<Unconfirmed>(host, folder.unconfirmed, unconfirmedShape, advice);
}

/** The process that stands by finds that there is nothing left to do, and so does one that would confirm. */
export async function endUnconfirmed({ host, folder }: Pick<Keeper, 'host' | 'folder'>): Promise<void> {
  const unconfirmed = await readUnconfirmed({ host, folder }).catch(() => undefined);
  for (const path of [folder.awaiting, folder.confirmed, folder.unconfirmed, folder.doing]) await host.remove(path);
  if (unconfirmed && (await runsUnderSystemd(host))) {
    // It may have fired already, or never have been there.
    const args = ['stop', `${unitName(unconfirmed.id)}.timer`];
    await host.run({ tool: 'systemctl', args }, { limit: shortLimit }).catch(() => undefined);
  }
}

/**
 * Keeps what was confirmed where the process that waited for it died before it could, and forgets what was before the
 * node booted. Anything else stays as it is until this command has begun to change the node: those who stand by must not
 * stand down for one that does not even begin. Call it with the lock held.
 */
export async function settleUnconfirmed(keeper: Keeper): Promise<void> {
  // A damaged one tells nothing: the journal says what there is to put back.
  const unconfirmed = await readUnconfirmed(keeper).catch(() => undefined);
  if (!unconfirmed) return;
  if (unconfirmed.bootId === (await readBootId(keeper.host))) {
    await keepConfirmed(keeper, unconfirmed.id);
    return;
  }
  keeper.onEvent({
    kind: 'warning',
    text: 'the node has rebooted since an apply that was not confirmed: its changes are gone',
  });
  await endUnconfirmed(keeper);
}

/** Makes an apply stay that was confirmed, and whose process has died since. Gives false where it was not confirmed. */
export async function keepConfirmed({ host, folder }: Pick<Keeper, 'host' | 'folder'>, id: string): Promise<boolean> {
  const answered = await readQuestion(host, folder.confirmed).catch(() => undefined);
  if (answered?.id !== id) return false;
  // Without the journal, all but the question was ended.
  if ((await host.readFile(folder.journal)) !== undefined) await commit(host, folder, answered.record);
  await endUnconfirmed({ host, folder });
  return true;
}
