import type { RollBackPlan, RollBackStates } from '../apply/change/roll-back.ts';
import type { Foresight } from '../apply/change/apply-bundle.ts';
import { countPlan, listPlan, listSteps, type PlanStep } from '../apply/plan/steps.ts';
import type { ChangeKind, KernelChange } from '../ask/changes/kernel-change.ts';
import type { Shaped } from '../base/json/schema.ts';
import { describeKernelSubject } from './changes.ts';
import { count, formatCount, joinWords, printable, printableLines } from '../base/printable.ts';
import { compareText } from '../kernel/compare.ts';
import { joinHostPort } from '../kernel/address.ts';
import { settingName } from '../apply/plan/node-decisions.ts';
import { isEmptyPlan, listLeftAddresses, type Plan } from '../apply/plan/plan.ts';
import { formatCommand } from '../apply/node/host.ts';
import { accessFilter } from '../kube-proxy/ipvs-objects.ts';
import type { DrainingServer } from '../apply/state/record.ts';
import { formatBalancer } from '../kernel/balancer/balancer.ts';
import { lines, type Block } from './lines.ts';
import { formatText } from './formats/text.ts';
import { formatJson, unlessEmpty, type SaidByCommand } from './formats/json.ts';
import { snapshotsJson } from './snapshots.ts';
import type { plan as planSchema } from './outputs/node.ts';
import {
  describeLastCommand,
  describeState,
  describeStep,
  formatTime,
  nameObject,
  nameState,
} from './words/apply-parts.ts';
import { sayApply } from './words/apply.ts';
import { chooseEndpoints } from '../cluster/endpoint-choice.ts';
import { groupBy } from '../cluster/grouping.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import { newestRelease, type Release } from '../kube-proxy/releases.ts';

/** Describes a plan for people: first the objects that belong to no Service, then each Service. */
function describePlan(plan: Plan, namesAll: boolean, bundle: StoredBundle | undefined): readonly Block[] {
  const changes = listPlan(plan);
  const groups = groupBy(changes, ({ owner = '' }) => owner);
  const titles = new Map(planHeadings(changes, bundle).map((each) => [each.servicePort, titleOfService(each)]));
  return [...groups]
    .toSorted(([a], [b]) => compareText(a, b))
    .map(([name, own]) => [
      ...lines('plain', 0, name === '' ? 'this node' : (titles.get(name) ?? name)),
      ...describeObjects(own, namesAll),
    ]);
}

type PlanHeading = Shaped<typeof planSchema>['servicePorts'][number];

/** Lists those of the bundle's Service ports that change. */
function planHeadings(changes: readonly KernelChange[], bundle: StoredBundle | undefined): readonly PlanHeading[] {
  if (!bundle) return [];
  const { node, cluster } = bundle.snapshot;
  const changed = new Set(changes.map(({ owner }) => owner));
  const ports = cluster.servicePorts.filter(({ label }) => changed.has(label));
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  return [...groupBy(ports, ({ label }) => label)].map(([servicePort, ofFamilies]) => ({
    servicePort,
    addresses: ofFamilies.map(({ clusterIP, port }) => joinHostPort(clusterIP.text, port)),
    endpoints: sum(ofFamilies.map(({ endpoints }) => endpoints.length)),
    used: sum(ofFamilies.map((port) => chooseEndpoints(port, node).reachable.length)),
  }));
}

/** Returns "shop/web:http 10.96.0.80:80 → 3 endpoints, 2 used". */
function titleOfService({ servicePort, addresses, endpoints, used }: PlanHeading): string {
  const rest = used === endpoints ? '' : `, ${formatCount(used)} used`;
  return `${servicePort} ${addresses.join(', ')} → ${count(endpoints, 'endpoint')}${rest}`;
}

const actions = { added: 'add', changed: 'change', removed: 'remove' } as const satisfies Record<
  ChangeKind,
  Shaped<typeof planSchema>['changes'][number]['action']
>;

/** The kinds of objects that are counted instead of listed, because a Service has many of them. */
const counted: ReadonlySet<KernelChange['object']> = new Set(['set entry', 'chain', 'set', 'map']);

function describeObjects(changes: readonly KernelChange[], namesAll: boolean): Block {
  // The objects of a Service have hashes as names, so they are counted.
  const isMany = changes.some(({ owner }) => owner !== undefined) || changes.length > 8;
  const isCounted = ({ object }: KernelChange) => !namesAll && counted.has(object) && isMany;
  const many = groupBy(changes.filter(isCounted), ({ change, object }) => `${change} ${object}`);
  return [
    ...changes
      .filter((each) => !isCounted(each))
      .flatMap((each) => lines(each.change, 1, `${each.object} ${describeKernelSubject(each)}`)),
    ...[...many.values()].flatMap((own) => lines(own[0].change, 1, count(own.length, own[0].object))),
  ];
}

/** Returns "3 virtual servers added, 1 chain changed". */
export function summarizePlan(plan: Plan): string {
  const parts = countPlan(plan).map(({ object, change, number }) => `${count(number, object)} ${change}`);
  return parts.length > 0 ? parts.join(', ') : 'nothing changed';
}

/** Returns "; 2 real servers wait for 5 connections to end; 1 connection was cut". */
export function describeConnections(plan: Plan): string {
  const { draining, kept, cut } = plan;
  const waiting = `${count(draining.length, 'real server waits', 'real servers wait')} for`;
  return [
    ...(draining.length > 0 ? [`; ${waiting} ${kept === 0 ? 'connections' : count(kept, 'connection')} to end`] : []),
    ...describeLeftAddresses(plan).map((text) => `; ${text}`),
    ...(cut > 0 ? [`; ${count(cut, 'connection was', 'connections were')} cut`] : []),
  ].join('');
}

/** Returns "TCP 10.96.0.1:80 → 10.1.1.1:8080" for the keys in a record. */
function describeDraining({ virtualServer, realServer }: DrainingServer): string {
  const [protocol = '', address = '', port] = virtualServer.split(' ');
  const [realAddress = '', realPort] = realServer.split(' ');
  return `${protocol} ${joinHostPort(address, Number(port))} → ${joinHostPort(realAddress, Number(realPort))}`;
}

/** Returns "2 addresses of IPVS mode stay for open connections; KUBE-IPVS-FILTER refuses new ones". Empty if no address stays. */
function describeLeftAddresses(plan: Plan): readonly string[] {
  const { length } = listLeftAddresses(plan);
  const stay = length === 1 ? '1 address of IPVS mode stays' : `${length} addresses of IPVS mode stay`;
  return length === 0 ? [] : [`${stay} for open connections; ${accessFilter.chain} refuses new ones`];
}

/** Returns "Plan: 17 sets and 11 chains to add, 7 sysctls to change, nothing to remove". */
function summarizeChanges(plan: Plan): string {
  const [added, changed, removed] = listByChange(plan).map((objects) => objects || 'nothing');
  return `Plan: ${added} to add, ${changed} to change, ${removed} to remove`;
}

/** Returns "Drift: 2 chains missing, 1 set extra; kpc-apply apply repairs it". */
function summarizeDrift(plan: Plan): string {
  const words = ['missing', 'changed', 'extra'];
  const parts = listByChange(plan).flatMap((objects, i) => (objects === '' ? [] : [`${objects} ${words[i]}`]));
  const { conflicts } = plan.ownership;
  const isAdoptable = conflicts.every(({ adoptable }) => adoptable);
  const repair = isAdoptable ? `; kpc-apply apply${conflicts.length > 0 ? ' --adopt' : ''} repairs it` : '';
  return `Drift: ${parts.join(', ')}${repair}`;
}

/** Returns what is added, changed and removed, each as "17 sets and 11 chains" or ''. */
function listByChange(plan: Plan): readonly string[] {
  const counts = countPlan(plan);
  return (['added', 'changed', 'removed'] as const).map((change) =>
    joinWords(counts.filter((each) => each.change === change).map(({ object, number }) => count(number, object))),
  );
}

export interface PlanView {
  /** `plan`: what an apply would do. `drift`: how the node differs from the bundle. */
  readonly as: 'plan' | 'drift';
  /** Undefined if the plan restores an earlier state of the node. */
  readonly bundle: StoredBundle | undefined;
  readonly foresight?: Foresight | undefined;
  readonly namesAll?: boolean | undefined;
}

export function formatPlanText(plan: Plan, { as, bundle, foresight, namesAll = false }: PlanView): string {
  const { conflicts } = plan.ownership;
  const notes = describeNotes(plan, bundle, foresight);
  if (isEmptyPlan(plan)) return formatText([[...lines('plain', 0, summarizeNothing(as, conflicts.length)), ...notes]]);
  const summary = as === 'drift' ? summarizeDrift(plan) : summarizeChanges(plan);
  return formatText([...describePlan(plan, namesAll, bundle), [...notes, ...lines('plain', 0, summary)]]);
}

function describeNotes(plan: Plan, bundle: StoredBundle | undefined, foresight: Foresight | undefined): Block {
  const { ownership, draining, kept, cut } = plan;
  const { conflicts, foreign } = ownership;
  const release = bundle && olderReleaseOf(bundle);
  const conflicting = conflicts.map((conflict) => {
    const advice = conflict.adoptable ? ': --adopt takes it over' : '';
    return `${nameObject(conflict)} exists already, but kpc-apply did not make it${advice}`;
  });
  const refusals = (foresight?.refusals ?? [])
    .map(sayApply)
    .map(({ text, help }) => `${text}${help === undefined ? '' : `; ${help}`}`);
  return lines(
    'plain',
    0,
    release !== undefined && `the bundle follows the kube-proxy of Kubernetes ${release}`,
    ...conflicting.map(wouldRefuse),
    foreign.length > 0 && `${count(foreign.length, 'virtual server')} of other programs stay: ${foreign.join(', ')}`,
    ...describeLeftSettings(plan),
    ...draining.map((server) => `${describeDraining(server)} drains`),
    kept > 0 && `${count(kept, 'connection')} open to real servers that drain`,
    ...describeLeftAddresses(plan),
    cut > 0 && `! ${count(cut, 'connection')} would be cut`,
    ...(foresight?.warnings ?? []).map((each) => `! ${sayApply(each).text}`),
    ...refusals.map(wouldRefuse),
  );
}

function wouldRefuse(why: string): string {
  return `! apply would refuse: ${why}`;
}

function summarizeNothing(as: PlanView['as'], conflicts: number): string {
  if (as === 'plan') return 'Plan: nothing to change';
  if (conflicts === 0) return 'the node matches the bundle';
  return `Drift: ${count(conflicts, 'object')} of another program ${conflicts === 1 ? 'is' : 'are'} in the way`;
}

export function describeLeftSettings({ leftSettings }: Plan): readonly string[] {
  return leftSettings.map(
    ({ setting: { path, value, onlyFrom }, from }) =>
      `${settingName(path)} stays ${from ?? 'absent'}: kpc-apply changed it from ${value} to ${onlyFrom?.join(' and ')}, and something has changed it since`,
  );
}

/** Returns the release of a bundle's kube-proxy. Undefined for the newest release, which need not be mentioned. */
function olderReleaseOf({ snapshot }: StoredBundle): Release | undefined {
  const { release } = snapshot.settings;
  return release === newestRelease ? undefined : release;
}

/** Formats a plan for programs. `changes` is empty if nothing would change. */
export function formatPlanJson(plan: Plan, { command, bundle, foresight }: PlanAnswer): string {
  const snapshots = snapshotsJson([bundle.snapshot]);
  return formatJson<typeof planSchema>({ command, snapshots, result: planJson(plan, bundle, foresight) });
}

interface PlanAnswer extends Pick<SaidByCommand, 'command'> {
  readonly bundle: StoredBundle;
  readonly foresight: Foresight | undefined;
}

function planJson(plan: Plan, bundle: StoredBundle, foresight: Foresight | undefined): Shaped<typeof planSchema> {
  const changes = listPlan(plan);
  return {
    changes: changes.map((each) => {
      const { owner: servicePort, object, change } = each;
      return { servicePort, action: actions[change], object, text: describeKernelSubject(each) };
    }),
    servicePorts: planHeadings(changes, bundle),
    conflicts: plan.ownership.conflicts,
    foreignVirtualServers: plan.ownership.foreign,
    draining: plan.draining,
    leftSettings: unlessEmpty(
      plan.leftSettings.map(({ setting: { path, value, onlyFrom }, from }) => ({
        path,
        value: from,
        made: onlyFrom,
        before: value,
      })),
    ),
    addressesLeft: plan.leftIpvs === undefined ? undefined : listLeftAddresses(plan),
    connections: plan.kept + plan.cut > 0 ? { draining: plan.kept, cut: plan.cut } : undefined,
    warnings: unlessEmpty((foresight?.warnings ?? []).map((each) => sayApply(each).text)),
    refusals: unlessEmpty((foresight?.refusals ?? []).map((each) => ({ subject: each.code, ...sayApply(each) }))),
  };
}

export function formatRollBack({ to, plan }: RollBackPlan): string {
  const where = to ? printable(nameState(to)) : 'the state before the apply that did not finish';
  return `back to ${where}:\n${formatPlanText(plan, { as: 'plan', bundle: undefined })}`;
}

/** Lists each tool's input, under the command that reads this input. */
export function formatDryRun(plan: Plan, balancer: string): string {
  if (isEmptyPlan(plan)) return 'nothing to do\n';
  return printableLines(
    listSteps(plan)
      .map((step) => formatStep(step, balancer))
      .join('\n'),
  );
}

function formatStep(step: PlanStep, balancer: string): string {
  if (step.kind === 'balance') return `# ${balancer}\n${formatBalancer(step.proxyPorts).join('')}`;
  if (step.kind === 'write') return `# ${describeStep(step)}\n`;
  return `# ${formatCommand(step.command)}\n${step.command.stdin ?? ''}`;
}

/** Lists the states of a node: the present state, the state that a rollback would restore, and all others. */
export function formatStates({ present, before, states, damaged, last, isUnfinished }: RollBackStates): string {
  const next = isUnfinished
    ? 'An apply did not finish: "kpc-apply rollback" undoes what it did'
    : last
      ? `"kpc-apply rollback" has nothing to undo: ${describeLastCommand(last)}`
      : before === undefined
        ? '"kpc-apply rollback" has nothing to undo'
        : `"kpc-apply rollback" goes back to state ${before}`;
  const kept = states.map(({ state, takenAt }) => {
    return `${state.id}  ${describeState(state)}; replaced ${formatTime(takenAt)}`;
  });
  const lost = [...damaged.values()].map(({ finding }) => `! ${sayApply(finding).text}`);
  return formatText([
    [
      ...lines('plain', 0, present && `The node is in state ${present.id}: ${describeState(present)}`, next),
      ...lines(
        'plain',
        0,
        kept.length === 0 ? 'No earlier state is kept' : '"kpc-apply rollback --to ID" goes to one of these:',
      ),
      ...lines('plain', 1, ...kept, ...lost),
    ],
  ]);
}
