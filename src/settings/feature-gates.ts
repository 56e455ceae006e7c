import { flag, map } from '../base/json/kubernetes-schema.ts';
import { boolean, oneOf, optional, type Schema } from '../base/json/schema.ts';
import { behavioursOf, type Behaviours, type FeatureGates, type Release } from '../kube-proxy/releases.ts';
import { proxyField, proxyFlag, setting } from './setting.ts';

/** The flag for feature gates. Each value has one or more gates, such as "A=true,B=false". */
export const featureGatesFlag = proxyFlag(
  'list',
  '--feature-gates <gates>',
  "kube-proxy's feature gates, such as AllowServiceExternalIPs=false",
  { rank: 2 },
);
/** The configuration's field for feature gates. A gate with the value null counts as off. */
export const featureGatesField = proxyField('featureGates', map(flag, 'a mapping of true and false'));

/**
 * Makes a setting that has a value only if a feature gate changes what the release does by default. A bundle records only such gates. Gates
 * are read first, because other settings depend on them.
 */
function gatedSetting<T>(stored: Schema<T>, valueOf: (release: Release, behaviours: Behaviours) => T) {
  return setting({
    flags: [featureGatesFlag],
    fields: [featureGatesField],
    defaultIn: (): T | undefined => undefined,
    read: ({ release, gates }) => valueOf(release, behavioursOf(release, gates)),
    stored: optional(stored),
  });
}

const isIgnoring = (_: Release, behaviours: Behaviours) => (behaviours.has('external-ips') ? undefined : true);

function handlesLocalhost(release: Release, behaviours: Behaviours): boolean | undefined {
  const isSet = behaviours.has('localhost-node-ports');
  return isSet === behavioursOf(release).has('localhost-node-ports') ? undefined : isSet;
}

/** Set if AllowServiceExternalIPs is off. Releases that have this gate then program no external IPs. */
export const ignoresExternalIPs = gatedSetting<true | undefined>(oneOf(true), isIgnoring);

/** Whether nftables mode handles localhost node ports (KubeProxyNFTablesLocalhostNodePorts). Undefined for the default. */
export const nftablesLocalhostNodePorts = gatedSetting<boolean | undefined>(boolean, handlesLocalhost);

interface GatedSettings {
  readonly ignoresExternalIPs?: true | undefined;
  readonly nftablesLocalhostNodePorts?: boolean | undefined;
}

export function withGatedSettings<T extends GatedSettings & { readonly release: Release }>(
  settings: T,
  behaviours: Behaviours,
): T {
  const { ignoresExternalIPs: _, nftablesLocalhostNodePorts: __, ...others } = settings;
  const [ignores, handles] = [isIgnoring(settings.release, behaviours), handlesLocalhost(settings.release, behaviours)];
  return {
    ...others,
    ...(ignores === undefined ? {} : { ignoresExternalIPs: ignores }),
    ...(handles === undefined ? {} : { nftablesLocalhostNodePorts: handles }),
  } as T;
}

export function gatesOfSettings({
  ignoresExternalIPs: ignores,
  nftablesLocalhostNodePorts: handles,
}: GatedSettings): FeatureGates {
  return new Map([
    ...(ignores ? [['AllowServiceExternalIPs', false] as const] : []),
    ...(handles === undefined ? [] : [['KubeProxyNFTablesLocalhostNodePorts', handles] as const]),
  ]);
}
