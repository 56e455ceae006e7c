// What kpc-apply says of its work: while it goes on, and how it ended.
import { count, nameSome, printable } from '../base/printable.ts';
import type { ChangeEvent, ChangeOutcome } from '../apply/change/observe-node.ts';
import type { standBy } from '../apply/change/unconfirmed-apply.ts';
import type { Plan } from '../apply/plan/plan.ts';
import { describeStep } from '../apply/plan/steps.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { describeConnections, describePlan, formatPlanText, summarizePlan } from './plan-text.ts';
import { nameObject } from './words/apply-parts.ts';
import { sayApply } from './words/apply.ts';
import { formatTime } from './words/states.ts';

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
      return `run "kpc-apply confirm" within ${event.milliseconds / 1000} s, or everything is put back`;
    case 'waiting':
      return `kpc-apply: waiting for "${event.command}" since ${formatTime(event.since)}; kpc-apply stops it after ${event.limit / 1000} s`;
    case 'putting-back':
      return `putting everything back: ${sayApply(event.because.finding).text}`;
    default:
      return event satisfies never;
  }
}

/** `nothing`: why there was nothing to do; `what`: otherwise, the completed work. */
export function describeDone(
  { kind, plan }: Extract<ChangeOutcome, { readonly kind: 'unchanged' | 'changed' }>,
  nothing: string,
  what: string,
): string {
  const work =
    kind === 'unchanged' ? `nothing to do: ${printable(nothing)}` : `done: ${printable(what)}${summarizePlan(plan)}`;
  return `${work}${describeConnections(plan)}`;
}

/** Further changes that could not be put back are counted, not named. */
const mostNamed = 50;

/** `left`: undefined if the node cannot be read. */
export function describeStuck(left: Plan | 'unknown' | undefined): readonly string[] {
  return [
    `NOT everything could be put back${restOf(left)}`,
    'Fix the cause, then run "kpc-apply rollback" to put back the rest.',
  ];
}

function restOf(left: Plan | 'unknown' | undefined): string {
  if (left === undefined) return ', and the node cannot be read.';
  if (left === 'unknown') return '.';
  const namesAll = describePlan(left).length <= mostNamed;
  return `. Left to do:\n${formatPlanText(left, { as: 'plan', bundle: undefined, namesAll }).trimEnd()}`;
}

type KeptObject = Parameters<typeof nameObject>[0];

/** The objects with kube-proxy's names that a cleanup leaves. */
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

/** `id`: the apply that waited for confirmation. */
export function describeStandBy(end: StandByEnd, id: string): string {
  switch (end) {
    case 'nothing-to-do':
      return `nothing to do: apply ${id} has been confirmed, put back or replaced`;
    case 'kept':
      return `done: apply ${id} was confirmed, so its changes stay`;
    case 'put-back':
      return `done: apply ${id} was not confirmed, so the node is as it was before it`;
    default:
      return end satisfies never;
  }
}

export function describeDumped({ counts }: Manifest, folder: string): string {
  const { virtualServers = 0, chains = 0, sets = 0, addresses = 0 } = counts;
  const parts = [count(virtualServers, 'virtual server'), count(sets, 'set'), count(chains, 'chain')];
  return `${parts.join(', ')} and ${count(addresses, 'address', 'addresses')}, written to ${folder}`;
}
