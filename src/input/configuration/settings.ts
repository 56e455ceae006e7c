import { diagnoseFault, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { ProxySettings, Sourced } from '../../cluster/objects.ts';
import { newestRelease, type FeatureGates, type Release } from '../../kube-proxy/releases.ts';
import { splitList, type SettingFault, type SettingSource } from '../../kube-proxy/settings/setting.ts';
import type { ProxyFlags } from '../../kube-proxy/settings/table.ts';
import { readSettings } from '../../kube-proxy/settings/values.ts';
import { chooseMode } from './choose-mode.ts';
import { readFeatureGates } from './feature-gates.ts';
import type { KubeProxyConfig } from '../objects/schemas/kube-proxy-configuration.ts';

/** Settings with what is wrong with the values they came from; not to be used when there is an error. */
export interface ResolvedSettings {
  readonly settings: ProxySettings;
  readonly gates: FeatureGates;
  readonly diagnostics: readonly Diagnostic[];
  /** Which mode was taken and why, where nothing names one. */
  readonly modeNote: Diagnostic | undefined;
}

type Config = Sourced<KubeProxyConfig> | undefined;

/**
 * Settings from flags over the config file over kube-proxy's defaults (pkg/proxy/apis/config/v1alpha1 defaults.go,
 * checked as in pkg/proxy/apis/config/validation), but that the mode is ipvs where there is no configuration at all.
 */
export function resolveSettings(config: Config, flags: ProxyFlags, release: Release = newestRelease): ResolvedSettings {
  const faults: SettingFault[] = [];
  const written = writtenSource(config?.object, flags, (fault) => faults.push(fault));
  const gates = readFeatureGates(written, release);
  const { mode, error, note } = chooseMode(flags.proxyMode, config, release, gates);
  const settings = { release, ...readSettings({ ...written, mode, release, gates }) };
  const diagnostics = faults.map((fault) => placeFault(fault, config));
  return { settings, gates, diagnostics: [...(error ? [error] : []), ...diagnostics], modeNote: note };
}

/** Where flags and fields are looked up: by the name of a flag, and by the path of a field. */
function writtenSource(
  config: KubeProxyConfig | undefined,
  flags: ProxyFlags,
  report: (fault: SettingFault) => void,
): Omit<SettingSource, 'mode' | 'release' | 'gates'> {
  return {
    flag: ({ key, kind }) => {
      const value = (flags as Readonly<Record<string, unknown>>)[key];
      return (kind === 'list' && value !== undefined ? splitList(value as string) : value) as never;
    },
    field: ({ path }) => findField(config, path) as never,
    hasSection: (name) => findField(config, [name]) !== undefined,
    report,
  };
}

/** Undefined where it is not set, be it with null. */
function findField(config: object | undefined, path: readonly string[]): unknown {
  let value: unknown = config;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value ?? undefined;
}

function placeFault(fault: SettingFault, config: Config): Diagnostic {
  return diagnoseFault(fault, fault.path && config?.source.place(fault.path));
}
