// Describes the work of kpc-apply, while it runs and at its end.
import { Chalk } from 'chalk';
import { count, joinWords, printable } from '../base/printable.ts';
import { nameSome } from './words/rows.ts';
import { fitModes, type NodeCheck } from '../apply/doctor/node-checks.ts';
import { listPlan } from '../apply/plan/steps.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import { groupBy } from '../cluster/grouping.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import { formatJson } from './formats/json.ts';
import { countSeverities } from './formats/text.ts';
import type { doctor as doctorSchema } from './outputs/node.ts';
import { snapshotsJson } from './snapshots.ts';
import { isDone, type ChangeEvent, type ChangeOutcome } from '../apply/change/observe-node.ts';
import type { Round } from '../apply/monitor/metrics.ts';
import type { standBy } from '../apply/change/unconfirmed-apply.ts';
import type { Plan } from '../apply/plan/plan.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { describeConnections, formatPlanText, summarizePlan } from './plan-text.ts';
import { describeStep, formatTime, nameObject } from './words/apply-parts.ts';
import { sayApply } from './words/apply.ts';

export function describeEvent(event: Exclude<ChangeEvent, { readonly kind: 'warning' }>): string {
  switch (event.kind) {
    case 'reading':
      return 'reading the node';
    case 'recovering':
      return 'an earlier apply did not finish: continuing from there';
    case 'step':
      return `${event.number}/${event.of} ${describeStep(event.step)}`;
    case 'checking':
      return 'reading everything back';
    case 'awaiting-confirmation':
      return `run "kpc-apply confirm" within ${event.milliseconds / 1000} s, or everything is rolled back`;
    case 'waiting':
      return `kpc-apply: waiting for "${event.command}" since ${formatTime(event.since)}; kpc-apply stops it after ${event.limit / 1000} s`;
    case 'putting-back':
      return `rolling back: ${sayApply(event.because.finding).text}`;
  }
}

/** `what`: the completed work. `nothing`: why there was nothing to do. */
export function describeDone(
  { kind, plan }: Extract<ChangeOutcome, { readonly kind: 'unchanged' | 'changed' }>,
  nothing: string,
  what: string,
): string {
  const work =
    kind === 'unchanged' ? `nothing to do: ${printable(nothing)}` : `done: ${printable(what)}${summarizePlan(plan)}`;
  return `${work}${describeConnections(plan)}`;
}

/** Returns "the node matches the last good bundle: bad-bundle". */
export function describeRound({ isGood, outcome, failure }: Round): string {
  const result =
    outcome && isDone(outcome) ? `the node matches the ${isGood ? '' : 'last good '}bundle` : 'the last round failed';
  return failure ? `${result}: ${failure.code}` : result;
}

/** The most changes to name if they could not be rolled back. If there are more, they are only counted. */
const mostNamed = 50;

/** `left`: the changes that are still to be rolled back; undefined if the node cannot be read. */
export function describeStuck(left: Plan | 'unknown' | undefined): readonly string[] {
  return [
    `NOT everything could be rolled back${restOf(left)}`,
    'Fix the cause, then run "kpc-apply rollback" to undo the rest.',
  ];
}

function restOf(left: Plan | 'unknown' | undefined): string {
  if (left === undefined) return ', and the node cannot be read.';
  if (left === 'unknown') return '.';
  const namesAll = listPlan(left).length <= mostNamed;
  return `. Left to do:\n${formatPlanText(left, { as: 'plan', bundle: undefined, namesAll }).trimEnd()}`;
}

type KeptObject = Parameters<typeof nameObject>[0];

/** Names the objects that have kube-proxy's names but that a cleanup leaves on the node. */
export function describeKept({ ownership: { leftovers, used } }: Plan): readonly string[] {
  const others = leftovers.filter(({ isUsed }) => !isUsed);
  const advice = others.every(({ adoptable }) => adoptable) ? '; if kube-proxy left it, --adopt removes it too' : '';
  const because = (why: string, kept: readonly KeptObject[], more = ''): readonly string[] =>
    kept.length === 0 ? [] : [`kept, because ${why}: ${nameKept(kept)}${more}`];
  return [
    ...because('kpc-apply did not make it', others, advice),
    ...because('rules or sets of other programs use it', [...used, ...leftovers.filter(({ isUsed }) => isUsed)]),
  ];
}

function nameKept(kept: readonly KeptObject[]): string {
  return nameSome(kept.map((each) => (each.kind === 'chain' ? each.name : nameObject(each))));
}

type StandByEnd = Exclude<Awaited<ReturnType<typeof standBy>>, 'stuck'>;

/** `id`: identifies the apply that waited for confirmation. */
export function describeStandBy(end: StandByEnd, id: string): string {
  switch (end) {
    case 'nothing-to-do':
      return `nothing to do: apply ${id} has been confirmed, rolled back or replaced`;
    case 'kept':
      return `done: apply ${id} was confirmed, so its changes stay`;
    case 'put-back':
      return `done: apply ${id} was not confirmed, so it was rolled back`;
  }
}

export function describeDumped({ counts }: Manifest, folder: string): string {
  const { virtualServers = 0, chains = 0, sets = 0, addresses = 0 } = counts;
  const parts = [count(virtualServers, 'virtual server'), count(sets, 'set'), count(chains, 'chain')];
  return `${parts.join(', ')} and ${count(addresses, 'address')}, written to ${folder}`;
}

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

export function formatNodeChecks(checks: readonly NodeCheck[], modes: readonly ProxyMode[], colour: boolean): string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  const paint = { ok: chalk.green, note: chalk.cyan, warning: chalk.yellow, error: chalk.red };
  // A check that several modes share is printed once, under the names of all these modes.
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

/** Returns "This node is fit for iptables mode, but not for IPVS mode". Empty for one mode, where the count of errors is enough. */
function describeFitness(checks: readonly NodeCheck[], modes: readonly ProxyMode[]): readonly string[] {
  if (modes.length === 1) return [];
  const fit = fitModes(checks, modes);
  const name = (some: readonly ProxyMode[]) => joinWords(some.map((mode) => modeFacts[mode].title));
  if (fit.length === 0) return ['This node is not fit for any mode yet'];
  const unfit = modes.filter((mode) => !fit.includes(mode));
  return [`This node is fit for ${name(fit)}${unfit.length === 0 ? '' : `, but not for ${name(unfit)}`}`];
}

/** Returns "1 error, 2 warnings and 1 note; 20 checks passed". */
function countNodeChecks(checks: readonly Pick<NodeCheck, 'severity'>[]): string {
  const passed = checks.filter(({ severity }) => severity === 'ok').length;
  return `${joinWords(countSeverities(checks)) || 'nothing to fix'}; ${count(passed, 'check')} passed`;
}
