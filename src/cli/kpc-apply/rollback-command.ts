import { isDone, type Session } from '../../apply/change/observe-node.ts';
import { describePlan } from '../../apply/plan/describe-plan.ts';
import { describeState } from '../../apply/state/history.ts';
import { withLock } from '../../apply/state/lock.ts';
import type { StateMark } from '../../apply/state/record.ts';
import {
  listStates,
  planRollBack,
  rollBack,
  type RollBackOutcome,
  type RollBackPlan,
} from '../../apply/change/roll-back.ts';
import { printable } from '../../base/printable.ts';
import { formatJson } from '../../report/format-json.ts';
import { describeLeftSettings, formatPlanText, planValue } from '../../report/plan-text.ts';
import { formatStatesJson, formatStatesText, stateValue } from '../../report/rollback-states.ts';
import { standBy } from '../../apply/change/unconfirmed-apply.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession, interruptible, reportStuck } from './environment.ts';
import { defineCommand, type Options } from './options.ts';
import { exitStatus, type ExitStatus } from '../shared/exit-status.ts';
import type { Terminal } from '../shared/terminal.ts';

type RollbackFlag = 'to' | 'list' | 'dryRun' | 'output' | 'drainTimeout' | 'unconfirmed' | 'force' | 'stateDir';

export const addRollbackCommand = defineCommand({
  name: 'rollback',
  description: 'Undo the last apply, cleanup or rollback, or one that did not finish; or go back to an earlier state.',
  flags: ['to', 'list', 'dryRun', 'output', 'drainTimeout', 'unconfirmed', 'force', 'stateDir'],
  run: (options, environment) =>
    interruptible((signal) => runRollback(openSession(environment, options, signal), options, environment.terminal)),
});

async function runRollback(session: Session, options: Options<RollbackFlag>, terminal: Terminal): Promise<ExitStatus> {
  const isJson = options.output === 'json';
  if (options.unconfirmed !== undefined) return runStandBy(session, options.unconfirmed, terminal);
  if (options.list) {
    const states = await listStates(session);
    await terminal.out(isJson ? formatStatesJson(states) : formatStatesText(states));
    return exitStatus.ok;
  }
  if (options.dryRun) {
    const planned = await planRollBack(session, options);
    await terminal.out(isJson ? formatJson(planJson(planned)) : formatPlanned(planned));
    return exitStatus.ok;
  }
  const outcome = await withLock(session.host, options.stateDir, 'rollback', () => rollBack(session, options));
  if (isJson) await terminal.out(formatJson(resultJson(outcome)));
  return report(outcome, terminal);
}

function planJson({ to, plan }: RollBackPlan): object {
  return { state: to && stateValue(to), ...(plan ? planValue(plan) : { changes: [] }) };
}

function formatPlanned({ to, plan }: RollBackPlan): string {
  const where = to ? printable(nameState(to)) : 'the state before the apply that did not finish';
  return plan
    ? `back to ${where}:\n${formatPlanText(plan, { as: 'plan', bundle: undefined })}`
    : `the node is in ${where}\n`;
}

function resultJson(result: RollBackOutcome): object {
  if (result.kind === 'unfinished') {
    return { outcome: result.left === 'nothing' ? 'unfinished-put-back' : 'unfinished-stuck' };
  }
  const { to, outcome } = result;
  const changes = outcome && isDone(outcome) ? describePlan(outcome.plan) : [];
  return { outcome: outcome?.kind ?? 'unchanged', state: stateValue(to), changes };
}

async function report(result: RollBackOutcome, terminal: Terminal): Promise<ExitStatus> {
  if (result.kind === 'unfinished') {
    if (result.left !== 'nothing') return reportStuck(result.left, terminal);
    await terminal.err('done: the node is as it was before the apply that did not finish\n');
    return exitStatus.ok;
  }
  const { outcome } = result;
  const to = nameState(result.to);
  if (!outcome) {
    await terminal.err(`nothing to do: the node is in ${printable(to)}\n`);
    return exitStatus.ok;
  }
  const status = await reportOutcome(outcome, terminal, `the node is as in ${to}`, `back to ${to}: `);
  const notes = isDone(outcome) ? describeLeftSettings(outcome.plan) : [];
  for (const text of notes) await terminal.err(`note: ${printable(text)}\n`);
  if (outcome.kind === 'changed') await terminal.err('"kpc-apply rollback" again undoes this\n');
  return status;
}

/** "state 3 (bundle /root/shop (3f2a9c0b1d2e), applied 2026-01-31T12:00:00Z)". */
function nameState(state: StateMark): string {
  return `state ${state.id} (${describeState(state)})`;
}

const standByOutcomes = {
  'nothing-to-do': (id: string) => `nothing to do: apply ${id} has been confirmed, put back or replaced`,
  kept: (id: string) => `done: apply ${id} was confirmed, so its changes stay`,
  'put-back': (id: string) => `done: apply ${id} was not confirmed, so the node is as it was before it`,
};

async function runStandBy(session: Session, id: string, terminal: Terminal): Promise<ExitStatus> {
  // The process that started this waits for a word, and may have gone when the next one is said.
  await terminal.out(`standing by for apply ${id}\n`);
  const outcome = await standBy(session, id);
  if (outcome === 'stuck') return reportStuck(undefined, terminal);
  await terminal.err(`${standByOutcomes[outcome](id)}\n`);
  return exitStatus.ok;
}
