import { meetsRequirement, type LabelSelector } from '../../cluster/objects.ts';
import { allOf, type Maybe } from '../../packet/reason.ts';
import type { Scene } from './scene.ts';

export interface KnownLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** Whether there are no other labels. */
  readonly isWhole: boolean;
}

/** Whether a selector matches these labels. */
export function matches(selector: LabelSelector, { labels, isWhole }: KnownLabels): Maybe {
  return allOf(selector, (requirement) =>
    isWhole || Object.hasOwn(labels, requirement.key) ? meetsRequirement(requirement, labels) : undefined,
  );
}

/** kube-apiserver labels every Namespace with its name. */
export function labelsOfNamespace(namespace: string | undefined, { side: { objects } }: Scene): KnownLabels {
  if (namespace === undefined) return { labels: {}, isWhole: false };
  const own = objects.namespaces.find(({ object }) => object.metadata.name === namespace);
  const labels = { ...own?.object.metadata.labels, 'kubernetes.io/metadata.name': namespace };
  return { labels, isWhole: own !== undefined };
}
