import { findNearest } from '../../../../base/names.ts';
import { groupBy } from '../../../../cluster/grouping.ts';
import type { ObjectMeta, Pod, Service } from '../../../../cluster/objects.ts';
import { asPods, ordinalLabels } from '../../../../cluster/slices/assume-pods.ts';
import type { PodMaker } from '../../../../input/objects/unread-kinds.ts';
import { refused, hasWord, makersByNamespace, nameOfMaker, type Found, type Rule } from '../../rule.ts';
import { nameOfSelected } from '../../../../cluster/slices/slice-warnings.ts';

type Labels = ObjectMeta['labels'];

/** A Pod, or a template of Pods. */
interface Labelled {
  readonly namespace: string;
  readonly labels: Labels;
  /** "Deployment default/web". */
  readonly owner: string;
  /** What a workload itself is labelled with, which its Pods do not get. */
  readonly ownLabels?: Labels | undefined;
}

/**
 * Selectors that no Pod has: of the Pods of a cluster; or of the workloads and Pods of manifests, if there are any. A Pod that
 * was printed from a cluster says nothing of a Service that was not.
 */
export const selectsNothing: Rule<'selects-nothing'> = {
  check: (input) => {
    const { pods, workloads } = input.loaded.inputs;
    const hasManifests = workloads.length > 0 || pods.some(({ object }) => object.status === undefined);
    const makers = makersByNamespace(input.loaded.inputs);
    const makersFor = ({ metadata }: Service): readonly PodMaker[] => makers.get(metadata.namespace) ?? [];
    const empty = input.services.filter(({ object, selected, slices, ports, isOfCluster, knowsEndpoints }) => {
      if (Object.keys(object.spec.selector ?? {}).length === 0 || selected.length > 0) return false;
      if (slices.length > 0 || ports.length === 0) return false;
      if (isOfCluster) return knowsEndpoints;
      return hasManifests && !knowsEndpoints && !makersFor(object).some((maker) => isMeant(object, maker));
    });
    if (empty.length === 0) return [];
    const ofWorkloads = workloads.flatMap((workload) =>
      // All Pods of a StatefulSet have much the same labels.
      asPods(workload)
        .slice(0, 1)
        .map(({ object }) => ({ ...asLabelled(object), ownLabels: workload.object.metadata.labels })),
    );
    const ofPods = pods.map(({ object }) => asLabelled(object));
    const labelled = [...ofPods, ...ofWorkloads, ...[...makers].flatMap(templatesOf)];
    const byNamespace = groupBy(labelled, ({ namespace }) => namespace);
    const findElsewhere = finderByLabels(labelled);
    return empty.map(({ object, name, source, ports: [port], isOfCluster }): Found<'selects-nothing'> => {
      const selector = object.spec.selector ?? {};
      const { near, lacking } = findClosest(selector, byNamespace.get(object.metadata.namespace) ?? []);
      const elsewhere = near ? undefined : findElsewhere(selector);
      const maker = makersFor(object).find(({ isCustom }) => isCustom);
      const words = Object.entries(selector).map(labelWords);
      const details = {
        services: [name],
        selector: words.join(),
        near,
        elsewhere,
        lacking: elsewhere === undefined ? lacking : undefined,
        maker: isOfCluster || near || elsewhere !== undefined ? undefined : maker && nameOfMaker(maker),
        isOfCluster,
      };
      const packet = isOfCluster && port ? refused(port, input) : undefined;
      return { details, place: source.place(['spec', 'selector']), packet };
    });
  },
};

function asLabelled(pod: Pod): Labelled {
  return { namespace: pod.metadata.namespace, labels: pod.metadata.labels, owner: nameOfSelected(pod) };
}

function templatesOf([namespace, makers]: readonly [string, readonly PodMaker[]]): readonly Labelled[] {
  return makers.flatMap((maker) => maker.templates.map((labels) => ({ namespace, labels, owner: nameOfMaker(maker) })));
}

function labelWords(label: readonly [string, string]): string {
  return label.join('=');
}

/** Whether a selector fits a template of an object, or names a custom resource or the domain of its kind. */
function isMeant({ spec }: Service, { templates, name, group, isCustom }: PodMaker): boolean {
  const wanted = Object.entries(spec.selector ?? {});
  if (templates.some((labels) => hasAll(labels, wanted))) return true;
  if (!isCustom) return false;
  return wanted.some(([key, value]) => hasWord(value, name) || isOfDomain(key, group));
}

function hasAll(labels: Labels, wanted: readonly (readonly [string, string])[]): boolean {
  return wanted.every(([key, value]) => labels[key] === value);
}

/** Whether the prefix of a label and an API group are of one domain: cnpg.io/cluster and postgresql.cnpg.io. */
function isOfDomain(key: string, group: string): boolean {
  const prefix = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  const [own, other] = [prefix, group].map((each) => each.split('.').slice(-2).join('.'));
  return own !== '' && own === other;
}

/** Returns a function that names a Pod or workload with all labels of a selector, in whatever namespace. */
function finderByLabels(all: readonly Labelled[]) {
  const single = all.flatMap((each) =>
    Object.entries(each.labels).map((label) => ({ key: labelWords(label), labelled: each })),
  );
  const byLabel = groupBy(single, ({ key }) => key);
  return (selector: Labels): string | undefined => {
    const wanted = Object.entries(selector);
    const lists = wanted.map((label) => byLabel.get(labelWords(label)) ?? []);
    const [shortest = []] = lists.toSorted((a, b) => a.length - b.length);
    return shortest.find(({ labelled }) => hasAll(labelled.labels, wanted))?.labelled.owner;
  };
}

interface LabelOf {
  readonly label: string;
  readonly owner: string;
}

interface LackedLabel extends LabelOf {
  /** The workload has it itself, and its template lacks it. */
  readonly isOnOwner: boolean;
}

/** Of Pods that have all labels of a selector but one: a label that differs from it in a letter or two, or the one they lack. */
function findClosest(
  selector: Labels,
  all: readonly Labelled[],
): { readonly near?: LabelOf; readonly lacking?: LackedLabel } {
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

/** Whether the StatefulSet controller alone sets the label, so that no other program adds it. */
function isOrdinal(key: string): boolean {
  return Object.hasOwn(ordinalLabels('', ''), key);
}

/** Two letters at most, and no other number: web-1 and web-2 are different things. */
function isMisspelled(text: string, meant: string): boolean {
  const [letters, others] = [text, meant].map((each) => each.replaceAll(/\d/g, ''));
  return letters !== others && findNearest(text, [meant], 2) !== undefined;
}
