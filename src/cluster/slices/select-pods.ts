import type { Names } from '../grouping.ts';
import { compareText } from '../../kernel/compare.ts';
import { fullName, type Pod, type Service, type Sourced, addressesOfPod } from '../objects.ts';

type Pods = readonly Sourced<Pod>[];

export interface Selecting {
  readonly service: Sourced<Service>;
  readonly label: string;
  readonly pods: Pods;
}

/** The Services with a selector, each with its Pods, all sorted by namespace and name. */
export function selectPods(services: readonly Sourced<Service>[], pods: Pods): readonly Selecting[] {
  const index = new PodIndex(pods);
  return services
    .flatMap((service): Selecting[] => {
      const { metadata, spec } = service.object;
      if (!spec.selector || spec.type === 'ExternalName') return [];
      const label = fullName(metadata);
      return [{ service, label, pods: index.select(metadata.namespace, spec.selector) }];
    })
    .toSorted((a, b) => compareText(a.label, b.label));
}

export function areEndpointsGiven({ object: { metadata } }: Sourced<Service>, given: Names): boolean {
  return given.has(metadata.namespace, metadata.name);
}

/** The key for all Pods of a namespace; no label has an empty name. */
const noLabel = ['', ''] as const;

class PodIndex {
  readonly #byLabel = new Map<string, Sourced<Pod>[]>();

  constructor(pods: Pods) {
    for (const pod of pods.toSorted(comparePods)) {
      const { namespace, labels } = pod.object.metadata;
      for (const [name, value] of [noLabel, ...Object.entries(labels)]) {
        const key = labelKey(namespace, name, value);
        const list = this.#byLabel.get(key);
        if (list) list.push(pod);
        else this.#byLabel.set(key, [pod]);
      }
    }
  }

  select(namespace: string, selector: Readonly<Record<string, string>>): Pods {
    const wanted = Object.entries(selector);
    const lists = (wanted.length === 0 ? [noLabel] : wanted).map(
      ([key, value]) => this.#byLabel.get(labelKey(namespace, key, value)) ?? [],
    );
    const [shortest = [], ...others] = lists.toSorted((a, b) => a.length - b.length);
    if (others.length === 0) return shortest;
    return shortest.filter(({ object: { metadata } }) =>
      wanted.every(([key, value]) => metadata.labels[key] === value),
    );
  }
}

function labelKey(namespace: string, key: string, value: string): string {
  return `${namespace}\n${key}\n${value}`;
}

function comparePods({ object: a }: Sourced<Pod>, { object: b }: Sourced<Pod>): number {
  return (
    compareText(a.metadata.namespace, b.metadata.namespace) ||
    compareNaturally(a.metadata.name, b.metadata.name) ||
    // Distinguishes two Pods whose names the API server will generate.
    compareText(addressesOfPod(a).join(), addressesOfPod(b).join())
  );
}

/** Orders names naturally: web-2 before web-10. */
export function compareNaturally(a: string, b: string): number {
  const theirs = b.match(pieces) ?? [];
  for (const [i, piece] of (a.match(pieces) ?? []).entries()) {
    const other = theirs[i] ?? '';
    const areNumbers = startsWithDigit.test(piece) && startsWithDigit.test(other);
    const difference = areNumbers ? compareNumbers(piece, other) : compareText(piece, other);
    if (difference !== 0) return difference;
  }
  return compareText(a, b);
}

const pieces = /\d+|\D+/g;
const startsWithDigit = /^\d/;

/** Compares digits as text, because they may exceed any number type. */
function compareNumbers(a: string, b: string): number {
  const [one, other] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return one.length - other.length || compareText(one, other);
}
