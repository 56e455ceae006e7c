import { claimRefused, type LintRule } from '../../rule.ts';

export const unknownPort: LintRule<'unknown-port'> = {
  show: ({ port }, input, service) => {
    const own = service?.ports.find((each) => each.port === port);
    return own && claimRefused(own, input);
  },
};
