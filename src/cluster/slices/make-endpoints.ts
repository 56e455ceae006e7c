import type { Names } from '../by-name.ts';
import { writtenAddresses } from '../endpoints.ts';
import type { Endpoints, EndpointSlice, Node, Pod, Service, Sourced, Workload } from '../objects.ts';
import { parseNetwork, type Network } from '../../kernel/address.ts';
import { assumePods } from './assume-pods.ts';
import { podsToSlices, type SlicesOfPods } from './pods-to-slices.ts';

/** Where Pods come from. */
export interface PodSources {
  /** With all addresses that kpc gives them. */
  readonly services: readonly Sourced<Service>[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly endpoints: readonly Sourced<Endpoints>[];
  readonly pods: readonly Sourced<Pod>[];
  readonly workloads: readonly Sourced<Workload>[];
  readonly nodes: readonly Sourced<Node>[];
}

/** How workloads are taken to have Pods. */
export interface AssumedNetworks {
  /** Those that --assume-endpoints names: one of each family at most. */
  readonly networks: readonly Network[];
  readonly clusterCIDRs: readonly string[];
}

/**
 * The slices of the Services that the input holds neither slices nor Endpoints of (`given` are the others): of its Pods,
 * and, where that is asked for, of those that its workloads would have.
 */
export function makeEndpoints(sources: PodSources, assumed: AssumedNetworks | undefined, given: Names): SlicesOfPods {
  if (!assumed) return podsToSlices({ ...sources, idle: [] }, given);
  const { pods, idle, diagnostics } = assumePods({
    ...sources,
    networks: assumed.networks,
    clusterCIDRs: assumed.clusterCIDRs.flatMap((text) => parseNetwork(text) ?? []),
    given,
    taken: addressesOf(sources),
  });
  const made = podsToSlices({ ...sources, pods, idle }, given);
  return { ...made, diagnostics: [...diagnostics, ...made.diagnostics] };
}

/** The addresses of all endpoints that the input holds. */
function addressesOf({ slices, endpoints }: PodSources): ReadonlySet<string> {
  return new Set([
    ...slices.flatMap(({ object }) => object.endpoints.flatMap(writtenAddresses)),
    ...endpoints.flatMap(({ object }) =>
      object.subsets.flatMap((subset) => [...subset.addresses, ...subset.notReadyAddresses].map(({ ip }) => ip)),
    ),
  ]);
}
