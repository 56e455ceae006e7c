import { headlessLabel, proxyNameLabel } from '../../../../cluster/endpoints.ts';
import { fullName } from '../../../../cluster/objects.ts';
import type { LintRule } from '../../rule.ts';

export const ignoredService: LintRule<'ignored-service'> = {
  check: ({ loaded: { inputs, cluster } }) => {
    const watched = new Set(cluster.services.map(fullName));
    return inputs.services.flatMap(({ object: { metadata }, source }) => {
      const label = [proxyNameLabel, headlessLabel].find((each) => Object.hasOwn(metadata.labels, each));
      const service = fullName(metadata);
      if (label === undefined || watched.has(service)) return [];
      return [{ details: { service, label }, place: source.place(['metadata', 'labels', label]) }];
    });
  },
};
