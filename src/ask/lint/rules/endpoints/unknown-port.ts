import { refused, type Rule } from '../../rule.ts';

/** Ports without endpoints, which compiling finds. */
export const unknownPort: Rule<'unknown-port'> = {
  show: ({ port }, input, service) => {
    const own = service?.ports.find((each) => each.port === port);
    return own && refused(own, input);
  },
};
