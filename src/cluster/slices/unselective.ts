import { compareText } from '../../kernel/compare-text.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { LabelDifference, NearPods } from '../../diagnostics/endpoints.ts';
import type { ObjectMeta, Pod, Service, Sourced, Workload } from '../objects.ts';
import { hasLabels, type Selector } from './pod-index.ts';
import type { Selecting } from './services-and-pods.ts';
import { ownerKey } from './uncontrolled.ts';

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
  const lost = onePerName(services.filter((each) => each.pods.length === 0));
  const candidates = distinctLabels([
    ...pods.slice(0, maxCompared).map(({ object }) => candidateOf(object)),
    ...idle.map(idleCandidate),
  ]);
  const judged = lost.map(({ service }, i) => ({
    service,
    near: i < maxHinted ? findNear(service.object, candidates) : undefined,
  }));
  const without = judged.filter(({ near }) => near === undefined);
  return [
    ...judged.flatMap(({ service, near }) => (near === undefined ? [] : [describeOne(service, near)])),
    ...describeWithout(without.map(({ service }) => service)),
    ...services.flatMap(({ service }) => describeEmpty(service)),
  ];
}

/** The first of each name: another Service of that name is an error of its own. */
function onePerName(services: readonly Selecting[]): readonly Selecting[] {
  const byName = new Map<string, Selecting>();
  for (const each of services) {
    const name = nameOf(each.service.object.metadata);
    if (!byName.has(name)) byName.set(name, each);
  }
  return [...byName.values()];
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

/** Those in one namespace with the same labels are alike here; the first by name represents them. */
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
function findNear({ metadata, spec }: Service, candidates: readonly Candidate[]): NearPods | undefined {
  const selector = spec.selector ?? {};
  let best: Candidate | undefined;
  let bestScore = 0;
  for (const candidate of candidates) {
    if (candidate.namespace !== metadata.namespace) continue;
    const score = scoreOf(selector, candidate.labels);
    if (score > bestScore) [best, bestScore] = [candidate, score];
  }
  if (best && hasLabels(best.labels, selector)) return { kind: 'no-replicas', workload: best.name };
  if (best) return { kind: 'other-labels', workload: best.name, differences: listDifferent(selector, best.labels) };
  const elsewhere = candidates.find((candidate) => hasLabels(candidate.labels, selector));
  return elsewhere && { kind: 'other-namespace', workload: elsewhere.name, namespace: elsewhere.namespace };
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
function listDifferent(selector: Selector, labels: Selector): readonly LabelDifference[] {
  return Object.entries(selector).flatMap(([key, wanted]): readonly LabelDifference[] => {
    if (labels[key] === wanted) return [];
    if (Object.hasOwn(labels, key)) return [{ key, value: labels[key] }];
    const other = Object.entries(labels).find(([, value]) => value === wanted);
    return [other ? { key: other[0], value: wanted } : { key }];
  });
}

function describeOne({ object, source }: Sourced<Service>, near: NearPods | undefined): Diagnostic {
  const details = { services: [nameOf(object.metadata)] as const, selector: object.spec.selector ?? {}, near };
  return diagnose('selects-nothing', details, source.place(['spec', 'selector']));
}

function describeWithout(services: readonly Sourced<Service>[]): readonly Diagnostic[] {
  const [first] = services;
  if (!first) return [];
  if (services.length === 1) return [describeOne(first, undefined)];
  const names = services.map(({ object }) => nameOf(object.metadata));
  return [diagnose('selects-nothing', { services: names }, first.source.place(['spec', 'selector']))];
}

/** The endpointslice controller takes an empty selector for one that takes all, but no API server hands it one. */
function describeEmpty({ object, source }: Sourced<Service>): readonly Diagnostic[] {
  if (Object.keys(object.spec.selector ?? {}).length > 0) return [];
  return [diagnose('empty-selector', { service: nameOf(object.metadata) }, source.place(['spec', 'selector']))];
}

function nameOf({ namespace, name }: ObjectMeta): string {
  return `${namespace}/${name}`;
}
