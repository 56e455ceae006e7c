import type { Command } from 'commander';
import { withLock } from '../apply/lock.ts';
import { rollBack } from '../apply/roll-back.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession, type ApplyEnvironment, type NodeOptions } from './apply-environment.ts';
import { addForceOption, addStateOption, drainOption } from './apply-options.ts';
import { exitStatus, type ExitStatus } from './exit-status.ts';

interface RollbackOptions extends NodeOptions {
  readonly drainTimeout?: number;
  readonly force: boolean;
}

export function addRollbackCommand(
  program: Command,
  environment: ApplyEnvironment,
  done: (status: ExitStatus) => void,
): void {
  const command = program
    .command('rollback')
    .description('Bring this node to what it was before the last apply, or before one that did not come to its end.')
    .addOption(drainOption());
  addStateOption(addForceOption(command)).action(async (options: RollbackOptions) =>
    done(await runRollback(options, environment)),
  );
}

async function runRollback(options: RollbackOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const { terminal, host } = environment;
  const session = openSession(environment, options);
  const result = await withLock(host, options.stateDir, 'rollback', () =>
    rollBack(session, { drainTimeout: options.drainTimeout, force: options.force }),
  );
  switch (result.kind) {
    case 'unfinished-put-back':
      await terminal.err('done: the node is as it was before the apply that did not come to its end\n');
      return exitStatus.ok;
    case 'unfinished-stuck':
      await terminal.err('NOT everything could be put back: see "kpc-apply doctor", and roll back again\n');
      return exitStatus.notRestored;
    case 'rolled-back':
      return reportOutcome(result.outcome, terminal);
    default:
      return result satisfies never;
  }
}
