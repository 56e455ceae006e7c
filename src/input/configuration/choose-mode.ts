import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { ProxySettings, Sourced } from '../../cluster/objects.ts';
import { proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import { behavioursOf, isModeOf, startsIn, type FeatureGates, type Release } from '../../kube-proxy/releases.ts';
import type { KubeProxyConfig } from '../objects/schemas/kube-proxy-configuration.ts';

/** The mode to compile for; with an error, it is none that was asked for. */
export interface ModeChoice {
  readonly mode: ProxySettings['mode'];
  readonly error?: Diagnostic;
  /** Which mode was taken and why, where nothing names one. */
  readonly note?: Diagnostic;
}

/**
 * The mode that the flag names, else the configuration. If neither does, it is kube-proxy's default, but ipvs if there is
 * no configuration at all. An empty flag is kube-proxy's own default.
 */
export function chooseMode(
  flag: string | undefined,
  config: Sourced<KubeProxyConfig> | undefined,
  release: Release,
  gates: FeatureGates,
): ModeChoice {
  const kubeProxy = { release, gates };
  if (flag) return readMode(flag, '--proxy-mode', undefined, kubeProxy);
  const place = config?.source.place(['mode']);
  if (config?.object.mode) return readMode(config.object.mode, 'mode', place, kubeProxy);
  const named = flag === '' ? 'empty-flag' : config === undefined ? 'nothing' : 'configuration';
  const mode = named === 'nothing' ? 'ipvs' : 'iptables';
  const note = diagnose('default-mode', { named }, place);
  const [error] = checkMode(mode, kubeProxy, undefined, place);
  return { mode, note, ...(error ? { error } : {}) };
}

/** A release of kube-proxy, and the feature gates that its configuration sets. */
interface KubeProxy {
  readonly release: Release;
  readonly gates: FeatureGates;
}

/** Why the kube-proxy does not start in a mode, or not as kpc knows it. `name` is the flag or field that names the mode. */
export function checkMode(
  mode: ProxyMode,
  { release, gates }: KubeProxy,
  name?: string,
  place?: Diagnostic['place'],
): readonly Diagnostic[] {
  if (!isModeOf(mode, release))
    return [diagnose('bad-mode', { problem: 'not-in-release', name, mode, release }, place)];
  if (startsIn(mode, behavioursOf(release, gates))) return [];
  return [diagnose('bad-mode', { problem: 'gate-off', name, mode, release }, place)];
}

function readMode(value: string, name: string, place: Diagnostic['place'], kubeProxy: KubeProxy): ModeChoice {
  const known = proxyModes.find((mode) => mode === value);
  if (known) {
    const [error] = checkMode(known, kubeProxy, name, place);
    return { mode: known, ...(error ? { error } : {}) };
  }
  return { mode: 'ipvs', error: diagnose('bad-mode', { problem: 'unknown', name, value }, place) };
}
