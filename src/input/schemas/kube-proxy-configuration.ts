import { anyInteger, closedObject, duration, flag, integer, item, list, object, text } from '../../diagnostics/json-schema.ts';
import type { DescribedFields, Schema } from '../../diagnostics/json-schema.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { configuredSections, fieldsInSection } from '../../settings/configuration.ts';
import type { ConfiguredFields } from '../../settings/table.ts';

const anything: Schema = {};

const integerOrText: Schema<number | string | null> = {
  type: ['integer', 'string', 'null'],
  expected: 'a number or a string',
};
const logOptions = object({ splitStream: flag, infoBufferSize: integerOrText });

/** The fields that shape no rule. Those that can keep kube-proxy from starting are read all the same. */
const otherFields = {
  apiVersion: text,
  kind: text,
  clientConnection: object({ burst: anyInteger }),
  logging: object({
    format: text,
    flushFrequency: integerOrText,
    verbosity: anyInteger,
    vmodule: list(item({ filePattern: text, verbosity: anyInteger })),
    options: object({ text: logOptions, json: logOptions }),
  }),
  healthzBindAddress: text,
  metricsBindAddress: text,
  bindAddressHardFail: flag,
  enableProfiling: flag,
  showHiddenMetricsForVersion: text,
  winkernel: anything,
  oomScoreAdj: integer(-1000, 1000, 'a whole number from -1000 to 1000'),
  configSyncPeriod: duration,
  portRange: text,
  windowsRunAsService: flag,
};

/** How often rules are written anew: a part of each mode's section. */
const syncPeriods = { syncPeriod: duration, minSyncPeriod: duration };

export type RawSyncPeriods = DescribedFields<typeof syncPeriods>;

const periodsOf = new Map<string, typeof syncPeriods>(proxyModes.map((mode) => [mode, syncPeriods]));

const sections = [...new Set([...proxyModes, ...configuredSections])].map((name) => {
  return [name, closedObject({ ...periodsOf.get(name), ...fieldsInSection(name) })] as const;
});

/** A KubeProxyConfiguration as its schema has it. The values of the fields that shape rules become settings later. */
export type KubeProxyConfig = ConfiguredFields &
  DescribedFields<typeof otherFields> & { readonly [M in ProxyMode]?: RawSyncPeriods | null };

/** kube-proxy's KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), all of its fields. */
export const kubeProxyConfigurationSchema: Schema = closedObject({
  ...otherFields,
  ...fieldsInSection(''),
  ...Object.fromEntries(sections),
});
