import { compareText } from '../kernel/compare-text.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Cluster } from './model.ts';
import type { ServiceWithSlices } from './endpoints.ts';
import type { Service } from './objects.ts';

/**
 * One warning for all Services with a selector that the input holds neither slices nor Endpoints of. In a cluster each has
 * one: their absence says that the input is not all there is.
 */
export function findUnserved(
  services: readonly ServiceWithSlices[],
  cluster: Cluster,
  /** Whether the input holds workloads that Pods could be assumed of. */
  hasWorkloads: boolean,
): readonly Diagnostic[] {
  // Mostly there are none, and then it does not matter how many select.
  if (services.every(({ object, isServed }) => isServed || !hasSelector(object))) return [];
  const programmed = new Set(cluster.servicePorts.map(({ namespace, service }) => `${namespace}/${service}`));
  const selecting = services.filter(({ object }) => hasSelector(object) && programmed.has(labelOf(object)));
  const unserved = selecting
    .filter(({ isServed }) => !isServed)
    .sort((a, b) => compareText(labelOf(a.object), labelOf(b.object)));
  const [first] = unserved;
  if (!first) return [];
  const names = unserved.map(({ object }) => labelOf(object));
  const details = { services: names, selecting: selecting.length, hasWorkloads };
  return [diagnose('no-endpoints-given', details, first.source.place(['metadata', 'name']))];
}

function hasSelector({ spec }: Service): boolean {
  return Object.keys(spec.selector ?? {}).length > 0;
}

function labelOf({ metadata }: Service): string {
  return `${metadata.namespace}/${metadata.name}`;
}
