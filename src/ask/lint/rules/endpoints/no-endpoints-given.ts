import type { LintRule } from '../../rule.ts';

/**
 * Finds Services without slices in input that seems printed from a cluster, because it has Nodes or slices and every Service has an
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
        // A Service without a selector has slices written by hand, which may be in another file.
        .filter(({ object }) => nodes.length > 0 || object.spec.selector !== undefined)
        .map(({ name, source }) => ({
          details: { services: [name], selecting: 1, hasWorkloads: false },
          place: source.place(['metadata', 'name']),
        }))
    );
  },
};
