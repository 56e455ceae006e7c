import { skippingLabelOf } from '../../../../kube-proxy/skipped.ts';
import { fullName } from '../../../../cluster/objects.ts';
import type { LintRule } from '../../rule.ts';

export const ignoredService: LintRule<'ignored-service'> = {
  check: ({ loaded: { inputs, cluster } }) => {
    const labels = new Map(cluster.services.map((info) => [fullName(info), skippingLabelOf(info)]));
    return inputs.services.flatMap(({ object: { metadata }, source }) => {
      const service = fullName(metadata);
      const label = labels.get(service);
      if (label === undefined) return [];
      return [{ details: { service, label }, place: source.place(['metadata', 'labels', label]) }];
    });
  },
};
