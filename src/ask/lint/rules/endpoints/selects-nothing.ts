import { causeFinder } from '../../../../cluster/slices/selector-causes.ts';
import { selectorWords } from '../../../../cluster/objects.ts';
import { claimRefused, type RuleFinding, type LintRule } from '../../rule.ts';

/**
 * Selectors that no Pod has: of the Pods of a cluster; or of the workloads and Pods of manifests, if there are any. A Pod that
 * was printed from a cluster says nothing of a Service that was not.
 */
export const selectsNothing: LintRule<'selects-nothing'> = {
  check: (input) => {
    const { pods, workloads } = input.loaded.inputs;
    const hasManifests = workloads.length > 0 || pods.some(({ object }) => object.status === undefined);
    const findCause = causeFinder(input.loaded.inputs);
    return input.services.flatMap((service): readonly RuleFinding<'selects-nothing'>[] => {
      const { object, name, source, selected, slices, ports, isOfCluster, knowsEndpoints } = service;
      const selector = selectorWords(object.spec.selector);
      const [port] = ports;
      if (selector === '' || selected.length > 0 || slices.length > 0 || !port) return [];
      if (isOfCluster !== knowsEndpoints || !(isOfCluster || hasManifests)) return [];
      const { likely, isMeant } = findCause(object, isOfCluster);
      if (isMeant) return [];
      const details = { services: [name], selector, ...likely };
      const packet = isOfCluster ? claimRefused(port, input) : undefined;
      return [{ details, place: source.place(['spec', 'selector']), packet }];
    });
  },
};
