import { whyUnready } from '../../../../cluster/slices/unready.ts';
import { isServed, claimRefused, ofServices, type LintRule } from '../../rule.ts';

/** Finds Services without an endpoint that accepts connections, if their endpoints are known or their workloads are scaled to 0. */
export const noReadyEndpoint: LintRule<'no-ready-endpoint'> = ofServices((service, input) => {
  const { name, object, ports, isScaledToZero, knowsEndpoints, source } = service;
  const [first] = ports;
  if (!first || !(knowsEndpoints || isScaledToZero) || ports.some(isServed)) return undefined;
  const why = whyUnready({ ...service, spec: object.spec });
  return (
    why && {
      details: { service: name, ...why },
      place: source.place(['metadata', 'name']),
      packet: claimRefused(first, input),
    }
  );
});
