import type { FieldPath, ProxySettings } from '../cluster/objects.ts';
import { parseAddress } from '../kernel/address.ts';
import { parseDuration } from '../settings/durations.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { FeatureGates, Release } from '../kube-proxy/releases.ts';
import { isGateOn } from './feature-gates.ts';
import type { KubeProxyConfig, RawSyncPeriods } from './schemas/kube-proxy-configuration.ts';
import { quote } from './wording.ts';

/** What is wrong with a field of a configuration: kube-proxy does not start with it. */
export interface StartFault {
  readonly path: FieldPath;
  readonly code: string;
  readonly text: string;
}

const mostInt32 = 2 ** 31 - 1;

/**
 * Finds what keeps kube-proxy v1.36.3 from starting in the fields that shape no rule
 * (pkg/proxy/apis/config/validation, after the defaults).
 */
export function checkStart(
  config: KubeProxyConfig,
  mode: ProxySettings['mode'],
  gates: FeatureGates,
  release: Release,
): readonly StartFault[] {
  return [
    ...checkSyncPeriods(config, mode),
    ...checkConfigSyncPeriod(config.configSyncPeriod),
    ...checkServerAddress('healthzBindAddress', config.healthzBindAddress),
    ...checkServerAddress('metricsBindAddress', config.metricsBindAddress),
    ...checkHiddenMetrics(config.showHiddenMetricsForVersion),
    ...checkBurst(config.clientConnection?.burst),
    ...checkLogging(config.logging, (gate) => isGateOn(gate, gates, release)),
  ];
}

/** Only those of the mode that is used count. */
function checkSyncPeriods(config: KubeProxyConfig, mode: ProxySettings['mode']): readonly StartFault[] {
  const periods: RawSyncPeriods = config[mode] ?? {};
  const faults: StartFault[] = [];
  const read = (field: keyof RawSyncPeriods, fallback: number): number => {
    const { seconds, fault } = readPeriod([mode, field], periods[field]);
    if (fault) faults.push(fault);
    return seconds || fallback;
  };
  const period = read('syncPeriod', 30);
  const least = read('minSyncPeriod', modeFacts[mode].minSyncPeriod);
  if (faults.length > 0 || least <= period) return faults;
  const path = [mode, periods.syncPeriod ? 'syncPeriod' : 'minSyncPeriod'];
  const shown = periods.syncPeriod ? quote(periods.syncPeriod) : `${period}s, its default`;
  const than = periods.minSyncPeriod ? quote(periods.minSyncPeriod) : `${least}s, its default`;
  const text = `kube-proxy does not start: syncPeriod is ${shown}, and minSyncPeriod is longer: ${than}`;
  return [{ path, code: 'bad-sync-period', text }];
}

function checkConfigSyncPeriod(value: string | null | undefined): readonly StartFault[] {
  const { fault } = readPeriod(['configSyncPeriod'], value);
  return fault ? [fault] : [];
}

/** Seconds; 0 for what is not set or wrong. */
function readPeriod(
  path: readonly [...string[], string],
  value: string | null | undefined,
): { readonly seconds: number; readonly fault?: StartFault } {
  if (!value) return { seconds: 0 };
  const seconds = parseDuration(value);
  const name = path[path.length - 1] ?? '';
  if (seconds === undefined) {
    const text = `${name} is ${quote(value)}: write a duration such as 15m0s or 30s`;
    return { seconds: 0, fault: { path, code: 'bad-duration', text } };
  }
  if (seconds >= 0) return { seconds };
  const text = `kube-proxy does not start: ${name} is ${quote(value)}, and must not be negative`;
  return { seconds: 0, fault: { path, code: 'bad-sync-period', text } };
}

/** An address alone gets kube-proxy's port; '' is the default. */
function checkServerAddress(
  field: 'healthzBindAddress' | 'metricsBindAddress',
  value: string | null | undefined,
): readonly StartFault[] {
  if (!value || parseAddress(value)) return [];
  const fault = (why: string): readonly StartFault[] => {
    const text = `kube-proxy does not start: ${field} ${quote(value)} ${why}`;
    return [{ path: [field], code: 'bad-bind-address', text }];
  };
  const match = /^(?:\[([^[\]]*)\]|([^[\]:]*)):([^:[\]]*)$/.exec(value);
  if (!match) return fault('is not an IP:port: write it like 0.0.0.0:10256 or [::]:10256');
  const [, bracketed, plain, port = ''] = match;
  if (!parseAddress(bracketed ?? plain ?? ''))
    return fault('has no IP address before the port: host names are not taken');
  const number = /^[-+]?\d{1,6}$/.test(port) ? Number(port) : 0;
  return number >= 1 && number <= 65535 ? [] : fault('has no port from 1 to 65535');
}

function checkHiddenMetrics(version: string | null | undefined): readonly StartFault[] {
  if (!version || version === '1.35') return [];
  const text = `kube-proxy v1.36.3 does not start: showHiddenMetricsForVersion is ${quote(version)}, and only 1.35 is taken`;
  return [{ path: ['showHiddenMetricsForVersion'], code: 'bad-metrics-version', text }];
}

function checkBurst(burst: number | null | undefined): readonly StartFault[] {
  if (burst === null || burst === undefined || (burst >= 0 && burst <= mostInt32)) return [];
  const text = `kube-proxy does not start: burst is ${burst}: write a number from 0 up`;
  return [{ path: ['clientConnection', 'burst'], code: 'bad-number', text }];
}

function checkLogging(logging: KubeProxyConfig['logging'], isOn: (gate: string) => boolean): readonly StartFault[] {
  if (!logging) return [];
  const { format, flushFrequency, verbosity, vmodule, options } = logging;
  const faults: StartFault[] = [];
  const refuse = (path: FieldPath, why: string): void => {
    const text = `kube-proxy does not start: ${why}`;
    faults.push({ path: ['logging', ...path], code: 'bad-logging', text });
  };
  const isText = !format || format === 'text';
  if (!isText && format !== 'json') refuse(['format'], `format is ${quote(format)}: write text or json`);
  if (format === 'json' && !isOn('LoggingBetaOptions')) {
    refuse(['format'], 'format json needs the feature gate LoggingBetaOptions');
  }
  if (isNegative(flushFrequency)) refuse(['flushFrequency'], 'flushFrequency must not be negative');
  if (isNoVerbosity(verbosity)) refuse(['verbosity'], `verbosity ${verbosity} is not a number from 0 to ${mostInt32}`);
  if (vmodule && vmodule.length > 0 && !isText) refuse(['vmodule'], `vmodule goes with format text only`);
  for (const [i, { filePattern, verbosity: level }] of (vmodule ?? []).entries()) {
    if (!filePattern || /[=,]/.test(filePattern)) {
      refuse(['vmodule', i], 'filePattern must not be empty, nor hold an equals sign or a comma');
    }
    if (isNoVerbosity(level)) refuse(['vmodule', i], `verbosity ${level} is not a number from 0 to ${mostInt32}`);
  }
  if (isOn('LoggingAlphaOptions')) return faults;
  for (const kind of ['text', 'json'] as const) {
    const { splitStream, infoBufferSize } = options?.[kind] ?? {};
    const path = ['options', kind];
    if (splitStream) refuse([...path, 'splitStream'], 'splitStream needs the feature gate LoggingAlphaOptions');
    // A quantity: "0", "0k" and "0.0" are nothing.
    if (/[1-9]/.test(String(infoBufferSize ?? 0))) {
      refuse([...path, 'infoBufferSize'], 'infoBufferSize needs the feature gate LoggingAlphaOptions');
    }
  }
  return faults;
}

/** Nanoseconds, or a duration as Go writes it. */
function isNegative(value: number | string | null | undefined): boolean {
  if (typeof value === 'number') return value < 0;
  return value ? (parseDuration(value) ?? -1) < 0 : false;
}

function isNoVerbosity(value: number | null | undefined): boolean {
  return value !== null && value !== undefined && (value < 0 || value > mostInt32);
}
