import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { hasCode } from '../../base/system-errors.ts';
import { absoluteFolders } from '../../base/system-paths.ts';
import { Failure, faultOf } from '../state/failure.ts';
import { excerptOf, formatCommand, type Command, type CommandResult, type Patience } from './host.ts';
import { mostSaid, Output, Room } from './output.ts';

/**
 * Returns a handler of events that gives what `handler` throws to `fail`. Thrown out of a handler, an error ends the process, and
 * whoever waits for the event waits for ever.
 */
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

/** How long a tool may take before it is taken to hang, in milliseconds. */
interface ToolLimits {
  /** One that is fed what to change. The largest restore takes seconds. */
  readonly fed: number;
  /** One that only reads the node, and any other. */
  readonly unfed: number;
  /** From its end until its output is closed. */
  readonly closing: number;
}

/** When a tool that takes long is reported first, and how often after that. */
const waitingMilliseconds = 10_000;
const waitingAgainMilliseconds = 60_000;

export const usualLimits: ToolLimits = { fed: 15 * 60_000, unfed: 5 * 60_000, closing: 10_000 };

/** Where distributions keep the tools; not every PATH has them. */
const toolFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

/** The folders of PATH that are absolute, and those of distributions after them. */
export function toolPath(): string {
  return [...new Set([...absoluteFolders(process.env['PATH']), ...toolFolders])].join(':');
}

/**
 * What programs get of the environment. Many variables make a program load other code (LD_PRELOAD, XTABLES_LIBDIR,
 * PERL5OPT, …), so nothing else is passed on. docs/security.md has the same.
 */
function programEnvironment(): NodeJS.ProcessEnv {
  // Where systemd-notify reports how watch is.
  const { NOTIFY_SOCKET } = process.env;
  return { LC_ALL: 'C', PATH: toolPath(), ...(NOTIFY_SOCKET !== undefined && { NOTIFY_SOCKET }) };
}

function toolEnvironment(): NodeJS.ProcessEnv {
  const [name = '', value] = toolMark.split('=');
  return { ...programEnvironment(), [name]: value };
}

/** In the environment of all tools of this process. */
export const toolMark = `KPC_APPLY_RUN=${crypto.randomUUID()}`;

/**
 * Runs a tool until its output is closed. Throws a Failure for one that never gets there: what it
 * printed until then may be a part only, and what it started may hold its output open for ever.
 * Test: does not wait for ever for output that stays open, nor take what there is of it for all.
 *
 * What its output has no room for is dropped as it comes. A listing that is cut is of no use, so its tool is ended then; one that
 * changes something goes on. An error in a handler ends the tool and is thrown.
 * Test: an error in the handler of a line ends the tool, and is thrown.
 */
export function runTool(
  command: Command,
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
    const stopTimers = startTimers(limits, patience, limit, (why) => giveUp(hang(command, why)), giveUp);
    child.on('error', (error: NodeJS.ErrnoException) => {
      // One that runs may change the node yet.
      if (child.pid !== undefined) return giveUp(error);
      stopTimers();
      if (error.code === 'ENOENT' || error.code === 'EACCES') resolve({ kind: 'missing' });
      else reject(error);
    });
    // It has not started, perhaps for want of open files, and has no pipes then: the error above says so.
    // Test: says so where no more files may be open.
    if (child.pid === undefined) return;
    const finish = gather(child, command, giveUp);
    child.on('exit', guarded(giveUp, expectClose));
    const close = (status: number | null, signal: string | null): void => {
      clearTimeout(closing);
      if (problem !== undefined) reject(problem as Error);
      else resolve({ kind: 'ended', status: status ?? undefined, signal: signal ?? undefined, ...finish() });
    };
    child.on('close', guarded(reject, close));
    // A tool that ends before it has read everything says why on stderr; the broken pipe adds nothing to it.
    child.stdin.on('error', () => {});
    child.stdin.end(command.stdin ?? '');

    function expectClose(): void {
      stopTimers();
      closing ??= setTimeout(() => {
        const open = 'has ended, but a process that it started keeps its output open';
        reject((problem as Error | undefined) ?? faultOf(patience.signal) ?? hang(command, open));
        child.stdout.destroy();
        child.stderr.destroy();
        child.unref();
      }, limits.closing);
    }
  });
}

function spawnTool({ tool, args }: Command): ChildProcessWithoutNullStreams {
  return spawn(tool, args, {
    env: toolEnvironment(),
    stdio: ['pipe', 'pipe', 'pipe'],
    // A process group of its own: it is ended with all that it has started, and not by what a terminal sends to ours.
    // Test: ends a tool that has had its time with all that it has started.
    detached: true,
  });
}

/** Gathers what a tool prints. `fail` gets errors of that. Returns what gives the texts in the end. */
function gather(
  { pid, stdout, stderr }: ChildProcessWithoutNullStreams,
  { room, keeps }: Command,
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

/** Ends a tool with all that it has started, unless that has left its process group. */
function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

/** Says when a tool takes long, and gives it up when it takes too long. `fail` gets errors of that. Gives what ends it. */
function startTimers(
  { closing }: ToolLimits,
  { onWaiting, signal }: Patience,
  limit: number,
  giveUp: (why: string) => void,
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
    const fault = faultOf(signal);
    if (fault) fail(fault);
    else after(closing, () => giveUp('did not end after a signal'));
  };
  after(limit, () => giveUp(`has not ended within ${limit / 1000} s`));
  after(waitingMilliseconds, report);
  if (signal?.aborted) after(0, cut);
  else signal?.addEventListener('abort', cut, { once: true });
  return () => {
    for (const timer of timers) clearTimeout(timer);
    signal?.removeEventListener('abort', cut);
  };
}

function hang(command: Command, problem: string): Failure {
  return new Failure(
    'tool-failed',
    `"${formatCommand(command)}" ${problem}`,
    'run it by hand to see what it waits for',
    command.tool,
  );
}

/** How long a process may take to say its first word: Node takes seconds to start on a busy machine. */
const firstWordMilliseconds = 60_000;

export function startApart({ tool, args }: Command): Promise<void> {
  return new Promise((resolve, reject) => {
    // This very Node also where its file has been moved or replaced since it was started.
    const file = tool === process.execPath ? '/proc/self/exe' : tool;
    // In the root folder: a process that lives on keeps its folder's file system from being unmounted.
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
        end(new Error(`it printed nothing for ${firstWordMilliseconds / 1000} s`));
      }),
      firstWordMilliseconds,
    );
    child.on('error', end);
    child.on(
      'close',
      on((status: number | null, signal: string | null) => {
        end(new Error(excerptOf(said.finish()) || `it ended with ${status ?? signal}`));
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
