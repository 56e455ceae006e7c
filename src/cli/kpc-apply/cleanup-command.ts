import type { Command } from 'commander';
import { changeNode } from '../../apply/change-node.ts';
import type { Plan } from '../../apply/plan.ts';
import { requestNothing } from '../../apply/clean-up.ts';
import { withLock } from '../../apply/lock.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession } from './environment.ts';
import type { ApplyEnvironment, NodeOptions } from './environment.ts';
import { addClaimOptions, addForceOption, addStateOption } from './options.ts';
import type { ClaimOptions } from './options.ts';
import type { ExitStatus } from '../shared/exit-status.ts';
import { onInterrupt } from './interrupt.ts';

interface CleanupOptions extends NodeOptions, ClaimOptions {
  readonly force: boolean;
}

export function addCleanupCommand(
  program: Command,
  environment: ApplyEnvironment,
  done: (status: ExitStatus) => void,
): void {
  const command = program
    .command('cleanup')
    .description('Remove what kpc-apply made; with --adopt, also everything that kube-proxy made.');
  addStateOption(addForceOption(addClaimOptions(command))).action(async (options: CleanupOptions) =>
    done(await runCleanup(options, environment)),
  );
}

async function runCleanup(options: CleanupOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const { host, terminal } = environment;
  const { adopt, ipvsExcludeCidrs: excludeCIDRs, force } = options;
  const { signal, release } = onInterrupt();
  try {
    const session = openSession(environment, options, signal);
    const outcome = await withLock(host, options.stateDir, 'cleanup', () =>
      changeNode(session, requestNothing(host, { adopt, excludeCIDRs, force })),
    );
    const status = await reportOutcome(outcome, terminal);
    if (outcome.kind === 'unchanged' || outcome.kind === 'changed') {
      const note = describeLeftovers(outcome.plan.share.leftovers);
      if (note !== '') await terminal.err(note);
    }
    return status;
  } finally {
    release();
  }
}

/** What has kube-proxy's names and stays; '' where there is nothing. */
function describeLeftovers(leftovers: Plan['share']['leftovers']): string {
  if (leftovers.length === 0) return '';
  const shown = leftovers.slice(0, 3).map(({ name }) => name);
  if (leftovers.length > shown.length) shown.push(`${leftovers.length - shown.length} more`);
  return `kept, because kpc-apply did not make it: ${shown.join(', ')}; if kube-proxy left it, --adopt removes it too\n`;
}
