import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Hang } from '../../base/findings/apply.ts';
import { hasCode } from '../../base/system-errors.ts';
import { absoluteFolders } from '../../base/system-paths.ts';
import { Failure, failureOfSignal } from '../state/failure.ts';
import { excerptOf, formatCommand, type ToolCommand, type CommandResult, type Patience } from './host.ts';
import { mostSaid, Output, Room } from './output.ts';

/** Wraps an event handler so that its errors go to `fail`. An error thrown from a handler would end the process. */
function guarded<Args extends readonly unknown[]>(
  fail: (error: unknown) => void,
  handler: (...args: Args) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      handler(...args);
    } catch (error) {
      fail(error);
    }
  };
}

/** Milliseconds until a tool counts as hung. */
interface ToolLimits {
  /** For a tool that gets changes on stdin. The largest restore takes seconds. */
  readonly fed: number;
  readonly unfed: number;
  /** From the tool's exit until its output is closed. */
  readonly closing: number;
}

const waitingMilliseconds = 10_000;
const waitingAgainMilliseconds = 60_000;

export const usualLimits: ToolLimits = { fed: 15 * 60_000, unfed: 5 * 60_000, closing: 10_000 };

/** Where distributions keep the tools. Not every PATH has these folders. */
const toolFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

export function toolPath(): string {
  return [...new Set([...absoluteFolders(process.env['PATH']), ...toolFolders])].join(':');
}

/** Passes no other variables, because many make a program load code (LD_PRELOAD, PERL5OPT, …). See docs/security.md. */
function programEnvironment(): NodeJS.ProcessEnv {
  const { NOTIFY_SOCKET } = process.env;
  return { LC_ALL: 'C', PATH: toolPath(), ...(NOTIFY_SOCKET !== undefined && { NOTIFY_SOCKET }) };
}

function toolEnvironment(): NodeJS.ProcessEnv {
  const [name = '', value] = toolMark.split('=');
  return { ...programEnvironment(), [name]: value };
}

/** A variable in the environment of all tools of this process. */
export const toolMark = `KPC_APPLY_RUN=${crypto.randomUUID()}`;

/**
 * Runs a tool until its output is closed. Throws a Failure for a tool that does not end, because its output may be incomplete and its
 * children may hold the output open forever. Test: apply/real-host.test.ts.
 *
 * Drops output that exceeds its room. A listing tool is then killed, because a truncated listing is useless; a tool that changes the node
 * continues. An error in a handler kills the tool and is thrown. Test: apply/handlers.slow.test.ts.
 */
export function runTool(
  command: ToolCommand,
  limits: ToolLimits = usualLimits,
  patience: Patience = {},
): Promise<CommandResult> {
  const { limit = command.stdin === undefined ? limits.unfed : limits.fed } = patience;
  return new Promise((resolve, reject) => {
    const child = spawnTool(command);
    let problem: unknown;
    let closing: NodeJS.Timeout | undefined;
    const giveUp = (why: unknown): void => {
      problem ??= why;
      endGroup(child.pid);
      expectClose();
    };
    const stopTimers = startTimers(limits, patience, limit, (how) => giveUp(hang(command, how)), giveUp);
    child.on('error', (error: NodeJS.ErrnoException) => {
      // A running tool may still change the node, so kill it.
      if (child.pid !== undefined) return giveUp(error);
      stopTimers();
      if (error.code === 'ENOENT' || error.code === 'EACCES') resolve({ kind: 'missing' });
      else reject(error);
    });
    // The tool did not start, perhaps for lack of descriptors. The error event reports this. Test: apply/real-host.test.ts.
    if (child.pid === undefined) return;
    const finish = gather(child, command, giveUp);
    child.on('exit', guarded(giveUp, expectClose));
    const close = (status: number | null, signal: string | null): void => {
      clearTimeout(closing);
      if (problem !== undefined) reject(problem as Error);
      else resolve({ kind: 'ended', status: status ?? undefined, signal: signal ?? undefined, ...finish() });
    };
    child.on('close', guarded(reject, close));
    // Ignore a broken pipe, because a tool that ends before reading all input explains this on stderr.
    child.stdin.on('error', () => {});
    child.stdin.end(command.stdin ?? '');

    function expectClose(): void {
      stopTimers();
      closing ??= setTimeout(() => {
        const fault = (problem as Error | undefined) ?? failureOfSignal(patience.signal);
        reject(fault ?? hang(command, { problem: 'open-output' }));
        child.stdout.destroy();
        child.stderr.destroy();
        child.unref();
      }, limits.closing);
    }
  });
}

function spawnTool({ tool, args }: ToolCommand): ChildProcessWithoutNullStreams {
  return spawn(tool, args, {
    env: toolEnvironment(),
    stdio: ['pipe', 'pipe', 'pipe'],
    // A process group can be killed with all children, and gets no signals from our terminal. Test: apply/real-host.test.ts.
    detached: true,
  });
}

function gather(
  { pid, stdout, stderr }: ChildProcessWithoutNullStreams,
  { room, keeps }: ToolCommand,
  fail: (error: unknown) => void,
) {
  const printed = new Output(room ?? new Room(mostSaid), keeps);
  const said = new Output(new Room(mostSaid));
  const add = (chunk: Buffer): void => {
    printed.add(chunk);
    if (printed.isCut && room) endGroup(pid);
  };
  stdout.on('error', fail).on('data', guarded(fail, add));
  stderr.on('error', fail).on(
    'data',
    guarded(fail, (chunk: Buffer) => said.add(chunk)),
  );
  return () => {
    const cut = printed.isCut ? 'stdout' : said.isCut ? 'stderr' : undefined;
    return { stdout: printed.finish(), stderr: said.finish(), cut } as const;
  };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

function startTimers(
  { closing }: ToolLimits,
  { onWaiting, signal }: Patience,
  limit: number,
  giveUp: (how: Hang) => void,
  fail: (error: unknown) => void,
): () => void {
  const begun = performance.now();
  const timers = new Set<NodeJS.Timeout>();
  const after = (milliseconds: number, work: () => void): void =>
    void timers.add(setTimeout(guarded(fail, work), milliseconds));
  const report = (): void => {
    onWaiting?.(performance.now() - begun, limit);
    after(waitingAgainMilliseconds, report);
  };
  const cut = (): void => {
    const fault = failureOfSignal(signal);
    if (fault) fail(fault);
    else after(closing, () => giveUp({ problem: 'not-stopped' }));
  };
  after(limit, () => giveUp({ problem: 'late', seconds: limit / 1000 }));
  after(waitingMilliseconds, report);
  if (signal?.aborted) after(0, cut);
  else signal?.addEventListener('abort', cut, { once: true });
  return () => {
    for (const timer of timers) clearTimeout(timer);
    signal?.removeEventListener('abort', cut);
  };
}

function hang(command: ToolCommand, how: Hang): Failure {
  return new Failure('tool-failed', { ...how, command: formatCommand(command), tool: command.tool });
}

/** Milliseconds until the first output. Node takes seconds to start on a busy machine. */
const firstWordMilliseconds = 60_000;

export function startApart({ tool, args }: ToolCommand): Promise<void> {
  return new Promise((resolve, reject) => {
    // Run this same Node, even if its file has been moved or replaced.
    const file = tool === process.execPath ? '/proc/self/exe' : tool;
    // A working folder other than / would keep its file system from being unmounted.
    const child = spawn(file, args, {
      argv0: tool,
      cwd: '/',
      env: programEnvironment(),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = new Output(new Room(mostSaid));
    const on = <Args extends readonly unknown[]>(handler: (...args: Args) => void) => guarded(end, handler);
    const impatience = setTimeout(
      on(() => {
        child.kill('SIGKILL');
        end(new Failure('system-error', { problem: 'silent', seconds: firstWordMilliseconds / 1000 }));
      }),
      firstWordMilliseconds,
    );
    child.on('error', end);
    child.on(
      'close',
      on((status: number | null, signal: string | null) => {
        end(
          new Failure('system-error', { problem: 'ended', status: status ?? signal, said: excerptOf(said.finish()) }),
        );
      }),
    );
    if (child.pid === undefined) return;
    child.stderr.on('error', end).on(
      'data',
      on((chunk: Buffer) => said.add(chunk)),
    );
    child.stdout.on('error', end).once(
      'data',
      on(() => end()),
    );

    function end(error?: unknown): void {
      clearTimeout(impatience);
      child.removeAllListeners();
      child.on('error', () => {});
      if (child.pid !== undefined) for (const pipe of [child.stdout, child.stderr]) pipe.destroy();
      child.unref();
      if (error !== undefined) reject(error as Error);
      else resolve();
    }
  });
}
