import { compareText } from '../../kernel/compare-text.ts';
import type { Pod, Sourced } from '../objects.ts';
import { compareNames } from './compare-names.ts';

type Pods = readonly Sourced<Pod>[];

const none: Pods = [];

/** The labels that a Service looks for, each with its value. */
export type Selector = Readonly<Record<string, string>>;

/** Pods by namespace and label, so that the Pods of a Service are found without looking at all others. */
export class PodIndex {
  readonly #byNamespace = new Map<string, Sourced<Pod>[]>();
  readonly #byLabel = new Map<string, Sourced<Pod>[]>();

  constructor(pods: Pods) {
    for (const pod of pods.toSorted(comparePods)) {
      const { namespace, labels } = pod.object.metadata;
      push(this.#byNamespace, namespace, pod);
      for (const [key, value] of Object.entries(labels)) push(this.#byLabel, labelKey(namespace, key, value), pod);
    }
  }

  /** The Pods with all these labels, sorted by name; an empty selector takes all of the namespace. */
  select(namespace: string, selector: Selector): Pods {
    const lists = Object.entries(selector).map(
      ([key, value]) => this.#byLabel.get(labelKey(namespace, key, value)) ?? none,
    );
    const shortest = lists.toSorted((a, b) => a.length - b.length)[0] ?? this.#byNamespace.get(namespace) ?? none;
    return lists.length < 2 ? shortest : shortest.filter(({ object }) => hasLabels(object.metadata.labels, selector));
  }
}

/** Whether the labels are among others that the selector asks for. */
export function hasLabels(labels: Selector, selector: Selector): boolean {
  return Object.entries(selector).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

function comparePods({ object: a }: Sourced<Pod>, { object: b }: Sourced<Pod>): number {
  return (
    compareText(a.metadata.namespace, b.metadata.namespace) ||
    compareNames(a.metadata.name, b.metadata.name) ||
    compareText(addressesOf(a), addressesOf(b))
  );
}

/** Distinguishes two Pods whose names the API server will generate. */
function addressesOf({ status }: Pod): string {
  return status?.addresses.map(({ text }) => text).join() ?? '';
}

function push(map: Map<string, Sourced<Pod>[]>, key: string, pod: Sourced<Pod>): void {
  const list = map.get(key);
  if (list) list.push(pod);
  else map.set(key, [pod]);
}

function labelKey(namespace: string, key: string, value: string): string {
  return `${namespace}\n${key}\n${value}`;
}
