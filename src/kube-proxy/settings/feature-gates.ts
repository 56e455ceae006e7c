import { flag, map } from '../../diagnostics/json-schema.ts';
import { oneOf, optional } from '../../base/json-shape.ts';
import { behavioursOf, type Behaviours, type FeatureGates } from '../releases.ts';
import { proxyField, proxyFlag, setting } from './setting.ts';

/** "A=true,B=false": one or more gates in each flag. */
export const featureGatesFlag = proxyFlag(
  'list',
  '--feature-gates <gates>',
  "kube-proxy's feature gates, such as AllowServiceExternalIPs=false",
  2,
);
/** A gate that is null counts as off. */
export const featureGatesField = proxyField('featureGates', map(flag, 'a mapping of true and false'));

/**
 * Set if a feature gate makes kube-proxy behave as it does not by default. A bundle records of the gates only these. kpc
 * reads the gates before all settings (src/input/configuration/feature-gates.ts), because other behaviours depend on them too.
 */
function gatedSetting(isSet: (behaviours: Behaviours) => boolean) {
  return setting({
    flags: [featureGatesFlag],
    fields: [featureGatesField],
    defaultIn: (): true | undefined => undefined,
    read: ({ release, gates }) => (isSet(behavioursOf(release, gates)) ? true : undefined),
    stored: optional(oneOf(true)),
  });
}

/** AllowServiceExternalIPs is off: releases that know the gate then program no external IPs. */
export const ignoresExternalIPs = gatedSetting((behaviours) => !behaviours.has('external-ips'));

/** KubeProxyNFTablesLocalhostNodePorts is on: releases that know the gate then see to node ports on localhost in mode nftables. */
export const nftablesLocalhostNodePorts = gatedSetting((behaviours) => behaviours.has('localhost-node-ports'));

/** What a bundle records of feature gates. */
interface GatedSettings {
  readonly ignoresExternalIPs?: true | undefined;
  readonly nftablesLocalhostNodePorts?: true | undefined;
}

/** The same settings under a kube-proxy that behaves so. */
export function withGatedSettings<T extends GatedSettings>(settings: T, behaviours: Behaviours): T {
  const { ignoresExternalIPs: _, nftablesLocalhostNodePorts: __, ...others } = settings;
  return {
    ...others,
    ...(behaviours.has('external-ips') ? {} : { ignoresExternalIPs: true }),
    ...(behaviours.has('localhost-node-ports') ? { nftablesLocalhostNodePorts: true } : {}),
  } as T;
}

/** The feature gates that settings record. */
export function gatesOfSettings(settings: GatedSettings): FeatureGates {
  return new Map([
    ...(settings.ignoresExternalIPs ? [['AllowServiceExternalIPs', false] as const] : []),
    ...(settings.nftablesLocalhostNodePorts ? [['KubeProxyNFTablesLocalhostNodePorts', true] as const] : []),
  ]);
}
