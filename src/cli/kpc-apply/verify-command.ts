import type { Command } from 'commander';
import { isEmptyPlan } from '../../apply/plan/plan.ts';
import type { ApplyEnvironment } from './environment.ts';
import { openSource } from './bundle-source.ts';
import { addStateOption, addTrustOption, outputOption } from './options.ts';
import { formatPlanJson, formatPlanText } from '../../report/plan-text.ts';
import { observeBundle, type PlanOptions } from './plan-command.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import { loadBundle } from '../../sides/load-bundle.ts';

type VerifyOptions = Pick<PlanOptions, 'stateDir' | 'output' | 'trust'>;

export function addVerifyCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('verify')
    .description('Check that this node matches a bundle: exit status 1 and the drift if it does not.')
    .argument('<bundle>', 'its folder or pack')
    .addOption(outputOption());
  addStateOption(addTrustOption(command)).action(async (folder: string, options: VerifyOptions) =>
    done(await runVerify(folder, options, environment)),
  );
}

async function runVerify(folder: string, options: VerifyOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const bundle = await loadBundle(folder, openSource(folder, options, environment).read);
  const { plan } = await observeBundle(bundle, { ...options, adopt: false, ipvsExcludeCidrs: [] }, environment);
  await environment.terminal.out(
    options.output === 'json' ? formatPlanJson(plan, bundle) : formatPlanText(plan, { as: 'drift', bundle }),
  );
  return isEmptyPlan(plan) && plan.share.conflicts.length === 0 ? exitStatus.ok : exitStatus.differs;
}
