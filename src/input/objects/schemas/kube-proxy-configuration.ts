import { object, duration, flag, integer, item, list, text, type Schema } from '../../../diagnostics/json-schema.ts';
import { unread } from './shared.ts';
import { proxyModes } from '../../../kube-proxy/modes.ts';
import { configuredSections, fieldsInSection } from '../../../kube-proxy/settings/table.ts';

const number: Schema<number | null> = { type: ['number', 'null'], expected: 'a number' };

const integerOrText: Schema<number | string | null> = {
  type: ['integer', 'string', 'null'],
  expected: 'a number or a string',
};
const uint32 = integer(0, 2 ** 32 - 1, `a whole number from 0 to ${2 ** 32 - 1}`);
const logOptions = object({ splitStream: flag, infoBufferSize: integerOrText });

/** The fields that shape no rule: kube-proxy must still be able to read them. */
const otherFields = {
  clientConnection: object({
    qps: number,
    burst: integer(0, 2 ** 31 - 1, `a whole number from 0 to ${2 ** 31 - 1}`),
    ...unread(text, 'kubeconfig', 'acceptContentTypes', 'contentType'),
  }),
  logging: object({
    format: text,
    flushFrequency: integerOrText,
    verbosity: uint32,
    vmodule: list(item({ filePattern: text, verbosity: uint32 })),
    options: object({ text: logOptions, json: logOptions }),
  }),
  winkernel: object({
    ...unread(text, 'networkName', 'sourceVip', 'rootHnsEndpointName'),
    ...unread(flag, 'enableDSR', 'forwardHealthCheckVip'),
  }),
  oomScoreAdj: integer(-1000, 1000, 'a whole number from -1000 to 1000'),
  configSyncPeriod: duration,
  ...unread(text, 'apiVersion', 'kind', 'healthzBindAddress', 'metricsBindAddress', 'portRange'),
  ...unread(text, 'showHiddenMetricsForVersion'),
  ...unread(flag, 'bindAddressHardFail', 'enableProfiling', 'windowsRunAsService'),
};

/** How often rules are written anew: a part of each mode's section. */
const syncPeriods = { syncPeriod: duration, minSyncPeriod: duration };

const periodsOf = new Map<string, typeof syncPeriods>(proxyModes.map((mode) => [mode, syncPeriods]));

const sections = [...new Set([...proxyModes, ...configuredSections])].map((name) => {
  return [name, object({ ...periodsOf.get(name), ...fieldsInSection(name) })] as const;
});

/** A KubeProxyConfiguration as its schema has it. The settings read its other fields by their paths. */
export interface KubeProxyConfig {
  readonly mode?: string | null;
}

/** kube-proxy's KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), all of its fields. */
export const kubeProxyConfigurationSchema = object({
  ...otherFields,
  ...fieldsInSection(''),
  ...Object.fromEntries(sections),
}) as Schema<KubeProxyConfig>;
