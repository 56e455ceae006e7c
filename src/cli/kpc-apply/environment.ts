import { printable, printableLines } from '../../base/printable.ts';
import { remark, type ChangeEvent, type Session } from '../../apply/change/observe-node.ts';
import { explainError, failureOfSignal, type Failure } from '../../apply/state/failure.ts';
import { formatCommand, type Host } from '../../apply/node/host.ts';
import { mostSaid } from '../../apply/node/output.ts';
import { readNodeNetwork } from '../../apply/node/network.ts';
import type { Plan } from '../../apply/plan/plan.ts';
import { listOtherNetworks, forgetEarlierBoots, stateFolder } from '../../apply/state/record.ts';
import { severityOfFailure } from '../../base/findings/apply.ts';
import type { Remark } from '../../base/findings/node-checks.ts';
import { sayApply } from '../../say/words/apply.ts';
import { formatJson } from '../../say/formats/json.ts';
import { describeEvent, describeStuck } from '../../say/apply-outcomes.ts';
import { type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import type { UsageCall } from '../shared/usage-errors.ts';

export interface ApplyEnvironment {
  readonly terminal: ApplyTerminal;
  readonly host: Host;
  readonly onEvent?: ((event: ChangeEvent) => void) | undefined;
  /** Aborted if there is an uncaught error. The reason is the error's Failure (see catchUncaught). */
  readonly fault?: AbortSignal | undefined;
}

interface SessionChoices extends Pick<Session, 'signal' | 'balancerReload'> {
  readonly stateDir: string;
  /** Whether the command may change the node. If it may, its records must belong to this network. */
  readonly mayChange: boolean;
  readonly assumeAlone?: boolean;
  readonly force?: boolean;
}

/** Opens a command's session. The session's host reports long waits. Warns about unfinished work in other networks. */
export async function openSession(
  environment: ApplyEnvironment,
  { stateDir, mayChange, signal = environment.fault, balancerReload, assumeAlone, force }: SessionChoices,
): Promise<Session> {
  const { terminal } = environment;
  const said = new Set<string>();
  const onEvent = (event: ChangeEvent): void => {
    environment.onEvent?.(event);
    // Each warning is reported once, because a watch would otherwise repeat it in each round. Test: apply/other-variant.test.ts.
    if (event.kind === 'warning' && said.size === said.add(JSON.stringify(event.remark)).size) return;
    showEvent(event, terminal);
  };
  const run: Host['run'] = async (command, patience) => {
    const onWaiting = (taken: number, limit: number): void =>
      onEvent({ kind: 'waiting', command: formatCommand(command), since: host.now() - taken, limit });
    const result = await environment.host.run(command, { onWaiting, signal, ...patience });
    const cut = result.kind === 'ended' ? result.cut : undefined;
    // There is no warning about a truncated listing, because the code that reads the listing refuses it.
    if (cut === 'stderr' || (cut && !command.room)) {
      onEvent(remark('cut-output', { command: formatCommand(command), most: mostSaid, of: cut }));
    }
    return result;
  };
  const host: Host = { ...environment.host, run };
  const folder = stateFolder(stateDir, await readNodeNetwork(host, mayChange));
  if (mayChange) await forgetEarlierBoots(host, folder);
  for (const other of await listOtherNetworks(host, folder)) onEvent(remark('other-network', other));
  const assumesAlone = assumeAlone === true || force === true;
  const say = ({ finding }: Failure) => sayApply(finding).text;
  return { host, folder, onEvent, say, signal, balancerReload, assumesAlone };
}

const saidToLogs: ReadonlySet<ChangeEvent['kind']> = new Set(['awaiting-confirmation', 'waiting']);

function showEvent(event: ChangeEvent, terminal: ApplyTerminal): void {
  if (event.kind === 'warning') {
    void reportWarning(event.remark, terminal);
    return;
  }
  const text = printable(describeEvent(event));
  const stays = saidToLogs.has(event.kind) || (terminal.interactive && event.kind === 'putting-back');
  if (stays) void terminal.tell(text);
  else if (terminal.interactive) void terminal.status(text);
}

const asksInVain: ReadonlySet<Failure['code']> = new Set([
  'bad-bundle',
  'bad-usage',
  'nothing-to-roll-back',
  'nothing-to-undo',
  'not-trusted',
]);

export async function printFailures(
  failures: readonly Failure[],
  { command, output }: UsageCall,
  terminal: Terminal,
): Promise<void> {
  if (output !== 'json') return;
  const findings = failures.map(({ finding }) => {
    return { severity: severityOfFailure(finding), ...finding, ...sayApply(finding) } as const;
  });
  await terminal.out(formatJson({ command, findings }));
}

export async function reportFailure(failure: Failure, terminal: ApplyTerminal): Promise<ExitStatus> {
  const { code, finding } = failure;
  const { text, help } = sayApply(finding);
  await terminal.tell(text, { level: 'error', code, help });
  return asksInVain.has(code) ? exitStatus.badInput : exitStatus.notApplied;
}

export function reportWarning(problem: Remark, terminal: ApplyTerminal): Promise<void> {
  return terminal.tell(printable(sayApply(problem).text), { level: 'warning' });
}

/** Reports a change that could neither be finished nor rolled back. `left` is undefined if the node cannot be read. */
export async function reportStuck(left: Plan | 'unknown' | undefined, terminal: ApplyTerminal): Promise<ExitStatus> {
  for (const text of describeStuck(left)) await terminal.tell(text);
  return exitStatus.notRestored;
}

/**
 * Runs work that is aborted if there is an uncaught error, such as one in an event handler. Otherwise Node would exit, and nothing could be
 * rolled back. Returns the work's result, and the error if there was one. Test: apply/handlers.slow.test.ts.
 */
export async function catchUncaught<T>(work: (fault: AbortSignal) => Promise<T>) {
  const controller = new AbortController();
  const onError = (error: unknown): void => controller.abort(explainError(error));
  process.on('uncaughtException', onError);
  try {
    return { result: await work(controller.signal), fault: failureOfSignal(controller.signal) };
  } finally {
    process.off('uncaughtException', onError);
  }
}

/**
 * Runs `work`. Its signal aborts on the first SIGINT or SIGTERM, and when `fault` aborts, so that a change in progress can be rolled back.
 * SIGHUP is ignored, because a change that cuts off the operator's own connection must go on, to be able to undo itself. Ctrl-Z is ignored,
 * because it would leave a change half done with the lock held.
 */
export async function interruptible<T>(
  { fault }: Pick<ApplyEnvironment, 'fault'>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  fault?.addEventListener('abort', () => controller.abort(fault.reason), { once: true });
  const ignore = () => undefined;
  process.on('SIGINT', abort).on('SIGTERM', abort).on('SIGHUP', ignore).on('SIGTSTP', ignore);
  try {
    return await work(controller.signal);
  } finally {
    process.off('SIGINT', abort).off('SIGTERM', abort).off('SIGHUP', ignore).off('SIGTSTP', ignore);
  }
}

interface MessageDetails {
  readonly level?: 'error' | 'warning';
  readonly code?: string | undefined;
  readonly help?: string | undefined;
}

/** A terminal for commands that run for long. Its messages may go to a log. */
export interface ApplyTerminal extends Terminal {
  readonly tell: (text: string, details?: MessageDetails) => Promise<void>;
  readonly note: (remark: Remark) => Promise<void>;
}

export function formatMessage(text: string, { level, code, help }: MessageDetails = {}): string {
  const start = level === undefined ? '' : `${level}: `;
  const end = `${code === undefined ? '' : ` [${code}]`}${help === undefined ? '' : `\n  help: ${help}`}`;
  return `${printableLines(`${start}${text}${end}`)}\n`;
}

export function formatLogRecord(
  text: string,
  { level, code, help }: MessageDetails = {},
  milliseconds: number,
): string {
  const said = { message: printableLines(text), code, help: help === undefined ? undefined : printableLines(help) };
  return `${JSON.stringify({ time: new Date(milliseconds).toISOString(), level: level ?? 'info', ...said })}\n`;
}
