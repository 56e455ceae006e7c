import type { Command } from 'commander';
import { foreseeApply, requestBundle } from '../../apply/change/apply-bundle.ts';
import { observe } from '../../apply/change/change-node.ts';
import type { Observation } from '../../apply/change/observe-node.ts';
import { isEmptyPlan } from '../../apply/plan/plan.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import { openSession, type ApplyEnvironment } from './environment.ts';
import { openSource } from './bundle-source.ts';
import {
  addClaimOptions,
  addStateOption,
  addTrustOption,
  drainOption,
  outputOption,
  type ClaimOptions,
  type TrustOptions,
} from './options.ts';
import { formatPlanJson } from '../../report/plan-json.ts';
import { formatPlanText } from '../../report/plan-text.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import { loadBundle } from '../../sides/load-bundle.ts';

export interface PlanOptions extends ClaimOptions, TrustOptions {
  readonly stateDir: string;
  readonly output: 'text' | 'json';
  readonly drainTimeout?: number;
  /** Name each chain and set entry. */
  readonly all?: boolean;
}

export function addPlanCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('plan')
    .description('Show what apply would change on this node: exit status 1 if it would change anything.')
    .argument('<bundle>', 'its folder or pack')
    .addOption(drainOption())
    .option('--all', 'name each chain and set entry, however many there are')
    .addOption(outputOption());
  addStateOption(addTrustOption(addClaimOptions(command))).action(async (folder: string, options: PlanOptions) =>
    done(await runPlan(folder, options, environment)),
  );
}

async function runPlan(folder: string, options: PlanOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const bundle = await loadBundle(folder, openSource(folder, options, environment).read);
  const observation = await observeBundle(bundle, options, environment);
  const foresight = await foreseeApply(environment.host, bundle, observation);
  const { plan } = observation;
  await environment.terminal.out(
    options.output === 'json'
      ? formatPlanJson(plan, bundle, foresight)
      : formatPlanText(plan, { as: 'plan', bundle, foresight, namesAll: options.all }),
  );
  return isEmptyPlan(plan) && plan.share.conflicts.length === 0 ? exitStatus.ok : exitStatus.differs;
}

/** Looks at the node, and compares it with a bundle. */
export async function observeBundle(
  bundle: StoredBundle,
  options: Omit<PlanOptions, 'output' | 'trust'>,
  environment: ApplyEnvironment,
): Promise<Observation> {
  const session = openSession(environment, options);
  const request = requestBundle(environment.host, bundle, {
    origin: { kind: 'apply', folder: '' },
    adopt: options.adopt,
    excludeCIDRs: options.ipvsExcludeCidrs,
    drainTimeout: options.drainTimeout,
    force: true,
  });
  return observe(session, request);
}

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
