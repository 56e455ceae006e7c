import type { Command } from 'commander';
import { changeNode } from '../apply/change-node.ts';
import { requestNothing } from '../apply/clean-up.ts';
import { withLock } from '../apply/lock.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession, type ApplyEnvironment, type NodeOptions } from './apply-environment.ts';
import { addClaimOptions, addStateOption, type ClaimOptions } from './apply-options.ts';
import type { ExitStatus } from './exit-status.ts';
import { onInterrupt } from './interrupt.ts';

export function addCleanupCommand(
  program: Command,
  environment: ApplyEnvironment,
  done: (status: ExitStatus) => void,
): void {
  const command = program
    .command('cleanup')
    .description('Take away what kpc-apply made; with --adopt, all that a kube-proxy made.');
  addStateOption(addClaimOptions(command)).action(async (options: NodeOptions & ClaimOptions) =>
    done(await runCleanup(options, environment)),
  );
}

async function runCleanup(options: NodeOptions & ClaimOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const { signal, release } = onInterrupt();
  try {
    const session = openSession(environment, options, signal);
    const outcome = await withLock(environment.host, options.stateDir, 'cleanup', () =>
      changeNode(session, requestNothing(options.adopt, options.ipvsExcludeCidrs)),
    );
    return await reportOutcome(outcome, environment.terminal);
  } finally {
    release();
  }
}
