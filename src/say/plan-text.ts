import { Chalk } from 'chalk';
import { fitModes, type NodeCheck } from '../apply/doctor/node-checks.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import type { RollBackPlan, RollBackStates } from '../apply/change/roll-back.ts';
import type { Foresight } from '../apply/change/apply-bundle.ts';
import { countPlan, listPlan } from '../apply/plan/list-plan.ts';
import type { ChangeKind } from '../ask/changes/kernel-change.ts';
import type { Shaped } from '../base/json/schema.ts';
import { countObjects, describeKernelSubject } from './changes.ts';
import { count, formatCount, joinWords, printable, printableLines } from '../base/printable.ts';
import { joinHostPort } from '../kernel/address.ts';
import { settingName } from '../apply/plan/node-decisions.ts';
import { isEmptyPlan, listLeftAddresses, type Plan } from '../apply/plan/plan.ts';
import { describeStep, listSteps, type PlanStep } from '../apply/plan/steps.ts';
import { formatCommand } from '../apply/node/host.ts';
import { accessFilter } from '../kube-proxy/ipvs-objects.ts';
import type { DrainingServer } from '../apply/state/record.ts';
import { formatBalancer } from '../kernel/balancer/balancer.ts';
import { formatJson, type SaidByCommand } from './formats/json.ts';
import { snapshotsJson } from './snapshots.ts';
import type { doctor as doctorSchema, plan as planSchema, plannedChangeSchema } from './outputs/node.ts';
import { nameObject } from './words/apply-parts.ts';
import { sayApply } from './words/apply-said.ts';
import { describeLastCommand, describeState, formatTime, nameState } from './words/states.ts';
import { chooseEndpoints } from '../cluster/endpoint-choice.ts';
import { groupBy } from '../cluster/grouping.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import { newestRelease, type Release } from '../kube-proxy/releases.ts';

const signs = { add: '+', change: '~', remove: '-' } as const;

/** A plan for people: each Service, then everything else. '' if nothing changes. */
function formatPlan(plan: Plan, namesAll: boolean, bundle: StoredBundle | undefined): string {
  const changes = describePlan(plan);
  const groups = groupBy(changes, (change) => change.servicePort ?? '');
  const titles = new Map(planHeadings(changes, bundle).map((each) => [each.servicePort, titleOfService(each)]));
  // Objects of no Service (sysctls, base chains) come first, as when applied.
  return [...groups.keys()]
    .sort()
    .map((name) =>
      formatGroup(name === '' ? 'this node' : (titles.get(name) ?? name), groups.get(name) ?? [], namesAll),
    )
    .join('\n');
}

type PlanHeading = Shaped<typeof planSchema>['servicePorts'][number];

/** The Service ports that change, of those that the bundle has. */
function planHeadings(changes: readonly PlannedChange[], bundle: StoredBundle | undefined): readonly PlanHeading[] {
  if (!bundle) return [];
  const { node, cluster } = bundle.snapshot;
  const changed = new Set(changes.map(({ servicePort }) => servicePort));
  const ports = cluster.servicePorts.filter(({ label }) => changed.has(label));
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  return [...groupBy(ports, ({ label }) => label)].map(([servicePort, ofFamilies]) => ({
    servicePort,
    addresses: ofFamilies.map(({ clusterIP, port }) => joinHostPort(clusterIP.text, port)),
    endpoints: sum(ofFamilies.map(({ endpoints }) => endpoints.length)),
    used: sum(ofFamilies.map((port) => chooseEndpoints(port, node).reachable.length)),
  }));
}

/** "shop/web:http 10.96.0.80:80 → 3 endpoints, 2 used". */
function titleOfService({ servicePort, addresses, endpoints, used }: PlanHeading): string {
  const rest = used === endpoints ? '' : `, ${formatCount(used)} used`;
  return `${servicePort} ${addresses.join(', ')} → ${count(endpoints, 'endpoint')}${rest}`;
}

type PlannedChange = Shaped<typeof plannedChangeSchema>;

const actions = { added: 'add', changed: 'change', removed: 'remove' } as const satisfies Record<
  ChangeKind,
  PlannedChange['action']
>;

/** A plan's changes for programs. */
export function describePlan(plan: Plan): readonly PlannedChange[] {
  return listPlan(plan).map((each) => {
    const { owner: servicePort, object, change } = each;
    return { servicePort, action: actions[change], object, text: describeKernelSubject(each) };
  });
}

/** Objects to count, not list: a Service has many of them. */
const counted: ReadonlySet<PlannedChange['object']> = new Set(['set entry', 'chain', 'set', 'map']);

function formatGroup(name: string, changes: readonly PlannedChange[], namesAll: boolean): string {
  // Names of a Service's objects are hashes, so count the objects.
  const isMany = changes.some(({ servicePort }) => servicePort !== undefined) || changes.length > 8;
  const isCounted = ({ object }: PlannedChange) => !namesAll && counted.has(object) && isMany;
  const lines = changes
    .filter((change) => !isCounted(change))
    .map(({ action, object, text }) => `${signs[action]} ${object} ${text}`);
  const counts = groupBy(changes.filter(isCounted), ({ action, object }) => `${signs[action]} ${object}`);
  const many = [...counts.values()].flatMap(([first, ...others]) =>
    first ? [`${signs[first.action]} ${countObjects(others.length + 1, first.object)}`] : [],
  );
  return `${[name, ...[...lines, ...many].map((line) => `  ${line}`)].join('\n')}\n`;
}

/** "3 virtual servers added, 1 chain changed". */
export function summarizePlan(plan: Plan): string {
  const parts = countPlan(plan).map(({ object, change, number }) => `${countObjects(number, object)} ${change}`);
  return parts.length > 0 ? parts.join(', ') : 'nothing changed';
}

/** "; 2 real servers wait for 5 connections to end; 1 connection was cut". */
export function describeConnections(plan: Plan): string {
  const { draining, kept, cut } = plan;
  const waiting = `${count(draining.length, 'real server waits', 'real servers wait')} for`;
  return [
    ...(draining.length > 0 ? [`; ${waiting} ${kept === 0 ? 'connections' : count(kept, 'connection')} to end`] : []),
    ...describeLeftAddresses(plan).map((text) => `; ${text}`),
    ...(cut > 0 ? [`; ${count(cut, 'connection was', 'connections were')} cut`] : []),
  ].join('');
}

/** "TCP 10.96.0.1:80 → 10.1.1.1:8080", from the keys that a record has. */
function describeDraining({ virtualServer, realServer }: DrainingServer): string {
  const [protocol = '', address = '', port] = virtualServer.split(' ');
  const [realAddress = '', realPort] = realServer.split(' ');
  return `${protocol} ${joinHostPort(address, Number(port))} → ${joinHostPort(realAddress, Number(realPort))}`;
}

/** "2 addresses of IPVS mode stay for open connections, closed by KUBE-IPVS-FILTER"; empty if there are none. */
function describeLeftAddresses(plan: Plan): readonly string[] {
  const { length } = listLeftAddresses(plan);
  const stay = length === 1 ? '1 address of IPVS mode stays' : `${length} addresses of IPVS mode stay`;
  return length === 0 ? [] : [`${stay} for open connections, closed by ${accessFilter.chain}`];
}

/** "Plan: 17 sets and 11 chains to add, 7 sysctls to change, nothing to remove". */
function summarizeChanges(plan: Plan): string {
  const [added, changed, removed] = listByChange(plan).map((objects) => objects || 'nothing');
  return `Plan: ${added} to add, ${changed} to change, ${removed} to remove`;
}

/** "Drift: 2 chains missing, 1 set extra; kpc-apply apply repairs it". */
function summarizeDrift(plan: Plan): string {
  const words = ['missing', 'changed', 'extra'];
  const parts = listByChange(plan).flatMap((objects, i) => (objects === '' ? [] : [`${objects} ${words[i]}`]));
  const { conflicts } = plan.ownership;
  const isAdoptable = conflicts.every(({ adoptable }) => adoptable);
  const repair = isAdoptable ? `; kpc-apply apply${conflicts.length > 0 ? ' --adopt' : ''} repairs it` : '';
  return `Drift: ${parts.join(', ')}${repair}`;
}

/** Additions, changes and removals, each as "17 sets and 11 chains", or ''. */
function listByChange(plan: Plan): readonly string[] {
  const counts = countPlan(plan);
  return (['added', 'changed', 'removed'] as const).map((change) =>
    joinWords(
      counts.filter((each) => each.change === change).map(({ object, number }) => countObjects(number, object)),
    ),
  );
}

export interface PlanView {
  /** `plan`: what apply would do; `drift`: how the node has drifted. */
  readonly as: 'plan' | 'drift';
  /** Undefined for an earlier state of the node. */
  readonly bundle: StoredBundle | undefined;
  readonly foresight?: Foresight | undefined;
  readonly namesAll?: boolean | undefined;
}

export function formatPlanText(plan: Plan, { as, bundle, foresight, namesAll = false }: PlanView): string {
  const { conflicts, foreign } = plan.ownership;
  const release = bundle && olderReleaseOf(bundle);
  const notes = [
    ...(release === undefined ? [] : [`the bundle follows the kube-proxy of Kubernetes ${release}\n`]),
    ...conflicts.map(
      (conflict) =>
        `! apply would refuse: ${nameObject(conflict)} exists already, but kpc-apply did not make it` +
        `${conflict.adoptable ? ': --adopt takes it over' : ''}\n`,
    ),
    ...(foreign.length > 0
      ? [`${count(foreign.length, 'virtual server')} of other programs stay: ${foreign.join(', ')}\n`]
      : []),
    ...describeLeftSettings(plan).map((text) => `${text}\n`),
    ...plan.draining.map((server) => `${describeDraining(server)} drains\n`),
    ...(plan.kept > 0 ? [`${count(plan.kept, 'connection')} open to real servers that drain\n`] : []),
    ...describeLeftAddresses(plan).map((text) => `${text}\n`),
    ...(plan.cut > 0 ? [`! ${count(plan.cut, 'connection')} would be cut\n`] : []),
    ...(foresight?.warnings ?? []).map((each) => `! ${sayApply(each).text}\n`),
    ...(foresight?.refusals ?? [])
      .map(sayApply)
      .map(({ text, help }) => `! apply would refuse: ${text}${help === undefined ? '' : `; ${help}`}\n`),
  ];
  if (isEmptyPlan(plan)) {
    return printableLines(`${summarizeNothing(as, conflicts.length)}\n${notes.join('')}`);
  }
  const summary = as === 'drift' ? summarizeDrift(plan) : summarizeChanges(plan);
  return printableLines(`${formatPlan(plan, namesAll, bundle)}\n${notes.join('')}${summary}\n`);
}

function summarizeNothing(as: PlanView['as'], conflicts: number): string {
  if (as === 'plan') return 'Plan: nothing to change';
  if (conflicts === 0) return 'the node matches the bundle';
  return `Drift: ${count(conflicts, 'object')} of another program ${conflicts === 1 ? 'is' : 'are'} in the way`;
}

export function describeLeftSettings({ leftSettings }: Plan): readonly string[] {
  return leftSettings.map(
    ({ setting: { path, value, onlyFrom }, from }) =>
      `${settingName(path)} stays ${from ?? 'absent'}: kpc-apply set it to ${onlyFrom?.join(' and ')}, and it was changed since; it was ${value} before`,
  );
}

/** The release of a bundle's kube-proxy; undefined for the newest, which is not mentioned. */
function olderReleaseOf({ snapshot }: StoredBundle): Release | undefined {
  const { release } = snapshot.settings;
  return release === newestRelease ? undefined : release;
}

/** A plan for programs: `changes` is empty if nothing would change. */
export function formatPlanJson(plan: Plan, { command, bundle, foresight }: PlanAnswer): string {
  const snapshots = snapshotsJson([bundle.snapshot]);
  return formatJson<typeof planSchema>({ command, snapshots, result: planJson(plan, bundle, foresight) });
}

interface PlanAnswer extends Pick<SaidByCommand, 'command'> {
  readonly bundle: StoredBundle;
  readonly foresight: Foresight | undefined;
}

function planJson(plan: Plan, bundle: StoredBundle, foresight: Foresight | undefined): Shaped<typeof planSchema> {
  const changes = describePlan(plan);
  return {
    changes,
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

/** Leaves an empty list out of JSON. */
function unlessEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length > 0 ? list : undefined;
}

/** What a rollback would do. */
export function formatRollBack({ to, plan }: RollBackPlan): string {
  const where = to ? printable(nameState(to)) : 'the state before the apply that did not finish';
  return `back to ${where}:\n${formatPlanText(plan, { as: 'plan', bundle: undefined })}`;
}

/** Each tool's input, under the command that reads it; the whole can be fed to a shell piece by piece. */
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

/** The states of a node: the present one, the one that a rollback restores, and the others. */
export function formatStates({ present, before, states, damaged, last, isUnfinished }: RollBackStates): string {
  const next = isUnfinished
    ? 'An apply did not finish: "kpc-apply rollback" undoes what it did'
    : last
      ? `"kpc-apply rollback" has nothing to undo: ${describeLastCommand(last)}`
      : before === undefined
        ? '"kpc-apply rollback" has nothing to undo'
        : `"kpc-apply rollback" goes back to state ${before}`;
  const lines = [
    ...(present ? [`The node is in state ${present.id}: ${describeState(present)}`] : []),
    next,
    ...(states.length === 0 ? ['No earlier state is kept'] : ['"kpc-apply rollback --to ID" goes to one of these:']),
    ...states.map(({ state, takenAt }) => `  ${state.id}  ${describeState(state)}; replaced ${formatTime(takenAt)}`),
    ...[...damaged.values()].map(({ finding }) => `  ! ${sayApply(finding).text}`),
  ];
  return printableLines(`${lines.join('\n')}\n`);
}

/** Doctor's checks, for programs. */
export function formatNodeChecksJson(
  checks: readonly NodeCheck[],
  modes: readonly ProxyMode[],
  bundle?: StoredBundle,
): string {
  const snapshots = bundle ? snapshotsJson([bundle.snapshot]) : [];
  return formatJson<typeof doctorSchema>({
    command: 'kpc-apply doctor',
    snapshots,
    result: { fitFor: fitModes(checks, modes), checks: checks.map(sayCheck) },
  });
}

function sayCheck(check: NodeCheck) {
  const { severity, code: subject, tool, mode } = check;
  return { severity, subject, ...sayApply(check), tool, mode };
}

/** `modes`: the modes that were checked. */
export function formatNodeChecks(checks: readonly NodeCheck[], modes: readonly ProxyMode[], colour: boolean): string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  const paint = { ok: chalk.green, note: chalk.cyan, warning: chalk.yellow, error: chalk.red };
  // Checks that several modes share are printed once, under the names of all of them.
  const said = checks.map(sayCheck);
  const same = [...groupBy(said, ({ severity, text, help }) => JSON.stringify([severity, text, help])).values()];
  const sections = groupBy(same, (group) =>
    joinWords(group.flatMap(({ mode }) => (mode === undefined ? [] : modeFacts[mode].title))),
  );
  const lines = [...sections].flatMap(([titles, groups]) => [
    ...(titles === '' ? [] : ['', chalk.bold(`For ${titles}:`)]),
    ...groups.flatMap(([{ severity, text, help }]) => [
      `${paint[severity](severity.padEnd(7))} ${printable(text)}`,
      ...(help === undefined ? [] : [`        ${chalk.dim(printable(help))}`]),
    ]),
  ]);
  return `${[...lines, '', countNodeChecks(same.map(([first]) => first)), ...describeFitness(checks, modes)].join('\n')}\n`;
}

/** "This node is fit for iptables mode, but not for IPVS mode". Empty for a single mode, because the count of errors says enough. */
function describeFitness(checks: readonly NodeCheck[], modes: readonly ProxyMode[]): readonly string[] {
  if (modes.length === 1) return [];
  const fit = fitModes(checks, modes);
  const name = (some: readonly ProxyMode[]) => joinWords(some.map((mode) => modeFacts[mode].title));
  if (fit.length === 0) return ['This node is not fit for any mode yet'];
  const unfit = modes.filter((mode) => !fit.includes(mode));
  return [`This node is fit for ${name(fit)}${unfit.length === 0 ? '' : `, but not for ${name(unfit)}`}`];
}

/** "1 error, 2 warnings and 1 note; 20 checks passed". */
function countNodeChecks(checks: readonly Pick<NodeCheck, 'severity'>[]): string {
  const numbers = groupBy(checks, ({ severity }) => severity);
  const parts = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const number = numbers.get(severity)?.length ?? 0;
    return number === 0 ? [] : [count(number, severity)];
  });
  return `${joinWords(parts) || 'nothing to fix'}; ${count(numbers.get('ok')?.length ?? 0, 'check')} passed`;
}
