import type { ArgumentsOf } from '../diagnostics/codes.ts';
import type { Fault } from '../diagnostics/diagnostic.ts';
import type { FieldPath, ProxySettings } from '../cluster/objects.ts';
import { parseAddress } from '../kernel/address.ts';
import { parseDuration } from '../kube-proxy/settings/durations.ts';
import { modeFacts, proxyModes } from '../kube-proxy/modes.ts';
import type { KubeProxyConfig, RawSyncPeriods } from './schemas/kube-proxy-configuration.ts';

/** What is wrong with a field of a configuration: kube-proxy does not start with it. */
export type StartFault = Fault & { readonly path: FieldPath };

/**
 * Finds what keeps kube-proxy from starting in the fields that shape no rule
 * (pkg/proxy/apis/config/validation, after the defaults).
 */
export function checkStart(config: KubeProxyConfig, mode: ProxySettings['mode']): readonly StartFault[] {
  return [
    ...checkSyncPeriods(config, mode),
    ...checkConfigSyncPeriod(config.configSyncPeriod),
    ...checkServerAddress('healthzBindAddress', config.healthzBindAddress),
    ...checkServerAddress('metricsBindAddress', config.metricsBindAddress),
  ];
}

/** Only those of the mode that is used count, but all must be durations: the schema does not know how long those may be. */
function checkSyncPeriods(config: KubeProxyConfig, mode: ProxySettings['mode']): readonly StartFault[] {
  const periods: RawSyncPeriods = config[mode] ?? {};
  const faults: StartFault[] = [];
  for (const other of proxyModes.filter((each) => each !== mode)) {
    for (const field of ['syncPeriod', 'minSyncPeriod'] as const) {
      const { fault } = readPeriod([other, field], config[other]?.[field]);
      if (fault?.code === 'bad-duration') faults.push(fault);
    }
  }
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
