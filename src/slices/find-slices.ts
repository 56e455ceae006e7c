import { eitherOf, namesOf } from '../cluster/by-name.ts';
import type { Names } from '../cluster/by-name.ts';
import { groupSlices } from '../cluster/endpoints.ts';
import type { SlicesByService } from '../cluster/endpoints.ts';
import { mirrorEndpoints } from '../cluster/mirror-endpoints.ts';
import type { EndpointSlice, Sourced } from '../cluster/objects.ts';
import { makeEndpoints } from './make-endpoints.ts';
import type { AssumedNetworks, PodSources } from './make-endpoints.ts';
import type { SlicesOfPods } from './pods-to-slices.ts';

/** The slices of all Services. */
export interface FoundSlices extends Pick<SlicesOfPods, 'assumed' | 'diagnostics'> {
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly slicesOf: SlicesByService;
  /** Those of the input, and what the control plane makes of its Endpoints, but nothing made of Pods. */
  readonly givenOf: SlicesByService;
  /** The Services whose endpoints are known, even if they have none. */
  readonly served: Names;
}

/**
 * The slices that a cluster with these objects has: those given, those that the control plane mirrors from Endpoints, and
 * those that it makes of Pods. `assumed` is set where workloads are taken to have Pods.
 */
export function findSlices(sources: PodSources, assumed: AssumedNetworks | undefined): FoundSlices {
  const given = [...sources.slices, ...mirrorEndpoints(sources.endpoints, sources.slices)];
  const givenOf = groupSlices(given);
  const known = eitherOf(givenOf, namesOf(sources.endpoints.map(({ object }) => object.metadata)));
  const made = makeEndpoints(sources, assumed, known);
  const slices = [...given, ...made.slices];
  return {
    slices,
    slicesOf: made.slices.length === 0 ? givenOf : groupSlices(slices),
    givenOf,
    served: eitherOf(known, namesOf(made.services)),
    assumed: made.assumed,
    diagnostics: made.diagnostics,
  };
}
