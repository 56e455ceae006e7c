import { flag, map } from '../diagnostics/json-schema.ts';
import { oneOf, optional } from '../base/shape.ts';
import { behavioursOf } from '../kube-proxy/releases.ts';
import { field } from './field.ts';
import { listFlag } from './flag.ts';
import { setting } from './setting.ts';

/** "A=true,B=false": one or more gates in each flag. */
export const featureGatesFlag = listFlag(
  '--feature-gates <gates>',
  "kube-proxy's feature gates, such as AllowServiceExternalIPs=false",
  { repeats: true, rank: 2 },
);
/** A gate that is null counts as off. */
export const featureGatesField = field('featureGates', map(flag, 'a mapping of true and false'));

/**
 * Set where the feature gate AllowServiceExternalIPs is off: releases that know the gate then program no external IPs. kpc
 * reads the gates before all settings (src/input/given-gates.ts), because other behaviours depend on them too.
 */
export const ignoresExternalIPs = setting({
  flags: [featureGatesFlag],
  fields: [featureGatesField],
  defaultIn: (): true | undefined => undefined,
  read: ({ release, gates }) => (behavioursOf(release, gates).has('external-ips') ? undefined : true),
  stored: optional(oneOf(true)),
});
