import { diagnose, isError, diagnoseFault, Tally, type Finding, wrongValue } from '../../base/findings/finding.ts';
import type { Sourced, ProxySettings } from '../../cluster/objects.ts';
import { readUnit, type ClusterFacts } from './cluster-config.ts';
import { placeAt } from '../documents/document.ts';
import type { KubeProxyConfig } from '../objects/shapes/kube-proxy-configuration.ts';
import { sortDiagnostics } from '../sort-diagnostics.ts';
import { TextFile } from '../documents/text-file.ts';
import { collectFiles } from '../read-inputs.ts';
import { findGateFaults, type GateFault } from '../../kube-proxy/feature-gates.ts';
import type { ModeOfRelease } from '../../base/findings/settings.ts';
import {
  modeHistories,
  newestRelease,
  behavioursOf,
  isModeOf,
  startsIn,
  type FeatureGates,
  type Release,
} from '../../kube-proxy/releases.ts';
import { featureGatesField, featureGatesFlag } from '../../settings/feature-gates.ts';
import {
  onCommandLine,
  refuseSetting,
  refuseValue,
  readSwitch,
  splitList,
  type SettingSource,
  type SettingFault,
} from '../../settings/setting.ts';
import { isDeprecated } from '../../kube-proxy/announced.ts';
import { severityOf, type FindingCode } from '../../base/findings/codes.ts';
import { proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import { readSettings, type ProxyFlags } from '../../settings/table.ts';

/** The file that --config names. If `config` is undefined, a diagnostic says why. */
export interface ConfigFile {
  readonly config: Sourced<KubeProxyConfig> | undefined;
  readonly facts: readonly ClusterFacts[];
  readonly diagnostics: readonly Finding[];
  readonly file: TextFile | undefined;
}

/** Reads a KubeProxyConfiguration, a ConfigMap that holds one under any key, or kube-proxy's systemd unit. */
export function readConfigText(file: TextFile | Finding): ConfigFile {
  if (!(file instanceof TextFile)) return { config: undefined, facts: [], diagnostics: [file], file: undefined };
  const read = readConfig(file);
  return { ...read, diagnostics: sortDiagnostics(read.diagnostics), file };
}

export function readConfig(file: TextFile): Omit<ConfigFile, 'file'> {
  const unit = readUnit(file.text, placeAt(file, 0));
  if (unit === 'unknown')
    return { config: undefined, facts: [], diagnostics: [diagnose('no-config', {}, placeAt(file, 0))] };
  if (unit) return { config: undefined, facts: [unit], diagnostics: [] };
  const { configs, facts, diagnostics } = collectFiles([file], { areConfigs: true });
  const [config, ...others] = configs;
  for (const { source } of others) {
    diagnostics.push(diagnose('duplicate-configuration', {}, source.place([])));
  }
  const isExplained = config ?? (diagnostics.some(isError) || facts.some(({ configures }) => configures));
  if (!isExplained) {
    const place = diagnostics.find(({ code }) => code === 'unknown-kind')?.place ?? placeAt(file, 0);
    diagnostics.push(diagnose('no-config', {}, place));
  }
  return { config, facts, diagnostics };
}

/** Reports whether a file is a configuration, as for --config, and not manifests that come with one. */
export function isConfiguration(file: TextFile): boolean {
  if (readUnit(file.text, placeAt(file, 0))) return true;
  const { config, facts } = readConfig(file);
  if (!config && !facts.some(({ configures }) => configures)) return false;
  return collectFiles([file], {}).services.length === 0;
}

type GatesSource = Pick<SettingSource, 'flag' | 'field' | 'report'>;

/** Returns the configuration's gates, overridden by the flag's. Reports or leaves out gates with which this release does not start. */
function readFeatureGates(source: GatesSource, release: Release, refused: 'reported' | 'left-out'): FeatureGates {
  const configured = Object.entries(source.field(featureGatesField) ?? {});
  const flagged = new Map((source.flag(featureGatesFlag) ?? []).flatMap((text) => parseGateSetting(source, text)));
  const gates = new Map([...configured.map(([name, isOn]) => [name, isOn ?? false] as const), ...flagged]);
  const faults = findGateFaults(gates, release);
  if (refused === 'left-out') return withoutFaults(gates, faults);
  for (const fault of faults) {
    const gate = culpritsOf(fault).find((name) => gates.has(name)) ?? '';
    const place = flagged.has(gate) ? onCommandLine : { path: [...featureGatesField.path, gate] };
    refuseSetting(source, place, 'bad-feature-gate', fault);
  }
  return gates;
}

function culpritsOf(fault: GateFault): readonly string[] {
  if (fault.problem !== 'needs') return [fault.gate];
  return [...fault.unmet.flatMap(({ gate, needs }) => [gate, ...needs]), 'AllAlpha', 'AllBeta'];
}

function withoutFaults(gates: FeatureGates, faults: readonly GateFault[]): FeatureGates {
  const out = new Set(faults.flatMap(culpritsOf));
  return new Map([...gates].filter(([gate]) => !out.has(gate)));
}

/** Parses "Name=true", with blanks around both allowed. Returns an empty list for a blank or wrong text, and reports a wrong one. */
function parseGateSetting(source: GatesSource, text: string): readonly (readonly [name: string, isOn: boolean])[] {
  if (text.trim() === '') return [];
  const [name = '', ...values] = text.split('=');
  const isOn = readSwitch(values.join('=').trim());
  if (values.length > 0 && isOn !== undefined) return [[name.trim(), isOn]];
  refuseValue(source, { name: featureGatesFlag.name, value: text, path: undefined }, { form: 'gate' });
  return [];
}

/** The settings must not be used if a diagnostic is an error. */
export interface ResolvedSettings {
  readonly settings: ProxySettings;
  readonly gates: FeatureGates;
  readonly diagnostics: readonly Finding[];
  /** Says which mode was chosen and why, if nothing names a mode; or says that a later release will remove the configured mode. */
  readonly modeNote: Finding | undefined;
}

type Config = Sourced<KubeProxyConfig> | undefined;

export interface GateOptions {
  /** What to do with gates with which kube-proxy does not start. */
  readonly refusedGates?: 'reported' | 'left-out' | undefined;
  /** Set if the mode flag did not come from the user. */
  readonly isModeUnnamed?: boolean | undefined;
  /** Set if this flag, or --config, alone makes one side of a comparison. */
  readonly sideOf?: ModeOfRelease['side'];
}

interface KubeProxy {
  readonly release: Release;
  readonly gates: FeatureGates;
  readonly side?: ModeOfRelease['side'];
}

/**
 * Resolves the settings: flags override the config file, which overrides kube-proxy's defaults (pkg/proxy/apis/config/v1alpha1 defaults.go,
 * checked as in pkg/proxy/apis/config/validation). Without any configuration, the mode is IPVS.
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
      // Callers of the library may pass null for an unset option, as a configuration does for a field.
      const value = (flags as Readonly<Record<string, unknown>>)[key] ?? undefined;
      return (kind === 'list' && value !== undefined ? splitList(value as string) : value) as never;
    },
    field: ({ path }) => valueAtPath(config?.object, path) as never,
    hasSection: (name) => valueAtPath(config?.object, [name]) !== undefined,
    report: (fault) => {
      if (fault.path && config?.source.isDoubtful?.(fault.path)) return;
      // A command line is short, so faults in flags are not limited.
      const isAdmitted =
        fault.path === undefined || tally.admits(fault.code, severityOf<FindingCode>(fault.code, fault.arguments));
      if (isAdmitted) faults.push(fault);
    },
  };
  const gates = readFeatureGates(written, release, flags.refusedGates ?? 'reported');
  const chosen = chooseMode(flags.proxyMode, config, { release, gates, side: flags.sideOf });
  const { mode, errors } = chosen;
  const note = flags.isModeUnnamed ? diagnose('default-mode', { named: 'nothing' }) : chosen.note;
  const settings = { release, ...readSettings({ ...written, mode, release, gates }) };
  const diagnostics = faults.map((fault) => diagnoseFault(fault, fault.path && config?.source.place(fault.path)));
  const rest = config ? tally.rest(config.source.place([]).file) : [];
  return { settings, gates, diagnostics: [...errors, ...diagnostics, ...rest], modeNote: note };
}

function valueAtPath(config: unknown, path: readonly string[]): unknown {
  let value = config;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value ?? undefined;
}

/** The mode in use, which may not be the requested one if there are errors. */
interface ModeChoice {
  readonly mode: ProxyMode;
  readonly errors: readonly Finding[];
  readonly note?: Finding;
}

/**
 * Uses the flag's mode, or else the configuration's. If neither names a mode: IPVS without any configuration or flag, otherwise
 * kube-proxy's default.
 */
function chooseMode(flag: string | undefined, config: Config, kubeProxy: KubeProxy): ModeChoice {
  const place = config?.source.place(['mode']);
  if (flag) return readMode(flag, kubeProxy.side === 'mode' ? undefined : '--proxy-mode', undefined, kubeProxy);
  if (config?.object.mode) {
    const read = readMode(config.object.mode, 'mode', place, kubeProxy);
    const ends = modeHistories[read.mode].needs === 'ipvs-mode' && isDeprecated('ipvs-mode', kubeProxy.release);
    return ends && read.errors.length === 0 ? { ...read, note: diagnose('ipvs-ends', {}, place) } : read;
  }
  const named = config ? 'configuration' : flag === '' ? 'empty-flag' : 'nothing';
  const mode = named === 'nothing' ? 'ipvs' : 'iptables';
  const note = diagnose('default-mode', { named }, place);
  return { mode, errors: checkMode(mode, kubeProxy, undefined, place), note };
}

const windowsModes: ReadonlySet<string> = new Set(['kernelspace', 'winuserspace']);

function readMode(value: string, name: string | undefined, place: Finding['place'], kubeProxy: KubeProxy): ModeChoice {
  const known = proxyModes.find((mode) => mode === value);
  if (known) return { mode: known, errors: checkMode(known, kubeProxy, name, place) };
  const form = windowsModes.has(value) ? 'linux-mode' : 'mode';
  return {
    mode: 'ipvs',
    errors: [wrongValue(name ?? 'mode', value, form, place)],
  };
}

/**
 * Returns why kube-proxy would not start in a mode, or might behave differently from what kpc computes. `name` is the flag or field that
 * names the mode.
 */
export function checkMode(
  mode: ProxyMode,
  { release, gates, side }: KubeProxy,
  name?: string,
  place?: Finding['place'],
): readonly Finding[] {
  const isKnown = isModeOf(mode, release);
  if (isKnown && startsIn(mode, behavioursOf(release, gates))) return [];
  return [diagnose('bad-mode', { problem: isKnown ? 'gate-off' : 'not-in-release', name, mode, release, side }, place)];
}
