import { claimRefused, type LintRule } from '../../rule.ts';

/** Returns a packet to the Service without endpoints whose comment kpc cut, because it is too long for nft. */
export const longComment: LintRule<'long-comment'> = {
  show: ({ servicePort }, input, service) => {
    const port = service?.ports.find((each) => each.label === servicePort);
    return port && claimRefused(port, input);
  },
};
