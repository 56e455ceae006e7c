import type { Command } from 'commander';
import { printableLines } from '../base/printable.ts';
import { requestBundle } from '../apply/apply-bundle.ts';
import { observe } from '../apply/change-node.ts';
import { describeDraining, describeHeld, describePlan } from '../apply/describe-plan.ts';
import { describeConflict } from '../apply/ownership.ts';
import { isEmptyPlan, listLeftAddresses, type Plan } from '../apply/plan.ts';
import { readKubeProxyVersion } from '../bundle/manifest.ts';
import { accessFilter } from '../kube-proxy/access-filter.ts';
import { newestRelease, type Release } from '../kube-proxy/releases.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import { openSession, type ApplyEnvironment } from './apply-environment.ts';
import { addClaimOptions, addStateOption, drainOption, outputOption, type ClaimOptions } from './apply-options.ts';
import { formatPlan, summarizePlan } from './apply-plan-text.ts';
import { formatJson } from './format-json.ts';
import { exitStatus, type ExitStatus } from './exit-status.ts';
import { loadBundle } from './load-bundle.ts';

export interface PlanOptions extends ClaimOptions {
  readonly stateDir: string;
  readonly output: 'text' | 'json';
  readonly drainTimeout?: number;
}

export function addPlanCommand(
  program: Command,
  environment: ApplyEnvironment,
  done: (status: ExitStatus) => void,
): void {
  const command = program
    .command('plan')
    .description('Show what apply would change on this node: exit status 1 if it would change anything.')
    .argument('<folder>', 'the bundle')
    .addOption(drainOption())
    .addOption(outputOption());
  addStateOption(addClaimOptions(command)).action(async (folder: string, options: PlanOptions) =>
    done(await runPlan(folder, options, environment)),
  );
}

async function runPlan(folder: string, options: PlanOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const bundle = await loadBundle(folder);
  const plan = await planBundle(bundle, options, environment);
  await environment.terminal.out(
    options.output === 'json' ? formatPlanJson(plan, bundle) : formatPlanText(plan, bundle, 'nothing would change'),
  );
  return isEmptyPlan(plan) && plan.share.conflicts.length === 0 ? exitStatus.ok : exitStatus.differs;
}

/** Compares the node with a bundle. */
export async function planBundle(
  bundle: StoredBundle,
  options: Omit<PlanOptions, 'output'>,
  environment: ApplyEnvironment,
): Promise<Plan> {
  const session = openSession(environment, options);
  const request = requestBundle(environment.host, bundle, {
    adopt: options.adopt,
    excludeCIDRs: options.ipvsExcludeCidrs,
    drainTimeout: options.drainTimeout,
    force: true,
  });
  return (await observe(session, request)).plan;
}

/** A plan for people; `nothing` is what to say of an empty one. */
export function formatPlanText(plan: Plan, bundle: StoredBundle, nothing: string): string {
  const { conflicts, foreign } = plan.share;
  const release = olderReleaseOf(bundle);
  const notes = [
    ...(release === undefined ? [] : [`the bundle is by the kube-proxy of Kubernetes ${release}\n`]),
    ...conflicts.map(
      (conflict) =>
        `! ${describeConflict(conflict)} exists already, and kpc-apply did not make it` +
        `${conflict.adoptable ? ': --adopt takes it over' : ''}\n`,
    ),
    ...(foreign.length > 0
      ? [`${foreign.length} virtual server(s) of other programs stay: ${foreign.join(', ')}\n`]
      : []),
    ...plan.draining.map((server) => `${describeDraining(server)} drains\n`),
    ...(plan.kept > 0 ? [`${connections(plan.kept)} open to real servers that drain\n`] : []),
    ...(plan.held.length > 0 ? [`${describeHeld(plan.held)}\n`] : []),
    ...describeGuarded(plan),
    ...(plan.cut > 0 ? [`! ${connections(plan.cut)} would be cut\n`] : []),
  ];
  if (isEmptyPlan(plan)) return printableLines(`${nothing}\n${notes.join('')}`);
  return printableLines(`${formatPlan(plan, bundle.cluster.servicePorts)}\n${notes.join('')}${summarizePlan(plan)}\n`);
}

/** A plan for programs: `changes` is empty where nothing would change. */
export function formatPlanJson(plan: Plan, bundle: StoredBundle): string {
  const release = olderReleaseOf(bundle);
  return formatJson({
    ...(release === undefined ? {} : { kubernetesVersion: release }),
    changes: describePlan(plan, bundle.cluster.servicePorts),
    conflicts: plan.share.conflicts,
    foreignVirtualServers: plan.share.foreign,
    draining: plan.draining,
    ...(plan.held.length > 0 ? { heldAddresses: plan.held } : {}),
    ...(plan.leftIpvs === undefined ? {} : { addressesLeft: listLeftAddresses(plan) }),
    ...(plan.kept + plan.cut > 0 ? { connections: { draining: plan.kept, cut: plan.cut } } : {}),
  });
}

/** The release whose kube-proxy a bundle follows; undefined for the newest, of which there is nothing to say. */
function olderReleaseOf({ manifest }: StoredBundle): Release | undefined {
  const release = readKubeProxyVersion(manifest.kubeProxyVersion);
  return release === newestRelease ? undefined : release;
}

/** What the bundle says nothing of, and is there until connections have ended. */
function describeGuarded(plan: Plan): readonly string[] {
  const { length } = listLeftAddresses(plan);
  if (length === 0) return [];
  const those = length === 1 ? '1 address of IPVS mode stays' : `${length} addresses of IPVS mode stay`;
  return [
    `${those} until then, and ${accessFilter.chain} with its sets, which closes ${length === 1 ? 'it' : 'them'}\n`,
  ];
}

function connections(count: number): string {
  return count === 1 ? '1 connection' : `${count} connections`;
}
