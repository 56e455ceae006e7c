import { claimRefused, type LintRule } from '../../rule.ts';

/** Shows a comment that is too long for nft by a packet to the Service without endpoints whose comment kpc cut. */
export const longComment: LintRule<'long-comment'> = {
  show: ({ servicePort }, input, service) => {
    const port = service?.ports.find((each) => each.label === servicePort);
    return port && claimRefused(port, input);
  },
};
