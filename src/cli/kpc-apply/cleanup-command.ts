import type { Command } from 'commander';
import { changeNode } from '../../apply/change/change-node.ts';
import { describeConflict } from '../../apply/plan/share-draft.ts';
import type { Plan } from '../../apply/plan/plan.ts';
import { requestNothing } from '../../apply/change/clean-up.ts';
import { noting } from '../../apply/state/last-command.ts';
import { withLock } from '../../apply/state/lock.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession, interruptible, type ApplyEnvironment, type NodeOptions } from './environment.ts';
import { addClaimOptions, addForceOption, addStateOption, type ClaimOptions } from './options.ts';
import type { ExitStatus, Done } from '../shared/exit-status.ts';

interface CleanupOptions extends NodeOptions, ClaimOptions {
  readonly force: boolean;
}

export function addCleanupCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('cleanup')
    .description('Remove what kpc-apply made; with --adopt, also everything that kube-proxy made.');
  addStateOption(addForceOption(addClaimOptions(command, { hasBundle: false }))).action(
    async (options: CleanupOptions) => done(await runCleanup(options, environment)),
  );
}

async function runCleanup(options: CleanupOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const { host, terminal } = environment;
  const { adopt, ipvsExcludeCidrs: excludeCIDRs, force } = options;
  return interruptible(async (signal) => {
    const session = openSession(environment, options, signal);
    const outcome = await noting(session, 'cleanup', () =>
      withLock(host, options.stateDir, 'cleanup', () =>
        changeNode(session, requestNothing(host, { adopt, excludeCIDRs, force })),
      ),
    );
    const status = await reportOutcome(outcome, terminal, 'there is nothing to remove');
    if (outcome.kind === 'unchanged' || outcome.kind === 'changed') {
      const note = describeLeftovers(outcome.plan.share.leftovers);
      if (note !== '') await terminal.err(note);
    }
    return status;
  });
}

/** What has kube-proxy's names and stays; '' where there is nothing. */
function describeLeftovers(leftovers: Plan['share']['leftovers']): string {
  const held = leftovers.filter(({ isHeld }) => isHeld);
  const others = leftovers.filter(({ isHeld }) => !isHeld);
  const kept = 'kept, because kpc-apply did not make it';
  return [
    ...(others.length === 0 ? [] : [`${kept}: ${listFirst(others)}; if kube-proxy left it, --adopt removes it too\n`]),
    ...(held.length === 0 ? [] : [`${kept}: ${listFirst(held)}\n`]),
  ].join('');
}

/** "ipv4 nat KUBE-SERVICES, table ip kube-proxy", and how many more there are. */
function listFirst(leftovers: Plan['share']['leftovers']): string {
  const shown = leftovers
    .slice(0, 3)
    .map((leftover) => (leftover.kind === 'chain' ? leftover.name : describeConflict(leftover)));
  if (leftovers.length > shown.length) shown.push(`${leftovers.length - shown.length} more`);
  return shown.join(', ');
}
