import { explainError, Failure } from '../../apply/state/failure.ts';
import type { ChangeEvent } from '../../apply/change/observe-node.ts';
import { assertTrustedState } from '../../apply/state/trusted-files.ts';
import { apply, cleanup, confirm, rollback } from './apply-command.ts';
import { doctor, dump, plan, verify } from './read-only-commands.ts';
import {
  catchUncaught,
  printFailures,
  reportFailure,
  type ApplyEnvironment,
  formatLogRecord,
  formatMessage,
  type ApplyTerminal,
} from './environment.ts';
import type { Options } from './options.ts';
import { watch } from './watch-command.ts';
import { printable } from '../../base/printable.ts';
import { sayApply } from '../../say/words/apply.ts';
import { addCompletionCommand, addVersionCommand } from '../shared/common-commands.ts';
import { runCommands, type Program } from '../shared/run-commands.ts';
import { type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';

type Called = { command: string; output: string | undefined; logFormat?: 'text' | 'json' | undefined };

const uncalled = (): Called => ({ command: 'kpc-apply', output: undefined });

export interface CalledFrom extends Pick<ApplyEnvironment, 'host'> {
  readonly terminal: Terminal;
}

export async function runApplyProgram(argv: readonly string[], { terminal, host }: CalledFrom): Promise<ExitStatus> {
  let hasBegun = false;
  const called = uncalled();
  const environment = {
    host,
    terminal: makePatient(terminal, (text, details) =>
      called.logFormat === 'json' ? formatLogRecord(text, details, host.now()) : formatMessage(text, details),
    ),
    // Finishing or undoing an unfinished change also counts as a change.
    onEvent: ({ kind }: ChangeEvent) => {
      hasBegun ||= kind === 'step' || kind === 'recovering' || kind === 'putting-back';
    },
  };
  const { result: status, fault } = await catchUncaught(async (signal) => {
    try {
      return await runCommands(kpcApplyProgram({ ...environment, fault: signal }, called), argv, environment.terminal);
    } catch (error) {
      return reportError(error, hasBegun, { ...environment, called });
    }
  });
  // The process must exit explicitly, because resources that an error left open could keep it alive.
  if (fault) setTimeout(() => process.exit(), lastMilliseconds).unref();
  const isReported = status === exitStatus.notApplied || status === exitStatus.notRestored;
  return fault && !isReported ? reportFailedCommand(fault, hasBegun, environment.terminal) : status;
}

/** How many milliseconds remain for printing the last messages. */
const lastMilliseconds = 2000;

const commands = [doctor, plan, apply, confirm, rollback, verify, dump, cleanup, watch];

export function kpcApplyProgram(environment: ApplyEnvironment, call: Called = uncalled()): Program {
  return {
    name: 'kpc-apply',
    description: 'Programs a bundle that kpc compiled into the kernel of this node, and keeps it there.',
    addCommands: (command, done) => {
      command.hook('preAction', async (_, called) => {
        const { logFormat, output, stateDir } = called.opts<Partial<Options<'logFormat' | 'output' | 'stateDir'>>>();
        Object.assign(call, { command: `kpc-apply ${called.name()}`, logFormat, output } satisfies Called);
        // doctor reports an untrusted state folder among its other checks.
        if (stateDir !== undefined && called.name() !== 'doctor') await assertTrustedState(environment.host, stateDir);
      });
      for (const add of commands) add(command, environment, done);
      addCompletionCommand(command, environment.terminal, done);
      addVersionCommand(command, environment.terminal, done);
    },
    refuse: async (faults, asked) => {
      const failures = faults.map(
        ({ reason, help }) => new Failure('bad-usage', { problem: 'command-line', reason, help }),
      );
      for (const failure of failures) await reportFailure(failure, environment.terminal);
      await printFailures(failures, asked, environment.terminal);
    },
  };
}

/** Makes a terminal for long work. Messages replace the progress line. If the terminal hangs up, the work goes on without output. */
function makePatient(terminal: Terminal, format: typeof formatMessage): ApplyTerminal {
  let isShowing = false;
  const status = (text: string): Promise<void> => {
    isShowing = text !== '';
    return terminal.status(text).catch(() => undefined);
  };
  const clearing =
    (write: (text: string) => Promise<void>) =>
    (text: string): Promise<void> => {
      if (isShowing) void status('');
      return write(text);
    };
  const err = clearing((text) => terminal.err(text).catch(() => undefined));
  return {
    ...terminal,
    status,
    out: clearing(terminal.out),
    err,
    tell: (text, details) => err(format(text, details)),
    note: (remark) => err(format(printable(sayApply(remark).text))),
  };
}

async function reportError(
  error: unknown,
  hasBegun: boolean,
  { terminal, called }: Pick<ApplyEnvironment, 'terminal'> & { readonly called: Called },
): Promise<ExitStatus> {
  const failure = explainError(error);
  const isForeseen = error instanceof Failure;
  const status = await (isForeseen
    ? reportFailure(failure, terminal)
    : reportFailedCommand(failure, hasBegun, terminal));
  await printFailures([failure], called, terminal);
  return status;
}

/**
 * Reports an error that no command handles. If a change has begun, the node's state is unknown, because nothing has read the node since.
 */
async function reportFailedCommand(fault: Failure, hasBegun: boolean, terminal: ApplyTerminal): Promise<ExitStatus> {
  const status = await reportFailure(fault, terminal);
  if (!hasBegun) return status;
  await terminal.tell(
    'The state of the node is NOT known: check it with "kpc-apply verify", or go back with "kpc-apply rollback".',
  );
  return exitStatus.notRestored;
}
