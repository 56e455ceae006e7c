import { objectOf, type Shape } from '../../base/json-shape.ts';
import type { ProxyMode } from '../modes.ts';
import type { SettingSource } from './setting.ts';
import {
  listSettings,
  mapSettings,
  settingAt,
  settingTable,
  type AnySetting,
  type ProxyFlags,
  type SettingRows,
  type SettingValues,
} from './table.ts';

/** All settings, from flags over the configuration over kube-proxy's defaults. */
export function readSettings(source: SettingSource): SettingValues {
  return mapSettings((row) => row.read(source) ?? row.defaultIn(source.mode)) as SettingValues;
}

/** The settings of a kube-proxy for which only the mode is set. */
export function defaultSettings(mode: ProxyMode): SettingValues {
  return mapSettings((row) => row.defaultIn(mode)) as SettingValues;
}

/** The settings of a dump, where the configuration is unknown: they ask for nothing beyond the state itself. */
export function dumpedSettings(mode: ProxyMode): SettingValues {
  return mapSettings((row) => (row.dumped === undefined ? row.defaultIn(mode) : row.dumped)) as SettingValues;
}

/** Moves settings that come from flags alone to another mode: what no flag says is that mode's default. */
export function settingsInMode(settings: SettingValues, mode: ProxyMode, flags: ProxyFlags): SettingValues {
  return mapSettings((row, path) =>
    isGiven(row, flags) ? settingAt(settings, path) : row.defaultIn(mode),
  ) as SettingValues;
}

function isGiven({ flags }: AnySetting, given: ProxyFlags): boolean {
  return flags.some(({ key }) => given[key as keyof ProxyFlags] !== undefined);
}

/** What settings must be like in a manifest. */
export const settingsShape = shapeOf(settingTable) as Shape<SettingValues>;

function shapeOf(rows: SettingRows): Shape<object> {
  const shapes = Object.entries(rows).map(([name, row]) => {
    return [name, row.kind === 'group' ? shapeOf(row.rows) : row.stored] as const;
  });
  return objectOf(Object.fromEntries(shapes));
}

/** A setting of the right shape, with a value that kpc would not write. */
interface WrongSetting {
  /** "ipvs.scheduler". */
  readonly name: string;
  /** What follows "must": "be one of …". */
  readonly must: string;
}

/** The settings of a manifest that kpc would not have written. */
export function findWrongSettings(settings: SettingValues): readonly WrongSetting[] {
  return listSettings().flatMap(({ path, row: { must } }) =>
    must === undefined || must.isMet(settingAt(settings, path), settings)
      ? []
      : [{ name: path.join('.'), must: must.text }],
  );
}
