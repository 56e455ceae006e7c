import type { Shape } from '../../../base/json-shape.ts';
import { anyInteger, flag, object, openObject, text } from '../../../base/kubernetes-shape.ts';
import { unread } from './shared.ts';
import { proxyModes } from '../../../kube-proxy/modes.ts';
import { configuredSections, fieldsInSection } from '../../../settings/table.ts';

/** The fields that shape no rule: kpc checks their types alone. */
const otherFields = {
  ...unread(openObject({}), 'clientConnection', 'logging', 'winkernel'),
  oomScoreAdj: anyInteger,
  ...unread(text, 'apiVersion', 'kind', 'configSyncPeriod', 'healthzBindAddress', 'metricsBindAddress'),
  ...unread(text, 'showHiddenMetricsForVersion'),
  ...unread(flag, 'bindAddressHardFail', 'enableProfiling', 'windowsRunAsService'),
};

/** How often kube-proxy writes its rules anew: a part of each mode's section. */
const syncPeriods = unread(text, 'syncPeriod', 'minSyncPeriod');

const periodsOf = new Map<string, typeof syncPeriods>(proxyModes.map((mode) => [mode, syncPeriods]));

const sections = [...new Set([...proxyModes, ...configuredSections])].map((name) => {
  return [name, object({ ...periodsOf.get(name), ...fieldsInSection(name) })] as const;
});

/** A KubeProxyConfiguration as its shape accepts it. The settings read its other fields by their paths. */
export interface KubeProxyConfig {
  readonly mode?: string | null;
}

/** kube-proxy's KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), all of its fields. */
export const kubeProxyConfigurationShape = object({
  ...otherFields,
  ...fieldsInSection(''),
  ...Object.fromEntries(sections),
}) as Shape<KubeProxyConfig>;
