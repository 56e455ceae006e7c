import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { printable, printableLines } from '../../base/printable.ts';
import {
  applyBundle,
  assertNoRefusals,
  foreseeApply,
  requestBundle,
  type ApplyChoices,
  requestNothing,
} from '../../apply/change/apply-bundle.ts';
import { noting } from '../../apply/state/last-command.ts';
import { describeHeld } from '../../apply/plan/describe-plan.ts';
import { assertNoConflicts, type ChangeOutcome, changeNode } from '../../apply/change/change-node.ts';
import { observe } from '../../apply/change/observe-node.ts';
import { stateFolder } from '../../apply/state/record.ts';
import { recallSettled } from '../../apply/quick/small-change.ts';
import { withLock } from '../../apply/state/lock.ts';
import { isEmptyPlan, type Plan } from '../../apply/plan/plan.ts';
import { formatCommand } from '../../apply/node/host.ts';
import { describeStep, listSteps, stepCommand, type Step } from '../../apply/plan/steps.ts';
import {
  openSession,
  reportFailure,
  reportStuck,
  reportWarning,
  interruptible,
  type ApplyEnvironment,
  type NodeOptions,
} from './environment.ts';
import {
  addLogOption,
  addClaimOptions,
  addStateOption,
  addTrustOption,
  drainOption,
  parseDuration,
  addForceOption,
  type ClaimOptions,
  type TrustOptions,
} from './options.ts';
import { openSource } from './bundle-source.ts';
import { summarizePlan } from '../../report/plan-text.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import { loadBundleToApply } from '../../sides/load-bundle.ts';
import type { Terminal } from '../shared/terminal.ts';
import { confirmApply } from '../../apply/change/answer-unconfirmed.ts';
import { describeConflict } from '../../apply/plan/share-draft.ts';

interface ApplyOptions extends ClaimOptions, TrustOptions {
  readonly stateDir: string;
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly drainTimeout?: number;
  readonly confirmTimeout?: number;
}

export function addApplyCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('apply')
    .description('Program a bundle into this node; put everything back if that fails.')
    .argument('<bundle>', 'its folder or pack')
    .addOption(new Option('--dry-run', 'print what each tool would be given, and change nothing').default(false, 'no'))
    .addOption(
      new Option(
        '--confirm-timeout <duration>',
        'put everything back unless "kpc-apply confirm" is run within this time',
      ).argParser(parseDuration),
    )
    .addOption(drainOption())
    .addOption(new Option('--force', 'continue even if doctor finds an error').default(false, 'no'));
  addLogOption(addStateOption(addTrustOption(addClaimOptions(command))));
  command.action(async (folder: string, options: ApplyOptions) => done(await runApply(folder, options, environment)));
}

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

async function runApply(folder: string, options: ApplyOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const { terminal, host } = environment;
  const source = openSource(folder, options, environment);
  const load = async () => {
    const known = await recallSettled(host, stateFolder(options.stateDir));
    const bundle = await loadBundleToApply(folder, source.read, known?.bundle);
    return { bundle, choices: { ...choicesOf('apply', resolve(folder), options), settling: { known } } };
  };
  if (options.dryRun) {
    const { bundle, choices } = await load();
    const session = openSession(environment, options);
    const observation = await observe(session, requestBundle(host, bundle, choices));
    const { refusals, warnings } = await foreseeApply(host, bundle, observation);
    if (!options.force) assertNoRefusals(refusals);
    assertNoConflicts(observation.plan);
    for (const warning of warnings) await reportWarning(warning, terminal);
    await terminal.out(printableLines(formatDryRun(observation.plan)));
    return exitStatus.ok;
  }
  return interruptible(async (signal) => {
    const session = openSession(environment, options, signal);
    const command = `apply ${folder}`;
    const outcome = await noting(session, command, async () => {
      const { bundle, choices } = await load();
      await source.remember();
      return withLock(host, options.stateDir, command, () => applyBundle(session, bundle, choices));
    });
    return reportOutcome(outcome, terminal);
  });
}

/** What the options of a command say of an apply; `folder` is for people. */
export function choicesOf(
  kind: ApplyChoices['origin']['kind'],
  folder: string,
  options: ClaimOptions & Partial<Pick<ApplyOptions, 'drainTimeout' | 'confirmTimeout'>> & { readonly force: boolean },
): ApplyChoices {
  const { adopt, ipvsExcludeCidrs: excludeCIDRs, drainTimeout, confirmTimeout, force } = options;
  return { origin: { kind, folder }, adopt, excludeCIDRs, drainTimeout, confirmTimeout, force };
}

/** Each tool's input, under the command that reads it; the whole can be fed to a shell piece by piece. */
function formatDryRun(plan: Plan): string {
  if (isEmptyPlan(plan)) return 'nothing to do\n';
  return listSteps(plan).map(formatStep).join('\n');
}

function formatStep(step: Step): string {
  const command = stepCommand(step);
  if (!command) return `# ${describeStep(step)}\n`;
  return `# ${formatCommand(command)}\n${command.stdin ?? ''}`;
}

/** Says how a change of the node ended; `nothing` is why there was nothing to do, and `what` was done otherwise. */
export async function reportOutcome(
  outcome: ChangeOutcome,
  terminal: Terminal,
  nothing = 'the node matches the bundle',
  what = '',
): Promise<ExitStatus> {
  switch (outcome.kind) {
    case 'unchanged':
      await terminal.err(`nothing to do: ${printable(nothing)}${describeDraining(outcome.plan)}\n`);
      return exitStatus.ok;
    case 'changed':
      await terminal.err(
        `done: ${printable(what)}${summarizePlan(outcome.plan)}${describeDraining(outcome.plan)}${describeCut(outcome.plan)}\n`,
      );
      return exitStatus.ok;
    case 'put-back': {
      const status = await reportFailure(outcome.failure, terminal);
      await terminal.err('The node is as it was before.\n');
      return status;
    }
    case 'stuck':
      return reportStuck(outcome.failure, outcome.left, terminal);
    default:
      return outcome satisfies never;
  }
}

function describeDraining({ draining, kept, held }: Plan): string {
  const servers = draining.length === 1 ? '1 real server waits' : `${draining.length} real servers wait`;
  const open = kept === 0 ? 'connections' : kept === 1 ? '1 connection' : `${kept} connections`;
  return [
    ...(draining.length > 0 ? [`; ${servers} for ${open} to end`] : []),
    ...(held.length > 0 ? [`; ${describeHeld(held)}`] : []),
  ].join('');
}

function describeCut({ cut }: Plan): string {
  return cut === 0 ? '' : `; ${cut === 1 ? '1 connection was' : `${cut} connections were`} cut`;
}

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

/** What has kube-proxy's names and stays; '' for nothing. */
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
