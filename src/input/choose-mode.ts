import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { ProxySettings, Sourced } from '../cluster/objects.ts';
import { compiledModes } from '../kube-proxy/modes.ts';
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
export function chooseMode(flag: string | undefined, config: Sourced<KubeProxyConfig> | undefined): ModeChoice {
  if (flag) return readMode(flag, '--proxy-mode', undefined);
  const place = config?.source.place(['mode']);
  if (config?.object.mode) return readMode(config.object.mode, 'mode', place);
  const text = config
    ? "mode iptables, kube-proxy's default: the configuration names none (--proxy-mode does)"
    : 'mode ipvs: neither --proxy-mode nor a configuration (--config) names one';
  return { mode: config ? 'iptables' : 'ipvs', note: { severity: 'note', code: 'default-mode', text, place } };
}

function readMode(value: string, name: string, place: Diagnostic['place']): ModeChoice {
  const refuse = (text: string): ModeChoice => {
    return { mode: 'ipvs', error: { severity: 'error', code: 'bad-mode', text, place } };
  };
  const known = compiledModes.find((mode) => mode === value);
  if (known) return { mode: known };
  const instead = `compile for another mode with ${compiledModes.map((mode) => `--proxy-mode ${mode}`).join(' or ')}`;
  switch (value) {
    case 'nftables':
      return refuse(`${name} is nftables, which kpc does not compile yet: ${instead}`);
    case 'userspace':
      return refuse(`${name} is userspace, which kube-proxy has not had since v1.26: it does not start; ${instead}`);
    case 'kernelspace':
      return refuse(`${name} is kernelspace, the mode of Windows nodes, which kpc does not compile for: ${instead}`);
    default:
      return refuse(`${name} is ${quote(value)}: write ${compiledModes.join(' or ')}`);
  }
}
