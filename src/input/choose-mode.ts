import type { ArgumentsOf } from '../diagnostics/codes.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { ProxySettings, Sourced } from '../cluster/objects.ts';
import { isModeOf, proxyModes } from '../kube-proxy/modes.ts';
import type { Release } from '../kube-proxy/releases.ts';
import type { KubeProxyConfig } from './schemas/kube-proxy-configuration.ts';

/** The mode to compile for; with an error, it is none that was asked for. */
export interface ModeChoice {
  readonly mode: ProxySettings['mode'];
  readonly error?: Diagnostic;
  /** Which mode was taken and why, where nothing names one. */
  readonly note?: Diagnostic;
}

/**
 * The mode that the flag names, else the configuration. Where nothing does, it is kube-proxy's default, but ipvs where
 * there is no configuration at all.
 */
export function chooseMode(
  flag: string | undefined,
  config: Sourced<KubeProxyConfig> | undefined,
  release: Release,
): ModeChoice {
  if (flag) return readMode(flag, '--proxy-mode', undefined, release);
  const place = config?.source.place(['mode']);
  if (config?.object.mode) return readMode(config.object.mode, 'mode', place, release);
  const isConfigured = config !== undefined;
  return { mode: isConfigured ? 'iptables' : 'ipvs', note: diagnose('default-mode', { isConfigured }, place) };
}

function readMode(value: string, name: string, place: Diagnostic['place'], release: Release): ModeChoice {
  const known = proxyModes.find((mode) => mode === value);
  const refuse = (details: ArgumentsOf<'bad-mode'>): ModeChoice => {
    return { mode: known ?? 'ipvs', error: diagnose('bad-mode', details, place) };
  };
  if (known) {
    return isModeOf(known, release)
      ? { mode: known }
      : refuse({ problem: 'not-in-release', name, mode: known, release });
  }
  switch (value) {
    case 'userspace':
      return refuse({ problem: 'gone', name });
    case 'kernelspace':
      return refuse({ problem: 'windows', name });
    default:
      return refuse({ problem: 'unknown', name, value });
  }
}
