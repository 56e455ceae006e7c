import { printable } from '../base/printable.ts';
import { compareText } from '../cluster/compare-text.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import { nameSome } from '../cluster/name-some.ts';
import type { ObjectMeta, Pod, Service, Sourced, Workload } from '../cluster/objects.ts';
import type { Selector } from './pod-index.ts';
import { hasLabels } from './pod-index.ts';
import type { Selecting } from './selecting.ts';
import { ownerKey } from './standing.ts';

/** More Pods than these are not compared with what a Service looks for, nor for more Services. */
const maxCompared = 10_000;
const maxHinted = 200;

/**
 * Says which Services select no Pod: each with the Pod that comes nearest, as a selector that misses is a slip of a label
 * mostly, and all the others in one warning.
 */
export function describeUnselective(
  services: readonly Selecting[],
  pods: readonly Sourced<Pod>[],
  idle: readonly Workload[],
): readonly Diagnostic[] {
  const lost = services.filter((each) => each.pods.length === 0);
  const candidates = distinctLabels([
    ...pods.slice(0, maxCompared).map(({ object }) => candidateOf(object)),
    ...idle.map(idleCandidate),
  ]);
  const near = lost.map(({ service }, i) => ({
    service,
    hint: i < maxHinted ? findNear(service.object, candidates) : undefined,
  }));
  const without = near.filter(({ hint }) => hint === undefined);
  return [
    ...near.flatMap(({ service, hint }) => (hint === undefined ? [] : [describeNear(service, hint)])),
    ...describeWithout(without.map(({ service }) => service)),
    ...services.flatMap(({ service }) => describeEmpty(service)),
  ];
}

/** What a Service may have meant. */
interface Candidate {
  readonly namespace: string;
  /** "Pod shop/web-0", "Deployment shop/web". */
  readonly name: string;
  readonly labels: Selector;
}

function candidateOf({ metadata, owner, assumed }: Pod): Candidate {
  const { namespace, name, labels } = metadata;
  const of = assumed && owner ? owner : { kind: 'Pod', name };
  return { namespace, name: ownerKey(namespace, of), labels };
}

function idleCandidate({ kind, metadata: { namespace, name }, template }: Workload): Candidate {
  return { namespace, name: ownerKey(namespace, { kind, name }), labels: template.labels };
}

/** Those in one namespace with the same labels are alike here; the first by name stands for them. */
function distinctLabels(all: readonly Candidate[]): readonly Candidate[] {
  const byLabels = new Map<string, Candidate>();
  for (const candidate of all) {
    const labels = Object.entries(candidate.labels).toSorted(([a], [b]) => compareText(a, b));
    const key = JSON.stringify([candidate.namespace, labels]);
    const known = byLabels.get(key);
    if (!known || compareText(candidate.name, known.name) < 0) byLabels.set(key, candidate);
  }
  return [...byLabels.values()].toSorted(
    (a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name),
  );
}

/** What the nearest labels are, where some come near. */
function findNear({ metadata, spec }: Service, candidates: readonly Candidate[]): string | undefined {
  const selector = spec.selector ?? {};
  let best: Candidate | undefined;
  let bestScore = 0;
  for (const candidate of candidates) {
    if (candidate.namespace !== metadata.namespace) continue;
    const score = scoreOf(selector, candidate.labels);
    if (score > bestScore) [best, bestScore] = [candidate, score];
  }
  if (best && hasLabels(best.labels, selector)) return `${best.name} asks for no Pods`;
  if (best) return `${best.name} has ${listDifferent(selector, best.labels)}`;
  const elsewhere = candidates.find((candidate) => hasLabels(candidate.labels, selector));
  return elsewhere && `${elsewhere.name} has all these labels, but it is in namespace ${elsewhere.namespace}`;
}

/** Labels that many workloads of one release share: having them says nothing. */
const sharedKeys: ReadonlySet<string> = new Set([
  'app.kubernetes.io/instance',
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/part-of',
  'app.kubernetes.io/version',
  'helm.sh/chart',
]);

/**
 * How near labels are: those that are right count most, then those with a similar value, or with the value under another
 * key. 0 for far: where two are wrong altogether, and where nothing else speaks for it.
 */
function scoreOf(selector: Selector, labels: Selector): number {
  let score = 0;
  let far = 0;
  for (const [key, wanted] of Object.entries(selector)) {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    const isShared = sharedKeys.has(key);
    if (value === wanted) score += isShared ? 0 : 4;
    else if (value !== undefined && isSimilar(value, wanted)) score += isShared ? 0 : 3;
    else if (Object.values(labels).includes(wanted)) score += 2;
    else far++;
  }
  return far > 1 || (far === 1 && score < 4) ? 0 : score;
}

/** Whether one is a slip of the other: a letter or two, or a part of it. */
function isSimilar(a: string, b: string): boolean {
  const [short, long] = a.length < b.length ? [a.toLowerCase(), b.toLowerCase()] : [b.toLowerCase(), a.toLowerCase()];
  if (short.length >= 3 && long.includes(short)) return true;
  return differsByFew(short, long, Math.max(1, Math.floor(short.length / 3)));
}

/** Whether what is left between a common start and a common end is at most so long. */
function differsByFew(a: string, b: string, most: number): boolean {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  return start + end > 0 && Math.max(a.length, b.length) - start - end <= most;
}

/** The labels of a Pod that a selector asks for otherwise, or under another key. */
function listDifferent(selector: Selector, labels: Selector): string {
  const found = Object.entries(selector).flatMap(([key, wanted]) => {
    if (labels[key] === wanted) return [];
    if (Object.hasOwn(labels, key)) return [`${key}=${labels[key]}`];
    const other = Object.entries(labels).find(([, value]) => value === wanted);
    return [other ? `${other[0]}=${wanted}` : `no ${key}`];
  });
  return printable(found.join(', '));
}

function describeNear({ object, source }: Sourced<Service>, hint: string): Diagnostic {
  const text = `${nameOf(object.metadata)} selects no Pod (${textOf(object.spec.selector ?? {})}), and has no endpoints: ${hint}`;
  return { severity: 'warning', code: 'selects-nothing', text, place: source.place(['spec', 'selector']) };
}

function describeWithout(services: readonly Sourced<Service>[]): readonly Diagnostic[] {
  const [first] = services;
  if (!first) return [];
  const names = nameSome(services.map(({ object }) => nameOf(object.metadata)));
  const text =
    services.length === 1
      ? `${names} selects no Pod of the input (${textOf(first.object.spec.selector ?? {})}), and has no endpoints`
      : `${services.length} Services (${names}) select no Pod of the input, and have no endpoints`;
  return [{ severity: 'warning', code: 'selects-nothing', text, place: first.source.place(['spec', 'selector']) }];
}

/** The endpointslice controller takes an empty selector for one that takes all, but no API server hands it one. */
function describeEmpty({ object, source }: Sourced<Service>): readonly Diagnostic[] {
  if (Object.keys(object.spec.selector ?? {}).length > 0) return [];
  const text = `the selector of ${nameOf(object.metadata)} is empty: here it takes all Pods of the namespace, but the API server stores it as none; name labels, or leave it out`;
  return [{ severity: 'warning', code: 'empty-selector', text, place: source.place(['spec', 'selector']) }];
}

function nameOf({ namespace, name }: ObjectMeta): string {
  return `${namespace}/${name}`;
}

function textOf(selector: Selector): string {
  return printable(
    Object.entries(selector)
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
  );
}
