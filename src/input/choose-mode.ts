import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { ProxySettings, Sourced } from '../cluster/objects.ts';
import { isModeOf, modeFacts, proxyModes } from '../kube-proxy/modes.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import { newestRelease } from '../kube-proxy/releases.ts';
import type { Release } from '../kube-proxy/releases.ts';
import { listModes, proxyModeNames } from '../settings/mode.ts';
import type { KubeProxyConfig } from './schemas/kube-proxy-configuration.ts';
import { quote } from './wording.ts';

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
  const text = config
    ? "mode iptables, kube-proxy's default: the configuration names none (--proxy-mode does)"
    : 'mode ipvs: neither --proxy-mode nor a configuration (--config) names one';
  return { mode: config ? 'iptables' : 'ipvs', note: { severity: 'note', code: 'default-mode', text, place } };
}

function readMode(value: string, name: string, place: Diagnostic['place'], release: Release): ModeChoice {
  const known = proxyModes.find((mode) => mode === value);
  const refuse = (text: string): ModeChoice => {
    return { mode: known ?? 'ipvs', error: { severity: 'error', code: 'bad-mode', text, place } };
  };
  if (known) {
    const unknown = describeModeOfRelease(known, release);
    return unknown === undefined ? { mode: known } : refuse(`${name} is ${known}: ${unknown}`);
  }
  const instead = `compile for another mode with ${listModes((mode) => `--proxy-mode ${mode}`)}`;
  switch (value) {
    case 'userspace':
      return refuse(`${name} is userspace, which kube-proxy has not had since v1.26: it does not start; ${instead}`);
    case 'kernelspace':
      return refuse(`${name} is kernelspace, the mode of Windows nodes, which kpc does not compile for: ${instead}`);
    default:
      return refuse(`${name} is ${quote(value)}: write ${proxyModeNames}`);
  }
}

/** Why kpc cannot compile a mode by a release of Kubernetes; undefined where it can. */
export function describeModeOfRelease(mode: ProxyMode, release: Release): string | undefined {
  if (isModeOf(mode, release)) return undefined;
  const { title, since } = modeFacts[mode];
  return `kpc follows ${title} of Kubernetes ${since} to ${newestRelease}, not of ${release}: take one of them with --kubernetes-version, or another mode with --proxy-mode`;
}
