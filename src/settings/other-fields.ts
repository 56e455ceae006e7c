import { parseDuration } from '../base/duration.ts';
import { duration, expectedDuration, flag, integer, item, list, object, text } from '../base/json/kubernetes-schema.ts';
import { anything, narrowed, nullable, number, oneOf, textThat, type Schema } from '../base/json/schema.ts';
import { gateOf, isOn } from '../kube-proxy/feature-gates.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import { int32FromZero } from './kinds.ts';
import { proxyField, refuseSetting, refuseValue, type SettingField, type SettingSource } from './setting.ts';

export const socket = nullable(textThat('an address and a port such as 0.0.0.0:10256', 'isSocket'));

const notNegative = textThat(expectedDuration, 'isDurationFromZero');

const flushFrequency = narrowed(anything, 'a duration such as 5s, above 0', 'isFlushFrequency');
const quantity = narrowed(anything, 'a quantity such as 64Ki', 'isQuantity');
const formatOptions = object({ splitStream: flag, infoBufferSize: quantity });
const vmodule = narrowed(
  item({ filePattern: text, verbosity: int32FromZero }),
  'an item with a filePattern without = and commas',
  'hasFilePattern',
);
const formats = oneOf('', 'text', 'json');
const logging = narrowed(
  object({
    format: nullable(formats),
    flushFrequency,
    verbosity: int32FromZero,
    vmodule: list(vmodule),
    options: object({ text: formatOptions, json: formatOptions }),
  }),
  'without vmodule where the format is json',
  'isLogging',
);

const loggingField = proxyField('logging', logging);
const hiddenMetricsField = proxyField('showHiddenMetricsForVersion', text);

/** kube-proxy's sync periods, by section. The defaults are in seconds. */
const periods = { iptables: periodsOf('iptables', 1), ipvs: periodsOf('ipvs', 0), nftables: periodsOf('nftables', 1) };

function periodsOf(section: string, usualLeast: number) {
  const [usual, least] = [
    proxyField(`${section}.syncPeriod`, duration),
    proxyField(`${section}.minSyncPeriod`, duration),
  ];
  return { usual, least, usualLeast };
}

const periodsIn: { readonly [M in ProxyMode]: (typeof periods)[keyof typeof periods] } = {
  ...periods,
  userspace: periods.iptables,
};

function proxyFields(schema: Schema, ...names: readonly string[]): readonly SettingField[] {
  return names.map((name) => proxyField(name, schema));
}

/** The fields that do not affect rules. kube-proxy checks their types and values (pkg/proxy/apis/config/validation). */
export const otherFields: readonly SettingField[] = [
  ...proxyFields(text, 'apiVersion', 'kind'),
  ...proxyFields(flag, 'bindAddressHardFail', 'enableProfiling', 'windowsRunAsService'),
  ...proxyFields(socket, 'metricsBindAddress'),
  ...proxyFields(notNegative, 'configSyncPeriod'),
  ...proxyFields(integer(-1000, 1000, 'a whole number from -1000 to 1000'), 'oomScoreAdj'),
  proxyField(
    'clientConnection',
    object({
      kubeconfig: text,
      acceptContentTypes: text,
      contentType: text,
      qps: nullable(number('a number of 32 bits', -3.4028235e38, 3.4028235e38)),
      burst: int32FromZero,
    }),
  ),
  proxyField(
    'winkernel',
    object({
      networkName: text,
      sourceVip: text,
      enableDSR: flag,
      rootHnsEndpointName: text,
      forwardHealthCheckVip: flag,
    }),
  ),
  loggingField,
  hiddenMetricsField,
  ...Object.values(periods).flatMap(({ usual, least }) => [usual, least]),
];

/** Reports faults that keep kube-proxy from starting and that depend on several fields, the mode, the release or a gate. */
export function checkOtherFields(source: SettingSource): void {
  checkPeriods(source);
  checkLogging(source);
  const version = source.field(hiddenMetricsField) ?? '';
  const previous = `1.${Number(source.release.slice('1.'.length)) - 1}`;
  if (version !== '' && version !== previous)
    refuseValue(source, { name: hiddenMetricsField.name, value: version, path: hiddenMetricsField.path }, previous);
}

function checkPeriods(source: SettingSource): void {
  const { usual, least, usualLeast } = periodsIn[source.mode];
  const secondsOf = (field: SettingField<string>, otherwise: number) =>
    parseDuration(source.field(field) ?? '0') || otherwise;
  const [seconds, leastSeconds] = [secondsOf(usual, 30), secondsOf(least, usualLeast)];
  const refusePeriod = (field: SettingField<string>, expected: string) =>
    refuseValue(source, { name: field.name, value: source.field(field) ?? '', path: field.path }, expected);
  if (leastSeconds < 0) refusePeriod(least, 'a duration such as 1s, from 0 up');
  else if (seconds < 0) refusePeriod(usual, 'a duration such as 30s, above 0');
  else if (leastSeconds > seconds)
    refusePeriod(
      source.field(usual) === undefined ? least : usual,
      `a syncPeriod of at least minSyncPeriod (${leastSeconds}s)`,
    );
}

function checkLogging(source: SettingSource): void {
  const gate = gateOf('LoggingAlphaOptions', source.release);
  if (gate === undefined || isOn(gate, source.gates)) return;
  for (const [format, options] of Object.entries(source.field(loggingField)?.options ?? {})) {
    for (const [name, value] of Object.entries(options ?? {})) {
      if (value === null || value === false || Number.parseFloat(String(value)) === 0) continue;
      const path = [...loggingField.path, 'options', format, name];
      const found = { type: 'string', value: String(value) } as const;
      const because = 'the feature gate LoggingAlphaOptions is off, and kube-proxy does not start';
      refuseSetting(source, { path }, 'bad-value', { field: name, found, expected: 'nothing', because });
    }
  }
}
