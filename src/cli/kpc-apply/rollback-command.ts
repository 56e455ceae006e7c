import { Option } from 'commander';
import type { Command } from 'commander';
import type { Session } from '../../apply/change-node.ts';
import { withLock } from '../../apply/lock.ts';
import { rollBack } from '../../apply/roll-back.ts';
import { standBy } from '../../apply/way-back.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession } from './environment.ts';
import type { ApplyEnvironment, NodeOptions } from './environment.ts';
import { addForceOption, addStateOption, drainOption } from './options.ts';
import { onInterrupt } from './interrupt.ts';
import { exitStatus } from '../shared/exit-status.ts';
import type { ExitStatus } from '../shared/exit-status.ts';

interface RollbackOptions extends NodeOptions {
  readonly drainTimeout?: number;
  readonly unconfirmed?: string;
  readonly force: boolean;
}

export function addRollbackCommand(
  program: Command,
  environment: ApplyEnvironment,
  done: (status: ExitStatus) => void,
): void {
  const command = program
    .command('rollback')
    .description('Restore this node to its state before the last apply, or before one that did not finish.')
    .addOption(drainOption())
    .addOption(
      new Option(
        '--unconfirmed <id>',
        'stand by for that one apply with --confirm-timeout, and put back nothing but what it did; apply runs this itself',
      ).hideHelp(),
    );
  addStateOption(addForceOption(command)).action(async (options: RollbackOptions) => {
    const { signal, release } = onInterrupt();
    try {
      const session = openSession(environment, options, signal);
      done(
        options.unconfirmed === undefined
          ? await runRollback(session, options, environment)
          : await runStandBy(session, options.unconfirmed, environment),
      );
    } finally {
      release();
    }
  });
}

async function runRollback(
  session: Session,
  options: RollbackOptions,
  { terminal, host }: ApplyEnvironment,
): Promise<ExitStatus> {
  const result = await withLock(host, options.stateDir, 'rollback', () =>
    rollBack(session, { drainTimeout: options.drainTimeout, force: options.force }),
  );
  switch (result.kind) {
    case 'unfinished-put-back':
      await terminal.err('done: the node is as it was before the apply that did not finish\n');
      return exitStatus.ok;
    case 'unfinished-stuck':
      await terminal.err('NOT everything could be put back: run "kpc-apply doctor", then roll back again\n');
      return exitStatus.notRestored;
    case 'rolled-back':
      return reportOutcome(result.outcome, terminal, 'the node is as it was before the last apply');
    default:
      return result satisfies never;
  }
}

async function runStandBy(session: Session, id: string, { terminal }: ApplyEnvironment): Promise<ExitStatus> {
  // The process that started this waits for a word, and may have gone when the next one is said.
  await terminal.out(`standing by for apply ${id}\n`);
  const outcome = await standBy(session, id);
  switch (outcome) {
    case 'nothing-to-do':
      await terminal.err(`nothing to do: apply ${id} has been confirmed, put back or replaced\n`);
      return exitStatus.ok;
    case 'kept':
      await terminal.err(`done: apply ${id} was confirmed, so its changes stay\n`);
      return exitStatus.ok;
    case 'put-back':
      await terminal.err(`done: apply ${id} was not confirmed, so the node is as it was before it\n`);
      return exitStatus.ok;
    case 'stuck':
      await terminal.err('NOT everything could be put back: run "kpc-apply doctor", then roll back again\n');
      return exitStatus.notRestored;
    default:
      return outcome satisfies never;
  }
}
