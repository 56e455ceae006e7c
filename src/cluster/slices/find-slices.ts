import { eitherOf, namesOf } from '../by-name.ts';
import { groupSlices, writtenAddresses, type ServiceWithSlices } from '../endpoints.ts';
import { mirrorEndpoints } from './mirror-endpoints.ts';
import type { Endpoints, EndpointSlice, Namespace, Node, Pod, Service, Sourced, Workload } from '../objects.ts';
import { parseNetwork, type Network } from '../../kernel/address.ts';
import { assumePods } from './assume-pods.ts';
import { podsToSlices, type SlicesOfPods } from './pods-to-slices.ts';

interface SliceSources {
  /** With the addresses that kpc assigned. */
  readonly services: readonly Sourced<Service>[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly endpoints: readonly Sourced<Endpoints>[];
  readonly pods: readonly Sourced<Pod>[];
  readonly workloads: readonly Sourced<Workload>[];
  readonly nodes: readonly Sourced<Node>[];
  readonly namespaces: readonly Sourced<Namespace>[];
}

interface AssumedNetworks {
  /** From --assume-endpoints, at most one of each family. */
  readonly networks: readonly Network[];
  readonly clusterCIDRs: readonly string[];
}

export interface FoundSlices extends Pick<SlicesOfPods, 'assumed' | 'unplaced' | 'findUndeclared' | 'diagnostics'> {
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly services: readonly ServiceWithSlices[];
  /** Including those that no Service selects. */
  readonly assumedPods: readonly Sourced<Pod>[];
}

const none: readonly never[] = [];

/**
 * The slices that a cluster with these objects has: the given ones, those mirrored from Endpoints, and, for Services with
 * neither, those made from Pods. `assumed` is set if workloads are assumed to have Pods.
 */
export function findSlices(sources: SliceSources, assumed: AssumedNetworks | undefined): FoundSlices {
  const { services, slices, endpoints } = sources;
  const mirrored = mirrorEndpoints(sources);
  const given = [...slices, ...mirrored.slices];
  const givenOf = groupSlices(given);
  const withEndpoints = namesOf(endpoints.map(({ object }) => object.metadata));
  const served = eitherOf(givenOf, withEndpoints);
  const { pods, diagnostics, ...found } = assumed
    ? assumePods({
        ...sources,
        networks: assumed.networks,
        clusterCIDRs: assumed.clusterCIDRs.flatMap((text) => parseNetwork(text) ?? []),
        given: served,
        taken: addressesOf(sources),
      })
    : { pods: sources.pods, hasIdle: false, scaledDown: none, unplaced: none, diagnostics: [] };
  const made = podsToSlices({ ...sources, ...found, pods }, served);
  const madeOf = groupSlices(made.slices);
  const madeFor = namesOf(made.services);
  return {
    slices: [...given, ...made.slices],
    services: services.map(({ object, source }) => {
      const { namespace, name } = object.metadata;
      const own = givenOf.get(namespace, name);
      return {
        object,
        source,
        slices: own ?? madeOf.get(namespace, name) ?? none,
        given: own ?? none,
        isServed: served.has(namespace, name) || madeFor.has(namespace, name),
      };
    }),
    assumed: made.assumed,
    unplaced: made.unplaced,
    assumedPods: assumed ? pods.filter(({ object }) => object.assumed) : none,
    findUndeclared: made.findUndeclared,
    diagnostics: [...mirrored.diagnostics, ...diagnostics, ...made.diagnostics],
  };
}

function addressesOf({ slices, endpoints }: SliceSources): ReadonlySet<string> {
  return new Set([
    ...slices.flatMap(({ object }) => object.endpoints.flatMap(writtenAddresses)),
    ...endpoints.flatMap(({ object }) =>
      object.subsets.flatMap((subset) => [...subset.addresses, ...subset.notReadyAddresses].map(({ ip }) => ip)),
    ),
  ]);
}
