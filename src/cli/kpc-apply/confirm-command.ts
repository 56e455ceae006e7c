import type { Command } from 'commander';
import { confirmApply } from '../../apply/change/answer-unconfirmed.ts';
import { openSession, type ApplyEnvironment, type NodeOptions } from './environment.ts';
import { addStateOption } from './options.ts';
import { exitStatus, type Done } from '../shared/exit-status.ts';

export function addConfirmCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('confirm')
    .description(
      'Keep the changes of an apply with --confirm-timeout, which otherwise undoes them when the time is over.',
    );
  addStateOption(command).action(async (options: NodeOptions) => {
    await confirmApply(openSession(environment, options));
    await environment.terminal.err('confirmed\n');
    done(exitStatus.ok);
  });
}
