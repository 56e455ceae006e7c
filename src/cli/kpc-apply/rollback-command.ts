import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Session } from '../../apply/change/observe-node.ts';
import { describePlan } from '../../apply/plan/describe-plan.ts';
import { describeState } from '../../apply/state/history.ts';
import { withLock } from '../../apply/state/lock.ts';
import type { StateMark } from '../../apply/state/record.ts';
import {
  listStates,
  planRollBack,
  rollBack,
  type RollBackPlan,
  type RollBackOutcome,
} from '../../apply/change/roll-back.ts';
import { printable } from '../../base/printable.ts';
import { formatJson } from '../../report/format-json.ts';
import { describeLeftSettings, formatPlanText, planValue } from '../../report/plan-text.ts';
import { formatStatesJson, formatStatesText, stateValue } from '../../report/rollback-states.ts';
import { standBy } from '../../apply/change/answer-unconfirmed.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession, interruptible, type ApplyEnvironment, type NodeOptions } from './environment.ts';
import { addForceOption, addStateOption, drainOption, outputOption } from './options.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import type { Terminal } from '../shared/terminal.ts';

interface RollbackOptions extends NodeOptions {
  readonly to: number | undefined;
  readonly list: boolean;
  readonly dryRun: boolean;
  readonly output: 'text' | 'json';
  readonly drainTimeout: number | undefined;
  readonly unconfirmed?: string;
  readonly force: boolean;
}

export function addRollbackCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('rollback')
    .description(
      'Undo the last apply, cleanup or rollback, or one that did not finish; or go back to an earlier state.',
    )
    .addOption(new Option('--to <id>', 'go to this state, one that --list names').argParser(parseStateId))
    .addOption(
      new Option('--list', 'list the states to go back to, and change nothing')
        .conflicts(['to', 'dryRun'])
        .default(false, 'no'),
    )
    .addOption(new Option('--dry-run', 'show what would change, and change nothing').default(false, 'no'))
    .addOption(outputOption())
    .addOption(drainOption())
    .addOption(
      new Option(
        '--unconfirmed <id>',
        'stand by for that one apply with --confirm-timeout, and put back nothing but what it did; apply runs this itself',
      ).hideHelp(),
    );
  addStateOption(addForceOption(command));
  command.action(async (options: RollbackOptions) =>
    done(
      await interruptible((signal) =>
        runRollback(openSession(environment, options, signal), options, environment.terminal),
      ),
    ),
  );
}

function parseStateId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write the number of a state, as "kpc-apply rollback --list" shows it.');
}

async function runRollback(session: Session, options: RollbackOptions, terminal: Terminal): Promise<ExitStatus> {
  if (options.unconfirmed !== undefined) return runStandBy(session, options.unconfirmed, terminal);
  if (options.list) {
    const states = await listStates(session);
    await terminal.out(options.output === 'json' ? formatStatesJson(states) : formatStatesText(states));
    return exitStatus.ok;
  }
  if (options.dryRun) {
    const planned = await planRollBack(session, options);
    await terminal.out(options.output === 'json' ? formatJson(planJson(planned)) : formatPlanned(planned));
    return exitStatus.ok;
  }
  const result = await withLock(session.host, options.stateDir, 'rollback', () => rollBack(session, options));
  if (options.output === 'json') await terminal.out(formatJson(resultJson(result)));
  return reportResult(result, terminal);
}

function planJson(planned: RollBackPlan): object {
  return {
    ...(planned.kind === 'unfinished' ? {} : { state: stateValue(planned.to) }),
    ...(planned.kind === 'there-already' ? { changes: [] } : planValue(planned.plan)),
  };
}

function formatPlanned(planned: RollBackPlan): string {
  if (planned.kind === 'there-already') return `${printable(describeThere(planned.to))}\n`;
  const where =
    planned.kind === 'unfinished' ? 'the state before the apply that did not finish' : printable(nameState(planned.to));
  return `back to ${where}:\n${formatPlanText(planned.plan, { as: 'plan', bundle: undefined })}`;
}

function resultJson(result: RollBackOutcome): object {
  switch (result.kind) {
    case 'unfinished-put-back':
    case 'unfinished-stuck':
      return { outcome: result.kind };
    case 'there-already':
      return { outcome: 'unchanged', state: stateValue(result.to), changes: [] };
    case 'rolled-back': {
      const { to, outcome } = result;
      const changes = 'plan' in outcome ? describePlan(outcome.plan) : [];
      return { outcome: outcome.kind, state: stateValue(to), changes };
    }
    default:
      return result satisfies never;
  }
}

async function reportResult(result: RollBackOutcome, terminal: Terminal): Promise<ExitStatus> {
  switch (result.kind) {
    case 'unfinished-put-back':
      await terminal.err('done: the node is as it was before the apply that did not finish\n');
      return exitStatus.ok;
    case 'unfinished-stuck':
      return reportRest(terminal);
    case 'there-already':
      await terminal.err(`nothing to do: ${printable(describeThere(result.to))}\n`);
      return exitStatus.ok;
    case 'rolled-back': {
      const { outcome } = result;
      const to = nameState(result.to);
      const status = await reportOutcome(outcome, terminal, `the node is as in ${to}`, `back to ${to}: `);
      const notes = 'plan' in outcome ? describeLeftSettings(outcome.plan) : [];
      for (const text of notes) await terminal.err(`note: ${printable(text)}\n`);
      if (outcome.kind === 'changed') await terminal.err('"kpc-apply rollback" again undoes this\n');
      return status;
    }
    default:
      return result satisfies never;
  }
}

async function reportRest(terminal: Terminal): Promise<ExitStatus> {
  await terminal.err('NOT everything could be put back: run "kpc-apply doctor", then roll back again\n');
  return exitStatus.notRestored;
}

/** "state 3 (bundle /root/shop (3f2a9c0b1d2e), applied 2026-01-31T12:00:00Z)". */
function nameState(state: StateMark): string {
  return `state ${state.id} (${describeState(state)})`;
}

function describeThere(state: StateMark): string {
  return `the node is in ${nameState(state)}`;
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
  if (outcome === 'stuck') return reportRest(terminal);
  await terminal.err(`${standByOutcomes[outcome](id)}\n`);
  return exitStatus.ok;
}
