import type { LintRule } from '../../rule.ts';

/**
 * Services of what a cluster seems to have printed, since it holds Nodes or slices and nothing of it lacks an address, that have no slices.
 * In a cluster, each Service with a selector has one.
 */
export const noEndpointsGiven: LintRule<'no-endpoints-given'> = {
  check: ({ services, nodes, loaded: { inputs } }) => {
    const { workloads, pods, slices, endpoints } = inputs;
    if (workloads.length + pods.length > 0 || slices.length + endpoints.length + nodes.length === 0) return [];
    if (services.some(({ written, ports }) => ports.length > 0 && written.spec.clusterIP === '')) return [];
    return (
      services
        .filter(({ ports, knowsEndpoints }) => ports.length > 0 && !knowsEndpoints)
        // Without a selector, it has the slices that somebody writes, maybe in another file.
        .filter(({ object }) => nodes.length > 0 || object.spec.selector !== undefined)
        .map(({ name, source }) => ({
          details: { services: [name], selecting: 1, hasWorkloads: false },
          place: source.place(['metadata', 'name']),
        }))
    );
  },
};
