import type { ArgumentsOf } from '../diagnostics/codes.ts';
import type { Fault } from '../diagnostics/diagnostic.ts';
import type { FieldPath, ProxySettings } from '../cluster/objects.ts';
import { parseAddress } from '../kernel/address.ts';
import { parseDuration } from '../settings/durations.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { FeatureGates, Release } from '../kube-proxy/releases.ts';
import { isGateOn } from './feature-gates.ts';
import type { KubeProxyConfig, RawSyncPeriods } from './schemas/kube-proxy-configuration.ts';

/** What is wrong with a field of a configuration: kube-proxy does not start with it. */
export type StartFault = Fault & { readonly path: FieldPath };

const mostInt32 = 2 ** 31 - 1;

/**
 * Finds what keeps kube-proxy from starting in the fields that shape no rule
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
    ...checkHiddenMetrics(config.showHiddenMetricsForVersion, release),
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
  const written = { period: periods.syncPeriod || period, least: periods.minSyncPeriod || least };
  return [{ path, code: 'bad-sync-period', arguments: { problem: 'shorter-than-least', ...written } }];
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
    return { seconds: 0, fault: { path, code: 'bad-duration', arguments: { problem: 'no-duration', name, value } } };
  }
  if (seconds >= 0) return { seconds };
  return { seconds: 0, fault: { path, code: 'bad-sync-period', arguments: { problem: 'negative', name, value } } };
}

/** An address alone gets kube-proxy's port; '' is the default. */
function checkServerAddress(
  field: 'healthzBindAddress' | 'metricsBindAddress',
  value: string | null | undefined,
): readonly StartFault[] {
  if (!value || parseAddress(value)) return [];
  const fault = (problem: ArgumentsOf<'bad-bind-address'>['problem']): readonly StartFault[] => {
    return [{ path: [field], code: 'bad-bind-address', arguments: { problem, name: field, value } }];
  };
  const match = /^(?:\[([^[\]]*)\]|([^[\]:]*)):([^:[\]]*)$/.exec(value);
  if (!match) return fault('form');
  const [, bracketed, plain, port = ''] = match;
  if (!parseAddress(bracketed ?? plain ?? '')) return fault('no-address');
  const number = /^[-+]?\d{1,6}$/.test(port) ? Number(port) : 0;
  return number >= 1 && number <= 65535 ? [] : fault('no-port');
}

/** Metrics that the release before hid can be shown (ValidateShowHiddenMetricsVersion). */
function checkHiddenMetrics(version: string | null | undefined, release: Release): readonly StartFault[] {
  const taken = release.replace(/\d+$/, (minor) => `${Number(minor) - 1}`);
  if (!version || version === taken) return [];
  const details = { value: version, taken, release };
  return [{ path: ['showHiddenMetricsForVersion'], code: 'bad-metrics-version', arguments: details }];
}

function checkBurst(burst: number | null | undefined): readonly StartFault[] {
  if (burst === null || burst === undefined || (burst >= 0 && burst <= mostInt32)) return [];
  const path = ['clientConnection', 'burst'];
  return [{ path, code: 'bad-number', arguments: { problem: 'burst', value: burst } }];
}

function checkLogging(logging: KubeProxyConfig['logging'], isOn: (gate: string) => boolean): readonly StartFault[] {
  if (!logging) return [];
  const { format, flushFrequency, verbosity, vmodule, options } = logging;
  const faults: StartFault[] = [];
  const refuse = (path: FieldPath, details: ArgumentsOf<'bad-logging'>): void => {
    faults.push({ path: ['logging', ...path], code: 'bad-logging', arguments: details });
  };
  const needGate = (path: FieldPath, what: string, gate: string): void => {
    refuse(path, { problem: 'needs-gate', what, gate });
  };
  const isText = !format || format === 'text';
  if (!isText && format !== 'json') refuse(['format'], { problem: 'format', value: format });
  if (format === 'json' && !isOn('LoggingBetaOptions')) {
    needGate(['format'], 'format json', 'LoggingBetaOptions');
  }
  if (isNegative(flushFrequency)) refuse(['flushFrequency'], { problem: 'negative-flush' });
  if (isNoVerbosity(verbosity)) refuse(['verbosity'], { problem: 'verbosity', value: verbosity });
  if (vmodule && vmodule.length > 0 && !isText) refuse(['vmodule'], { problem: 'vmodule-format' });
  for (const [i, { filePattern, verbosity: level }] of (vmodule ?? []).entries()) {
    if (!filePattern || /[=,]/.test(filePattern)) {
      refuse(['vmodule', i], { problem: 'file-pattern' });
    }
    if (isNoVerbosity(level)) refuse(['vmodule', i], { problem: 'verbosity', value: level });
  }
  if (isOn('LoggingAlphaOptions')) return faults;
  for (const kind of ['text', 'json'] as const) {
    const { splitStream, infoBufferSize } = options?.[kind] ?? {};
    const path = ['options', kind];
    if (splitStream) needGate([...path, 'splitStream'], 'splitStream', 'LoggingAlphaOptions');
    // A quantity: "0", "0k" and "0.0" are nothing.
    if (/[1-9]/.test(String(infoBufferSize ?? 0))) {
      needGate([...path, 'infoBufferSize'], 'infoBufferSize', 'LoggingAlphaOptions');
    }
  }
  return faults;
}

/** Nanoseconds, or a duration as Go writes it. */
function isNegative(value: number | string | null | undefined): boolean {
  if (typeof value === 'number') return value < 0;
  return value ? (parseDuration(value) ?? -1) < 0 : false;
}

function isNoVerbosity(value: number | null | undefined): value is number {
  return value !== null && value !== undefined && (value < 0 || value > mostInt32);
}
