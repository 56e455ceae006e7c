import { objectOf, type Shape } from '../../base/json-shape.ts';
import type { Schema } from '../../diagnostics/json-schema.ts';
import type { ProxyMode } from '../modes.ts';
import { conntrack } from './conntrack.ts';
import { ignoresExternalIPs, nftablesLocalhostNodePorts } from './feature-gates.ts';
import { ipvs } from './ipvs.ts';
import { clusterCIDRs, detectLocal } from './local-traffic.ts';
import { masqueradeAll, masqueradeBit } from './masquerade.ts';
import { bindAddress, hostnameOverride, mode } from './node.ts';
import { localhostNodePorts, nodePortAddresses } from './node-ports.ts';
import { lastName, type Setting, type SettingSource, type Flag, type FlagValues } from './setting.ts';

/** All settings of kube-proxy that shape rules, in the order of the manifest. */
const settingTable = {
  mode,
  hostnameOverride,
  bindAddress,
  clusterCIDRs,
  detectLocal,
  nodePortAddresses,
  ignoresExternalIPs,
  nftablesLocalhostNodePorts,
  masqueradeAll,
  masqueradeBit,
  localhostNodePorts,
  ipvs,
  conntrack,
};

/** A row with a value of any type. */
type AnySetting = Setting<unknown>;

/** Rows, and rows of sections. */
interface SettingRows {
  readonly [name: string]: AnySetting | SettingRows;
}

type Table = typeof settingTable;

/** The settings that these rows describe. A setting that may be undefined may be missing. */
type ValuesOf<Rows> = Flat<
  { readonly [K in keyof Rows as undefined extends ValueOf<Rows[K]> ? never : K]: ValueOf<Rows[K]> } & {
    readonly [K in keyof Rows as undefined extends ValueOf<Rows[K]> ? K : never]?: ValueOf<Rows[K]>;
  }
>;

type ValueOf<Row> = Row extends { readonly stored: Shape<infer T> } ? T : ValuesOf<Row>;

type Flat<T> = { readonly [K in keyof T]: T[K] };

/** The settings, with kube-proxy's defaults filled in. Durations are in seconds. */
export type SettingValues = ValuesOf<Table>;

type RowsIn<Rows> = {
  [K in keyof Rows]: Rows[K] extends { readonly stored: unknown } ? Rows[K] : RowsIn<Rows[K]>;
}[keyof Rows];

type AllFlags = RowsIn<Table>['flags'][number];

/** The flags that shape rules, by kube-proxy's names in camel case, with their values. */
export type ProxyFlags = { readonly [F in AllFlags as F['key']]?: FlagValues[F['kind']] | undefined };

/** The rows, each with its path of names: ['ipvs', 'scheduler']. */
export function listSettings(): readonly { readonly path: readonly string[]; readonly row: AnySetting }[] {
  const listed: { readonly path: readonly string[]; readonly row: AnySetting }[] = [];
  mapSettings((row, path) => listed.push({ path, row }));
  return listed;
}

/**
 * Makes an object with a field for each setting. `make` gets the row and its path of names; fields for which it gives
 * undefined are left out. `join` makes the value of a section, and of the whole, from its fields.
 */
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
  return typeof row.stored === 'function';
}

/** The value of one setting. */
function settingAt(settings: SettingValues, path: readonly string[]): unknown {
  return path.reduce<unknown>((parent, name) => (parent as Readonly<Record<string, unknown>>)[name], settings);
}

/** All settings, from flags over the configuration over kube-proxy's defaults. */
export function readSettings(source: SettingSource): SettingValues {
  return mapSettings((row) => row.read(source) ?? row.defaultIn(source.mode)) as SettingValues;
}

/** The settings of a kube-proxy for which only the mode is set. */
export function defaultSettings(chosen: ProxyMode): SettingValues {
  return mapSettings((row) => row.defaultIn(chosen)) as SettingValues;
}

/** Moves settings that come from flags alone to another mode: what no flag says is that mode's default. */
export function settingsInMode(settings: SettingValues, chosen: ProxyMode, flags: ProxyFlags): SettingValues {
  return mapSettings((row, path) =>
    row.flags.some((flag) => isGiven(flag, flags)) ? settingAt(settings, path) : row.defaultIn(chosen),
  ) as SettingValues;
}

function isGiven({ key }: Flag, flags: ProxyFlags): boolean {
  return flags[key as keyof ProxyFlags] !== undefined;
}

/** What settings must be like in a manifest. */
export const settingsShape = mapSettings(({ stored }) => stored, objectOf) as Shape<SettingValues>;

/** The settings of a manifest that kpc would not have written: "ipvs.scheduler", and what follows "must": "be one of …". */
export function findWrongSettings(
  settings: SettingValues,
): readonly { readonly name: string; readonly must: string }[] {
  return listSettings().flatMap(({ path, row: { must } }) =>
    must === undefined || must.isMet(settingAt(settings, path), settings)
      ? []
      : [{ name: path.join('.'), must: must.text }],
  );
}

/** The flags of all settings, in the order in which help lists them. Several settings may have one flag. */
export const proxyFlags: readonly Flag[] = [...new Set(listSettings().flatMap(({ row }) => row.flags))].sort(
  (a, b) => a.rank - b.rank,
);

/** Whether the user gave any of kube-proxy's flags. These say how kube-proxy is set up. */
export function hasProxyFlags(options: ProxyFlags): boolean {
  return proxyFlags.some((flag) => isGiven(flag, options));
}

const fields = listSettings().flatMap(({ row }) => row.fields);

/** The sections of a configuration that hold settings. */
export const configuredSections: readonly string[] = [
  ...new Set(fields.flatMap(({ path }) => (path.length > 1 ? path.slice(0, 1) : []))),
];

/** The schemas of the settings in a section of the configuration; '' for those that are in none. */
export function fieldsInSection(section: string): Readonly<Record<string, Schema>> {
  const own = fields.filter(({ path }) => (path.length > 1 ? path[0] : '') === section);
  return Object.fromEntries(own.map((field) => [lastName(field), field.schema]));
}
