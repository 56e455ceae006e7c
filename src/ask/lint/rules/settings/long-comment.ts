import { claimRefused, type LintRule } from '../../rule.ts';

/** Comments that do not load. The packet shows the Service without endpoints, whose comment kpc has cut. */
export const longComment: LintRule<'long-comment'> = {
  show: ({ servicePort }, input, service) => {
    const port = service?.ports.find((each) => each.label === servicePort);
    return port && claimRefused(port, input);
  },
};
