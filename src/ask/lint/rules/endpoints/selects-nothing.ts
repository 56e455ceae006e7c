import { causeFinder } from '../../../../cluster/slices/selector-causes.ts';
import { writtenAddresses } from '../../../../cluster/endpoints.ts';
import { addressesOfPod, selectorWords, type EndpointSlice } from '../../../../cluster/objects.ts';
import { claimRefused, type RuleFinding, type LintRule } from '../../rule.ts';

/**
 * Finds selectors that match none of a cluster's Pods, or none of the manifests' workloads and Pods. For a Service that is only in
 * manifests, a cluster's Pods do not count. EndpointSlices count as out of date if their Pods are in the input and the selector no longer
 * matches these Pods.
 */
export const selectsNothing: LintRule<'selects-nothing'> = {
  check: (input) => {
    const { pods, workloads } = input.loaded.inputs;
    const hasManifests = workloads.length > 0 || pods.some(({ object }) => object.status === undefined);
    const known = new Set(pods.flatMap(({ object }) => addressesOfPod(object)));
    const findCause = causeFinder(input.loaded.inputs);
    return input.services.flatMap((service): readonly RuleFinding<'selects-nothing'>[] => {
      const { object, name, source, selected, slices, ports, isOfCluster, knowsEndpoints } = service;
      const selector = selectorWords(object.spec.selector);
      const [port] = ports;
      if (selector === '' || selected.length > 0 || !port) return [];
      const isStale = slices.length > 0;
      if (isStale && !slices.some(({ object: slice }) => listsPod(slice, known))) return [];
      if (isOfCluster !== knowsEndpoints || !(isOfCluster || hasManifests)) return [];
      const { likely, isMeant } = findCause(object, isOfCluster);
      if (isMeant) return [];
      const details = { services: [name], selector, ...likely };
      if (isStale) return [{ details: { ...details, isStale }, place: source.place(['spec', 'selector']) }];
      const packet = isOfCluster ? claimRefused(port, input) : undefined;
      return [{ details, place: source.place(['spec', 'selector']), packet }];
    });
  },
};

function listsPod({ endpoints }: EndpointSlice, addressesOfPods: ReadonlySet<string>): boolean {
  return endpoints.some((endpoint) => writtenAddresses(endpoint).some((text) => addressesOfPods.has(text)));
}
