import { eitherOf, namesOf } from '../by-name.ts';
import { groupSlices, type ServiceWithSlices } from '../endpoints.ts';
import { mirrorEndpoints } from '../mirror-endpoints.ts';
import type { EndpointSlice, Sourced } from '../objects.ts';
import { makeEndpoints, type AssumedNetworks, type PodSources } from './make-endpoints.ts';
import type { SlicesOfPods } from './pods-to-slices.ts';

/** The slices of all Services. */
export interface FoundSlices extends Pick<SlicesOfPods, 'assumed' | 'diagnostics'> {
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly services: readonly ServiceWithSlices[];
}

const none: readonly never[] = [];

/**
 * The slices that a cluster with these objects has: those given, those that the control plane mirrors from Endpoints, and
 * those that it makes of Pods. `assumed` is set where workloads are taken to have Pods.
 */
export function findSlices(sources: PodSources, assumed: AssumedNetworks | undefined): FoundSlices {
  const given = [...sources.slices, ...mirrorEndpoints(sources.endpoints, sources.slices)];
  const givenOf = groupSlices(given);
  const withEndpoints = namesOf(sources.endpoints.map(({ object }) => object.metadata));
  const made = makeEndpoints(sources, assumed, eitherOf(givenOf, withEndpoints));
  // Slices are made for Services only that none is given for.
  const madeOf = groupSlices(made.slices);
  const served = namesOf(made.services);
  return {
    slices: [...given, ...made.slices],
    services: sources.services.map(({ object, source }) => {
      const { namespace, name } = object.metadata;
      const own = givenOf.get(namespace, name);
      return {
        object,
        source,
        slices: own ?? madeOf.get(namespace, name) ?? none,
        given: own ?? none,
        isServed: own !== undefined || withEndpoints.has(namespace, name) || served.has(namespace, name),
      };
    }),
    assumed: made.assumed,
    diagnostics: made.diagnostics,
  };
}
