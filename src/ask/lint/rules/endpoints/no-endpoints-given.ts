import type { LintRule } from '../../rule.ts';

/**
 * Finds Services without slices in input that a cluster seems to have printed, because it holds Nodes or slices, and every Service has its
 * address. In a cluster, each Service with a selector has a slice.
 */
export const noEndpointsGiven: LintRule<'no-endpoints-given'> = {
  check: ({ services, nodes, loaded: { inputs } }) => {
    const { workloads, pods, slices, endpoints } = inputs;
    if (workloads.length + pods.length > 0 || slices.length + endpoints.length + nodes.length === 0) return [];
    if (services.some(({ written, ports }) => ports.length > 0 && written.spec.clusterIP === '')) return [];
    return (
      services
        .filter(({ ports, knowsEndpoints }) => ports.length > 0 && !knowsEndpoints)
        // The slices of a Service without a selector are written by hand, perhaps in another file.
        .filter(({ object }) => nodes.length > 0 || object.spec.selector !== undefined)
        .map(({ name, source }) => ({
          details: { services: [name], selecting: 1, hasWorkloads: false },
          place: source.place(['metadata', 'name']),
        }))
    );
  },
};
