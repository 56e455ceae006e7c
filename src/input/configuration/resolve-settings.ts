import type { ProxySettings, Sourced } from '../../cluster/objects.ts';
import { isDeprecated } from '../../kube-proxy/announced.ts';
import {
  modeHistories,
  newestRelease,
  type FeatureGates,
  type Release,
  behavioursOf,
  isModeOf,
  startsIn,
} from '../../kube-proxy/releases.ts';
import { splitList, type SettingFault, type SettingSource } from '../../settings/setting.ts';
import { foundOf } from '../../base/findings/fields.ts';
import { type FindingCode, severityOf } from '../../base/findings/codes.ts';
import { diagnose, diagnoseFault, Tally, type Finding } from '../../base/findings/finding.ts';
import { proxyModeNames, proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import { type ProxyFlags, readSettings } from '../../settings/table.ts';
import type { KubeProxyConfig } from '../objects/shapes/kube-proxy-configuration.ts';
import { readFeatureGates } from './feature-gates.ts';

/** Settings with what is wrong with the values they came from; not to be used when there is an error. */
export interface ResolvedSettings {
  readonly settings: ProxySettings;
  readonly gates: FeatureGates;
  readonly diagnostics: readonly Finding[];
  /** Which mode was taken and why, if nothing names one; or that the one of the configuration ends. */
  readonly modeNote: Finding | undefined;
}

type Config = Sourced<KubeProxyConfig> | undefined;

export interface GateOptions {
  /** What becomes of gates with which kube-proxy does not start. */
  readonly refusedGates?: 'reported' | 'left-out' | undefined;
  /** Whether the mode among the flags is one that nobody named. */
  readonly isModeUnnamed?: boolean | undefined;
}

/** A release of kube-proxy, and the feature gates that its configuration sets. */
interface KubeProxy {
  readonly release: Release;
  readonly gates: FeatureGates;
}

/**
 * Settings from flags over the config file over kube-proxy's defaults (pkg/proxy/apis/config/v1alpha1 defaults.go,
 * checked as in pkg/proxy/apis/config/validation), except that the mode is IPVS if there is no configuration at all.
 */
export function resolveSettings(
  config: Config,
  flags: ProxyFlags & GateOptions,
  release: Release = newestRelease,
): ResolvedSettings {
  const faults: SettingFault[] = [];
  const tally = new Tally();
  const written: Omit<SettingSource, 'mode' | 'release' | 'gates'> = {
    flag: ({ key, kind }) => {
      // Callers of the library leave an option out by null, too, as a configuration does a field.
      const value = (flags as Readonly<Record<string, unknown>>)[key] ?? undefined;
      return (kind === 'list' && value !== undefined ? splitList(value as string) : value) as never;
    },
    field: ({ path }) => findField(config?.object, path) as never,
    hasSection: (name) => findField(config?.object, [name]) !== undefined,
    report: (fault) => {
      if (fault.path && config?.source.isDoubtful?.(fault.path)) return;
      // Flags are few, as a command line is short.
      const isAdmitted =
        fault.path === undefined || tally.admits(fault.code, severityOf<FindingCode>(fault.code, fault.arguments));
      if (isAdmitted) faults.push(fault);
    },
  };
  const gates = readFeatureGates(written, release, flags.refusedGates ?? 'reported');
  const chosen = chooseMode(flags.proxyMode, config, { release, gates });
  const { mode, errors } = chosen;
  const note = flags.isModeUnnamed ? diagnose('default-mode', { named: 'nothing' }) : chosen.note;
  const settings = { release, ...readSettings({ ...written, mode, release, gates }) };
  const diagnostics = faults.map((fault) => diagnoseFault(fault, fault.path && config?.source.place(fault.path)));
  const rest = config ? tally.rest(config.source.place([]).file) : [];
  return { settings, gates, diagnostics: [...errors, ...diagnostics, ...rest], modeNote: note };
}

/** Undefined if it is not set, or set to null. */
function findField(config: unknown, path: readonly string[]): unknown {
  let value = config;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value ?? undefined;
}

/** The mode to compile for; with errors, another than was asked for. */
interface ModeChoice {
  readonly mode: ProxyMode;
  readonly errors: readonly Finding[];
  readonly note?: Finding;
}

/**
 * The mode that the flag names, else the configuration. If neither does, it is kube-proxy's default, but IPVS if there
 * is no configuration at all. An empty flag is kube-proxy's own default.
 */
function chooseMode(flag: string | undefined, config: Config, kubeProxy: KubeProxy): ModeChoice {
  const place = config?.source.place(['mode']);
  if (flag) return readMode(flag, '--proxy-mode', undefined, kubeProxy);
  if (config?.object.mode) {
    const read = readMode(config.object.mode, 'mode', place, kubeProxy);
    const ends = modeHistories[read.mode].needs === 'ipvs-mode' && isDeprecated('ipvs-mode', kubeProxy.release);
    return ends && read.errors.length === 0 ? { ...read, note: diagnose('ipvs-ends', {}, place) } : read;
  }
  const named = flag === '' ? 'empty-flag' : config === undefined ? 'nothing' : 'configuration';
  const mode = named === 'nothing' ? 'ipvs' : 'iptables';
  const note = diagnose('default-mode', { named }, place);
  return { mode, errors: checkMode(mode, kubeProxy, undefined, place), note };
}

/** What kube-proxy calls its modes on Windows. */
const windowsModes: ReadonlySet<string> = new Set(['kernelspace', 'winuserspace']);

function readMode(value: string, name: string, place: Finding['place'], kubeProxy: KubeProxy): ModeChoice {
  const known = proxyModes.find((mode) => mode === value);
  if (known) return { mode: known, errors: checkMode(known, kubeProxy, name, place) };
  const because = windowsModes.has(value) ? { because: 'a bundle is for a Linux host' } : {};
  const details = { field: name, found: foundOf(value), expected: proxyModeNames, ...because };
  return { mode: 'ipvs', errors: [diagnose('bad-value', details, place)] };
}

/** Why the kube-proxy does not start in a mode, or not as kpc knows it. `name` is the flag or field that names the mode. */
export function checkMode(
  mode: ProxyMode,
  { release, gates }: KubeProxy,
  name?: string,
  place?: Finding['place'],
): readonly Finding[] {
  const isKnown = isModeOf(mode, release);
  if (isKnown && startsIn(mode, behavioursOf(release, gates))) return [];
  return [diagnose('bad-mode', { problem: isKnown ? 'gate-off' : 'not-in-release', name, mode, release }, place)];
}
