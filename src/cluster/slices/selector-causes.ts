import { findNearest } from '../../base/names.ts';
import type { Likely } from '../../base/findings/services.ts';
import { groupBy } from '../grouping.ts';
import {
  fullName,
  hasLabels,
  type EndpointObjects,
  type Gateway,
  type Pod,
  type PodMaker,
  type Service,
  type Sourced,
  type Labels,
} from '../objects.ts';
import { asPods, ordinalLabels } from './assume-pods.ts';
import { nameOfSelected } from './slice-warnings.ts';

interface Labelled {
  readonly namespace: string;
  readonly labels: Labels;
  readonly owner: string;
  /** The workload's own labels, which its Pods do not get. */
  readonly ownLabels?: Labels | undefined;
}

type CauseSources = MakerSources & Pick<EndpointObjects, 'pods' | 'workloads'>;

interface SelectorCause {
  readonly likely: Likely;
  /** Whether the selector matches or names an object in the input. */
  readonly isMeant: boolean;
}

/**
 * Finds Services printed from a cluster with all its Pods, by their cluster IPs. `written`: the Services as in the input, before kpc
 * assigns addresses.
 */
export function findPrinted(
  pods: readonly Sourced<Pod>[],
  written: readonly Sourced<Service>[],
): (service: Pick<Service, 'metadata'>) => boolean {
  if (!pods.some(({ object }) => object.status !== undefined)) return () => false;
  let printed: ReadonlySet<string> | undefined;
  return ({ metadata }) => {
    printed ??= new Set(
      written.flatMap(({ object }) => (object.spec.clusterIP === '' ? [] : fullName(object.metadata))),
    );
    return printed.has(fullName(metadata));
  };
}

export type FindCause = (service: Service, isOfCluster: boolean) => SelectorCause;

/** Returns a function that explains why no Pod matches a Service's selector, and which object may make the missing Pods. */
export function causeFinder(sources: CauseSources): FindCause {
  let known: ReturnType<typeof indexLabels> | undefined;
  return ({ metadata, spec }, isOfCluster) => {
    const { byNamespace, makers, findElsewhere } = (known ??= indexLabels(sources));
    const selector = spec.selector ?? {};
    const own = makers.get(metadata.namespace) ?? [];
    const meant = isOfCluster ? undefined : own.find((maker) => isMeant(selector, maker));
    if (meant) return { likely: { maker: nameOfMaker(meant), isOfCluster }, isMeant: true };
    const { near, lacking } = findClosest(selector, byNamespace.get(metadata.namespace) ?? []);
    const elsewhere = near ? undefined : findElsewhere(selector);
    const custom = own.find((maker) => mayMake(selector, maker));
    const isExplained = isOfCluster || near !== undefined || elsewhere !== undefined;
    const likely = {
      near,
      elsewhere,
      lacking: elsewhere === undefined ? lacking : undefined,
      maker: isExplained ? undefined : custom && nameOfMaker(custom),
      isOfCluster,
    };
    return { likely, isMeant: false };
  };
}

function indexLabels({ pods, workloads, ...sources }: CauseSources) {
  const makers = makersByNamespace(sources);
  const ofWorkloads = workloads.flatMap((workload) =>
    // All Pods of a StatefulSet have nearly the same labels.
    asPods(workload)
      .slice(0, 1)
      .map(({ object }) => ({ ...asLabelled(object), ownLabels: workload.object.metadata.labels })),
  );
  const ofPods = pods.map(({ object }) => asLabelled(object));
  const labelled = [...ofPods, ...ofWorkloads, ...[...makers].flatMap(templatesOf)];
  const byNamespace = groupBy(labelled, ({ namespace }) => namespace);
  return { makers, byNamespace, findElsewhere: finderByLabels(labelled) };
}

function asLabelled(pod: Pod): Labelled {
  return { namespace: pod.metadata.namespace, labels: pod.metadata.labels, owner: nameOfSelected(pod) };
}

function templatesOf([namespace, makers]: readonly [string, readonly PodMaker[]]): readonly Labelled[] {
  return makers.flatMap((maker) => maker.templates.map((labels) => ({ namespace, labels, owner: nameOfMaker(maker) })));
}

function labelWords(label: readonly [string, string]): string {
  return label.join('=');
}

/** Reports whether a selector matches the object's template, or names a custom resource or its API group's domain. */
function isMeant(selector: Labels, maker: PodMaker): boolean {
  const { templates, name, group, makes } = maker;
  const wanted = Object.entries(selector);
  if (templates.some((labels) => hasLabels(labels, wanted))) return true;
  if (makes === 'templates' || namesOther(selector, maker)) return false;
  return wanted.some(([key, value]) => hasWord(value, name) || isOfDomain(key, group));
}

function mayMake(selector: Labels, maker: PodMaker): boolean {
  return maker.makes === 'objects' || (maker.makes === 'pods' && !namesOther(selector, maker));
}

/** Reports whether a label, such as an owning-gateway-name, names an object other than this one and the objects that it holds. */
function namesOther(selector: Labels, { name, makes }: PodMaker): boolean {
  const names = Object.entries(selector).filter(([key]) => /(?:-name|\/cluster)$/.test(key));
  return makes !== 'objects' && names.some(([, value]) => !hasWord(value, name));
}

/** Reports whether a label's prefix and an API group share a domain, like cnpg.io/cluster and postgresql.cnpg.io. */
function isOfDomain(key: string, group: string): boolean {
  const prefix = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  const [own, other] = [prefix, group].map((each) => each.split('.').slice(-2).join('.'));
  return own !== '' && own === other;
}

function finderByLabels(all: readonly Labelled[]) {
  const single = all.flatMap((each) =>
    Object.entries(each.labels).map((label) => ({ key: labelWords(label), labelled: each })),
  );
  const byLabel = groupBy(single, ({ key }) => key);
  return (selector: Labels): string | undefined => {
    const wanted = Object.entries(selector);
    const lists = wanted.map((label) => byLabel.get(labelWords(label)) ?? []);
    const [shortest = []] = lists.toSorted((a, b) => a.length - b.length);
    return shortest.find(({ labelled }) => hasLabels(labelled.labels, wanted))?.labelled.owner;
  };
}

interface LackedLabel {
  readonly label: string;
  readonly owner: string;
  readonly isOnOwner: boolean;
}

/** Looks at Pods with all but one of a selector's labels. Finds a label that differs by a letter or two, or else the missing label. */
function findClosest(selector: Labels, all: readonly Labelled[]) {
  const wanted = Object.entries(selector);
  let lacking: LackedLabel | undefined;
  for (const { labels, owner, ownLabels } of all) {
    const [odd, ...others] = wanted.filter(([key, value]) => labels[key] !== value);
    if (!odd || others.length > 0) continue;
    const [key, value] = odd;
    const own = Object.entries(labels).find(
      ([name, each]) => (name === key && isMisspelled(value, each)) || (each === value && isMisspelled(key, name)),
    );
    if (own) return { near: { label: labelWords(own), owner } };
    const isOnOwner = ownLabels?.[key] === value;
    const isBetter = lacking === undefined || (isOnOwner && !lacking.isOnOwner);
    if (isBetter && wanted.length > 1 && !isOrdinal(key)) lacking = { label: labelWords(odd), owner, isOnOwner };
  }
  return lacking ? { lacking } : {};
}

/** Reports whether a label is one that only the StatefulSet controller sets. */
function isOrdinal(key: string): boolean {
  return Object.hasOwn(ordinalLabels('', ''), key);
}

/** Accepts a difference of at most two letters, but not of numbers, because web-1 and web-2 are different things. */
function isMisspelled(text: string, meant: string): boolean {
  const [letters, others] = [text, meant].map((each) => each.replaceAll(/\d/g, ''));
  return letters !== others && findNearest(text, [meant], 2) !== undefined;
}

export interface MakerSources {
  readonly podMakers: readonly PodMaker[];
  readonly gateways: readonly Sourced<Gateway>[];
}

/** Groups objects that may make the Pods and Services that the input lacks: custom resources, and Gateways, whose controllers make them. */
export function makersByNamespace({ podMakers, gateways }: MakerSources): ReadonlyMap<string, readonly PodMaker[]> {
  const ofGateways = gateways.map(({ object: { metadata } }): PodMaker => {
    const { name, namespace } = metadata;
    const group = 'gateway.networking.k8s.io';
    return { kind: 'Gateway', name, namespace, group, makes: 'pods', templates: [], namespaces: [] };
  });
  const placed = [...podMakers, ...ofGateways].flatMap((maker) =>
    [maker.namespace, ...maker.namespaces].map((namespace) => ({ namespace, maker })),
  );
  const groups = groupBy(placed, ({ namespace }) => namespace);
  return new Map([...groups].map(([namespace, own]) => [namespace, own.map(({ maker }) => maker)]));
}

export function nameOfMaker({ kind, namespace, name }: PodMaker): string {
  return `${kind} ${namespace}/${name}`;
}

/**
 * Reports whether a text has a word, even between dots, dashes or underscores, because operators label the Pods of "mongo" with "mongo-svc"
 * or "shop.mongo".
 */
export function hasWord(text: string, word: string): boolean {
  return word !== '' && `.${text.replaceAll(/[-_]/g, '.')}.`.includes(`.${word.replaceAll(/[-_]/g, '.')}.`);
}
