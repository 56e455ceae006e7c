import { claimRefused, type LintRule } from '../../rule.ts';

/** Comments too long for nft. The packet goes to the Service without endpoints, with the comment that kpc cut. */
export const longComment: LintRule<'long-comment'> = {
  show: ({ servicePort }, input, service) => {
    const port = service?.ports.find((each) => each.label === servicePort);
    return port && claimRefused(port, input);
  },
};
