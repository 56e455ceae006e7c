import type { Names } from './by-name.ts';
import { compareText } from './compare-text.ts';
import type { Diagnostic } from './diagnostic.ts';
import type { Cluster } from './model.ts';
import { nameSome } from './name-some.ts';
import type { Service, Sourced } from './objects.ts';

/**
 * One warning for all Services with a selector that the input holds neither slices nor Endpoints of. In a cluster each has
 * one: their absence says that the input is not all there is.
 */
export function findUnserved(
  services: readonly Sourced<Service>[],
  cluster: Cluster,
  served: Names,
  /** Whether the input holds workloads that Pods could be assumed of. */
  hasWorkloads: boolean,
): readonly Diagnostic[] {
  // Mostly there are none, and then it does not matter how many select.
  if (services.every(({ object }) => isIn(served, object) || !hasSelector(object))) return [];
  const programmed = new Set(cluster.servicePorts.map(({ namespace, service }) => `${namespace}/${service}`));
  const selecting = services.filter(({ object }) => hasSelector(object) && programmed.has(labelOf(object)));
  const unserved = selecting
    .filter(({ object }) => !isIn(served, object))
    .sort((a, b) => compareText(labelOf(a.object), labelOf(b.object)));
  const [first] = unserved;
  if (!first) return [];
  const names = nameSome(unserved.map(({ object }) => labelOf(object)));
  const which =
    selecting.length === 1
      ? `the input holds no EndpointSlice or Endpoints of ${names}: the compiled rules refuse all connections to it`
      : `the input holds no EndpointSlices or Endpoints of ${unserved.length} of ${selecting.length} Services with a selector (${names}): the compiled rules refuse all connections to them`;
  const assume = hasWorkloads ? ', or take the workloads of the input to have ready Pods: --assume-endpoints' : '';
  const text = `${which}; add them (kubectl get endpointslices -A -o yaml)${assume}`;
  return [{ severity: 'warning', code: 'no-endpoints-given', text, place: first.source.place(['metadata', 'name']) }];
}

function hasSelector({ spec }: Service): boolean {
  return Object.keys(spec.selector ?? {}).length > 0;
}

function isIn(names: Names, { metadata }: Service): boolean {
  return names.has(metadata.namespace, metadata.name);
}

function labelOf({ metadata }: Service): string {
  return `${metadata.namespace}/${metadata.name}`;
}
