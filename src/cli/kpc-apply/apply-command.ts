import { resolve } from 'node:path';
import { printable } from '../../base/printable.ts';
import {
  applyBundle,
  assertNoRefusals,
  foreseeApply,
  requestBundle,
  requestNothing,
} from '../../apply/change/apply-bundle.ts';
import { nameState } from '../../say/words/apply-parts.ts';
import { describeDone, describeKept, describeStandBy } from '../../say/apply-outcomes.ts';
import { noting } from '../../apply/state/last-command.ts';
import { assertAllSeen, assertNoConflicts, changeNode } from '../../apply/change/change-node.ts';
import { isDone, observe, type ChangeOutcome, type Session } from '../../apply/change/observe-node.ts';
import { listStates, planRollBack, rollBack, type RollBackOutcome } from '../../apply/change/roll-back.ts';
import { withLock } from '../../apply/state/lock.ts';
import { isEmptyPlan, type Plan } from '../../apply/plan/plan.ts';
import {
  openSession,
  reportFailure,
  reportStuck,
  reportWarning,
  interruptible,
  type ApplyTerminal,
} from './environment.ts';
import { applyFlags, defineApplyCommand, type Options } from './options.ts';
import { bundleSource, loadBundleToApply } from '../../apply/open/load-bundle.ts';
import {
  describeLeftSettings,
  formatDryRun,
  formatPlanText,
  formatRollBack,
  formatStates,
} from '../../say/plan-text.ts';
import { exitStatus, type ExitStatus } from '../shared/terminal.ts';
import { confirmApply, standBy } from '../../apply/change/unconfirmed-apply.ts';

export const apply = defineApplyCommand({
  name: 'apply',
  description: 'Program a bundle into this node; roll everything back if that fails.',
  bundle: '<bundle>',
  flags: ['dryRun', 'confirmTimeout', ...applyFlags, 'logFormat'],
  async run(options, environment, folder) {
    const { terminal, host } = environment;
    const source = bundleSource(folder, options, environment);
    const load = async () => {
      const bundle = await loadBundleToApply(folder, source);
      const origin = { kind: 'apply', folder: resolve(folder), serial: source.serial() } as const;
      return { bundle, choices: { ...options, origin } };
    };
    if (options.dryRun) {
      const { bundle, choices } = await load();
      const session = await openSession(environment, { ...options, mayChange: false });
      const request = requestBundle(host, bundle, choices);
      const observation = await observe(session, request);
      assertAllSeen(session, request, observation);
      const { refusals, warnings } = await foreseeApply(host, bundle, observation, choices);
      if (!options.force) assertNoRefusals(refusals);
      assertNoConflicts(observation.plan);
      for (const warning of warnings) await reportWarning(warning, terminal);
      await terminal.out(formatDryRun(observation.plan, session.folder.balancer));
      return exitStatus.ok;
    }
    return interruptible(environment, async (signal) => {
      const session = await openSession(environment, { ...options, mayChange: true, signal });
      const command = `apply ${folder}`;
      const outcome = await noting(session, command, async () => {
        const { bundle, choices } = await load();
        return withLock(host, options.stateDir, command, () => applyBundle(session, bundle, choices));
      });
      for (const remark of isDone(outcome) ? await source.remember() : []) await reportWarning(remark, terminal);
      return reportOutcome(outcome, terminal);
    });
  },
});

export const confirm = defineApplyCommand({
  name: 'confirm',
  description: 'Keep the changes of an apply with --confirm-timeout, which otherwise undoes them at the deadline.',
  flags: ['stateDir'],
  async run(options, environment) {
    await confirmApply(await openSession(environment, { ...options, mayChange: false }));
    await environment.terminal.tell('confirmed');
    return exitStatus.ok;
  },
});

/** Reports the outcome of a change. `nothing` and `what` mean the same as in describeDone. */
export async function reportOutcome(
  outcome: ChangeOutcome,
  terminal: ApplyTerminal,
  nothing = 'the node matches the bundle',
  what = '',
): Promise<ExitStatus> {
  switch (outcome.kind) {
    case 'unchanged':
    case 'changed':
      await terminal.tell(describeDone(outcome, nothing, what));
      return exitStatus.ok;
    case 'put-back': {
      const status = await reportFailure(outcome.failure, terminal);
      await terminal.tell('The node is as it was before.');
      return status;
    }
    case 'stuck':
      await reportFailure(outcome.failure, terminal);
      return reportStuck(outcome.left, terminal);
    default:
      return outcome satisfies never;
  }
}

export const cleanup = defineApplyCommand({
  name: 'cleanup',
  description: 'Remove what kpc-apply made; with --adopt, also everything that kube-proxy made.',
  flags: [
    'dryRun',
    'confirmTimeout',
    'balancerReload',
    'adopt',
    'assumeAlone',
    'ipvsExcludeCidrs',
    'force',
    'stateDir',
  ],
  async run(options, environment) {
    const { host, terminal } = environment;
    if (options.dryRun) {
      return showCleanup(await openSession(environment, { ...options, mayChange: false }), options, terminal);
    }
    return interruptible(environment, async (signal) => {
      const session = await openSession(environment, { ...options, mayChange: true, signal });
      const outcome = await noting(session, 'cleanup', () =>
        withLock(host, options.stateDir, 'cleanup', () => changeNode(session, requestNothing(host, options))),
      );
      const status = await reportOutcome(outcome, terminal, 'there is nothing to remove');
      if (isDone(outcome)) await reportLeftovers(outcome.plan, terminal);
      return status;
    });
  },
});

async function showCleanup(
  session: Session,
  options: Options<'adopt' | 'assumeAlone' | 'ipvsExcludeCidrs' | 'force'>,
  terminal: ApplyTerminal,
): Promise<ExitStatus> {
  const request = requestNothing(session.host, options);
  const observation = await observe(session, request);
  assertAllSeen(session, request, observation);
  const { plan } = observation;
  await request.prepare?.(plan, isEmptyPlan(plan), observation);
  await terminal.out(formatPlanText(plan, { as: 'plan', bundle: undefined, namesAll: true }));
  await reportLeftovers(plan, terminal);
  return exitStatus.ok;
}

async function reportLeftovers(plan: Plan, terminal: ApplyTerminal): Promise<void> {
  for (const text of describeKept(plan)) await terminal.tell(text);
}

type RollbackFlag =
  'to' | 'list' | 'dryRun' | 'drainTimeout' | 'balancerReload' | 'unconfirmed' | 'assumeAlone' | 'force' | 'stateDir';

export const rollback = defineApplyCommand({
  name: 'rollback',
  description: 'Undo the last apply, cleanup or rollback, or one that did not finish; or go back to an earlier state.',
  flags: ['to', 'list', 'dryRun', 'drainTimeout', 'balancerReload', 'unconfirmed', 'assumeAlone', 'force', 'stateDir'],
  run: (options, environment) =>
    interruptible(environment, async (signal) => {
      // This session leaves no mark in the network, because without a record there is nothing to roll back.
      const session = await openSession(environment, { ...options, mayChange: false, signal });
      return runRollback(session, options, environment.terminal);
    }),
});

async function runRollback(
  session: Session,
  options: Options<RollbackFlag>,
  terminal: ApplyTerminal,
): Promise<ExitStatus> {
  if (options.unconfirmed !== undefined) return runStandBy(session, options.unconfirmed, terminal);
  if (options.list) {
    await terminal.out(formatStates(await listStates(session)));
    return exitStatus.ok;
  }
  if (options.dryRun) {
    await terminal.out(formatRollBack(await planRollBack(session, options)));
    return exitStatus.ok;
  }
  const outcome = await withLock(session.host, options.stateDir, 'rollback', () => rollBack(session, options));
  return reportRollBack(outcome, terminal);
}

async function reportRollBack(result: RollBackOutcome, terminal: ApplyTerminal): Promise<ExitStatus> {
  if (result.kind === 'unfinished') {
    if (result.left !== 'nothing') return reportStuck(result.left, terminal);
    await terminal.tell('done: the node is as it was before the apply that did not finish');
    return exitStatus.ok;
  }
  const { outcome } = result;
  const to = nameState(result.to);
  const status = await reportOutcome(outcome, terminal, `the node is as in ${to}`, `back to ${to}: `);
  const notes = isDone(outcome) ? describeLeftSettings(outcome.plan) : [];
  for (const text of notes) await terminal.tell(`note: ${printable(text)}`);
  if (outcome.kind === 'changed') await terminal.tell('"kpc-apply rollback" again undoes this');
  return status;
}

async function runStandBy(session: Session, id: string, terminal: ApplyTerminal): Promise<ExitStatus> {
  // The parent process waits for this line. It may exit before the next line.
  await terminal.out(`standing by for apply ${id}\n`);
  const outcome = await standBy(session, id);
  if (outcome === 'stuck') return reportStuck('unknown', terminal);
  await terminal.tell(describeStandBy(outcome, id));
  return exitStatus.ok;
}
