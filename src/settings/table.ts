import { isObject } from '../base/json/check.ts';
import { isSameValue } from '../base/json/same-value.ts';
import { objectOf, type Schema, type Schemas, type Flat } from '../base/json/schema.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import { shapesRules, type Release } from '../kube-proxy/releases.ts';
import { conntrack } from './conntrack.ts';
import { featureGatesField, ignoresExternalIPs, nftablesLocalhostNodePorts } from './feature-gates.ts';
import { ipvs, portRange, udpIdleTimeout } from './ipvs-and-userspace.ts';
import { clusterCIDRs, detectLocal } from './local-traffic.ts';
import { masqueradeAll, masqueradeBit } from './masquerade.ts';
import {
  bindAddress,
  healthzBindAddress,
  hostnameOverride,
  mode,
  localhostNodePorts,
  nodePortAddresses,
} from './node.ts';
import { checkOtherFields, otherFields } from './other-fields.ts';
import { flagKey, type Flag, type OptionsOf } from './flag.ts';
import { lastName, readSwitch, splitList, type Setting, type SettingField, type SettingSource } from './setting.ts';

/** All settings of kube-proxy that affect rules, in the order of the manifest. */
const settingTable = {
  mode,
  hostnameOverride,
  bindAddress,
  healthzBindAddress,
  clusterCIDRs,
  detectLocal,
  nodePortAddresses,
  ignoresExternalIPs,
  nftablesLocalhostNodePorts,
  masqueradeAll,
  masqueradeBit,
  localhostNodePorts,
  portRange,
  udpIdleTimeout,
  ipvs,
  conntrack,
};

type AnySetting = Setting<unknown>;

interface SettingRows {
  readonly [name: string]: AnySetting | SettingRows;
}

type ValuesOf<Rows> = Flat<
  { readonly [K in keyof Rows as undefined extends SettingValueOf<Rows[K]> ? never : K]: SettingValueOf<Rows[K]> } & {
    readonly [K in keyof Rows as undefined extends SettingValueOf<Rows[K]> ? K : never]?: SettingValueOf<Rows[K]>;
  }
>;

type SettingValueOf<Row> = Row extends { readonly stored: Schema<infer T> } ? T : ValuesOf<Row>;

/** The values of all settings. Durations are in seconds. */
export type SettingValues = ValuesOf<typeof settingTable>;

type RowsIn<Rows> = {
  [K in keyof Rows]: Rows[K] extends { readonly stored: unknown } ? Rows[K] : RowsIn<Rows[K]>;
}[keyof Rows];

export type ProxyFlags = OptionsOf<RowsIn<typeof settingTable>['flags'][number]>;

export function listSettings(): readonly { readonly path: readonly string[]; readonly row: AnySetting }[] {
  const listed: { readonly path: readonly string[]; readonly row: AnySetting }[] = [];
  mapSettings((row, path) => listed.push({ path, row }));
  return listed;
}

/** Makes an object from the results of `make` for each setting. Leaves out undefined results. `join` combines the fields of a section. */
function mapSettings(
  make: (row: AnySetting, path: readonly string[]) => unknown,
  join: (fields: Readonly<Record<string, never>>) => unknown = (fields) => fields,
  rows: SettingRows = settingTable,
  above: readonly string[] = [],
): unknown {
  const entries = Object.entries(rows).map(([name, row]) => {
    const path = [...above, name];
    return [name, isRow(row) ? make(row, path) : mapSettings(make, join, row, path)] as const;
  });
  return join(
    Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Readonly<Record<string, never>>,
  );
}

function isRow(row: AnySetting | SettingRows): row is AnySetting {
  return 'defaultIn' in row;
}

function settingAt(settings: SettingValues, path: readonly string[]): unknown {
  return path.reduce<unknown>((parent, name) => (parent as Readonly<Record<string, unknown>>)[name], settings);
}

/**
 * Reads all settings. Flags override the configuration, and the configuration overrides defaults. Also reports other faults that keep
 * kube-proxy from starting.
 */
export function readSettings(source: SettingSource): SettingValues {
  checkOtherFields(source);
  return mapSettings((row) => row.read(source) ?? row.defaultIn(source.mode)) as SettingValues;
}

export function defaultSettings(chosen: ProxyMode): SettingValues {
  return mapSettings((row) => row.defaultIn(chosen)) as SettingValues;
}

/**
 * Returns `base` with the values that flags give in `own`. If a flag names another mode, each setting that has the default of the old mode
 * gets the default of the new mode.
 */
export function settingsOver(base: SettingValues, own: SettingValues, flags: ProxyFlags): SettingValues {
  const chosen = flags.proxyMode === undefined ? base.mode : own.mode;
  return mapSettings((row, path) => {
    if (row.flags.some((flag) => isGiven(flag, flags))) return settingAt(own, path);
    const value = settingAt(base, path);
    return isSameValue(value, row.defaultIn(base.mode)) ? row.defaultIn(chosen) : value;
  }) as SettingValues;
}

/** Returns flags, in kpc's syntax, for the settings that differ from the mode's defaults. Leaves out settings that need several flags. */
export function flagsOfSettings(
  settings: SettingValues & { readonly release: Release },
): Readonly<Record<string, string>> {
  const { mode: chosen, release } = settings;
  const written = listSettings().flatMap(({ path, row }) => {
    const value = settingAt(settings, path);
    const isDefault = path[0] !== 'mode' && isSameValue(row.defaultIn(chosen), value);
    const [flag, ...others] = row.flags;
    if (isDefault || !flag || others.length > 0) return [];
    const none = { field: () => undefined, hasSection: () => false, report: () => undefined, gates: new Map() };
    const text = [`${[value].flat().join(',')}`, `${String(value)}s`].find((each) => {
      const given = flag.kind === 'list' ? splitList(each) : each;
      const source = { ...none, mode: chosen, release, flag: () => given } as unknown as SettingSource;
      return isSameValue(row.read(source), value);
    });
    return text === undefined ? [] : [[flag.name, text] as const];
  });
  return Object.fromEntries(written);
}

/** Returns the flags of settings that a configuration does not set. Keeps the flag of a mapping, because it adds to the field. */
export function flagsBeside(flags: ProxyFlags, config: unknown): ProxyFlags {
  const isOpen = (value: unknown) => value === undefined || value === null || value === '' || isObject(value);
  const open = listSettings().flatMap(({ row }) =>
    row.fields.every((field) => isOpen(valueAt(field, config))) ? row.flags : [],
  );
  return Object.fromEntries(Object.entries(flags).filter(([name]) => open.some(({ key }) => key === name)));
}

function valueAt({ path }: SettingField, config: unknown): unknown {
  return path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), config);
}

/** Returns the fields that a configuration sets but that appear neither in a setting nor in a rule, such as metricsBindAddress. */
export function ownFields(config: unknown): Readonly<Record<string, unknown>> {
  const shown = new Set(['apiVersion', 'kind']);
  const own = [...otherFields, ...hostnameOverride.fields].filter(({ name }) => !shown.has(name));
  const fields = own.map((field) => [field.name, meant(valueAt(field, config))] as const);
  const gates = valueAt(featureGatesField, config);
  const ofGates = Object.entries(isObject(gates) ? gates : {}).flatMap(([name, isOn]) =>
    shapesRules(name) ? [] : [[`${featureGatesField.name}.${name}`, isOn ?? false] as const],
  );
  return Object.fromEntries([...fields, ...ofGates].filter(([, value]) => value !== undefined));
}

/** kube-proxy's flags for fields of another name (cmd/kube-proxy/app/options.go). */
const renamed: ReadonlyMap<string, string> = new Map([
  ['kubeconfig', 'clientConnection.kubeconfig'],
  ['kube-api-qps', 'clientConnection.qps'],
  ['kube-api-burst', 'clientConnection.burst'],
  ['profiling', 'enableProfiling'],
  ['v', 'logging.verbosity'],
]);

/** Returns what `ownFields` returns for a configuration, for kube-proxy's arguments. */
export function ownArguments(given: ReadonlyMap<string, string>): Readonly<Record<string, unknown>> {
  const named = new Map(otherFields.map(({ name, path }) => [flagKey(path.join('-')), name]));
  const gates = splitList(given.get('feature-gates') ?? '').map((gate) => gate.split('='));
  const config: Record<string, unknown> = {
    featureGates: Object.fromEntries(gates.map(([name = '', isOn = '']) => [name.trim(), readSwitch(isOn.trim())])),
  };
  for (const [flag, text] of given) {
    const [section = '', inside] = (renamed.get(flag) ?? named.get(flagKey(flag)) ?? '').split('.');
    const value = text === '' || Number.isNaN(Number(text)) ? (readSwitch(text) ?? text) : Number(text);
    const beside = config[section];
    config[section] = inside === undefined ? value : { ...(isObject(beside) ? beside : {}), [inside]: value };
  }
  return ownFields(config);
}

/** Returns a value without the parts that kube-proxy treats like unset fields. */
function meant(value: unknown): unknown {
  if (!isObject(value)) return value === null || value === '' || value === '0s' || value === false ? undefined : value;
  const entries = Object.entries(value).map(([name, each]) => [name, meant(each)] as const);
  const set = entries.filter(([, each]) => each !== undefined);
  return set.length === 0 ? undefined : Object.fromEntries(set);
}

function isGiven({ key }: Flag, flags: ProxyFlags): boolean {
  return flags[key as keyof ProxyFlags] !== undefined;
}

/** Returns the settings ("ipvs.strictARP") that differ although no single packet shows it. `of`: kube-proxy's own ports, or the rules. */
export function unseenDifferences(old: SettingValues, fresh: SettingValues, of: 'own' | 'rules'): readonly string[] {
  return listSettings().flatMap(({ path, row: { unseenIn } }) => {
    const isOfRules = unseenIn === 'any' || [old.mode, fresh.mode].every((each) => each === unseenIn);
    const hasEffect = of === 'own' ? unseenIn === 'own' : isOfRules;
    return hasEffect && !isSameValue(settingAt(old, path), settingAt(fresh, path)) ? path.join('.') : [];
  });
}

export const settingsSchema = mapSettings(({ stored }) => stored, objectOf) as Schema<SettingValues>;

/** Finds settings that kpc would not write. Returns each name with the words after "must", as in "ipvs.scheduler" and "be one of …". */
export function findWrongSettings(
  settings: SettingValues,
): readonly { readonly name: string; readonly must: string }[] {
  return listSettings().flatMap(({ path, row: { must } }) =>
    must === undefined || must.isMet(settingAt(settings, path), settings)
      ? []
      : [{ name: path.join('.'), must: must.text }],
  );
}

/** The flags of all settings, in the order of the help. Several settings may have the same flag. */
export const proxyFlags: readonly Flag[] = [...new Set(listSettings().flatMap(({ row }) => row.flags))].sort(
  ({ rank: a = 0 }, { rank: b = 0 }) => a - b,
);

export function hasProxyFlags(options: ProxyFlags): boolean {
  return proxyFlags.some((flag) => isGiven(flag, options));
}

const fields = [...otherFields, ...listSettings().flatMap(({ row }) => row.fields)];

export const configuredSections: readonly string[] = [
  ...new Set(fields.flatMap(({ path }) => (path.length > 1 ? path.slice(0, 1) : []))),
];

/** Returns the fields in a section, or outside all sections if `section` is "". */
export function fieldsInSection(section: string): Schemas {
  const own = fields.filter(({ path }) => (path.length > 1 ? path[0] : '') === section);
  return Object.fromEntries(own.map((field) => [lastName(field), field.schema]));
}
