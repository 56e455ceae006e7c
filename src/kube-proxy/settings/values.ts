import { objectOf, type Shape } from '../../base/json-shape.ts';
import type { Schema } from '../../diagnostics/json-schema.ts';
import type { ProxyMode } from '../modes.ts';
import { lastName, type Flag, type SettingSource } from './setting.ts';
import { listSettings, mapSettings, settingAt, type ProxyFlags, type SettingValues } from './table.ts';

/** All settings, from flags over the configuration over kube-proxy's defaults. */
export function readSettings(source: SettingSource): SettingValues {
  return mapSettings((row) => row.read(source) ?? row.defaultIn(source.mode)) as SettingValues;
}

/** The settings of a kube-proxy for which only the mode is set. */
export function defaultSettings(mode: ProxyMode): SettingValues {
  return mapSettings((row) => row.defaultIn(mode)) as SettingValues;
}

/** Moves settings that come from flags alone to another mode: what no flag says is that mode's default. */
export function settingsInMode(settings: SettingValues, mode: ProxyMode, flags: ProxyFlags): SettingValues {
  return mapSettings((row, path) =>
    row.flags.some((flag) => isGiven(flag, flags)) ? settingAt(settings, path) : row.defaultIn(mode),
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
