import type { Shape } from '../../base/json-shape.ts';
import { conntrack } from './conntrack.ts';
import { ignoresExternalIPs, nftablesLocalhostNodePorts } from './feature-gates.ts';
import { ipvs } from './ipvs.ts';
import { clusterCIDRs, detectLocal } from './local-traffic.ts';
import { masqueradeAll, masqueradeBit } from './masquerade.ts';
import { bindAddress, hostnameOverride, mode } from './node.ts';
import { localhostNodePorts, nodePortAddresses } from './node-ports.ts';
import type { Setting, SettingGroup, Field, FlagValues } from './setting.ts';

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

/** A row, or rows of a section. */
interface SettingRows {
  readonly [name: string]: AnySetting | SettingGroup<SettingRows>;
}

type Table = typeof settingTable;

/** The settings that these rows describe. A setting that may be undefined may be missing. */
type ValuesOf<Rows> = Flat<
  { readonly [K in keyof Rows as undefined extends ValueOf<Rows[K]> ? never : K]: ValueOf<Rows[K]> } & {
    readonly [K in keyof Rows as undefined extends ValueOf<Rows[K]> ? K : never]?: ValueOf<Rows[K]>;
  }
>;

type ValueOf<Row> =
  Row extends SettingGroup<infer Inner> ? ValuesOf<Inner> : Row extends { readonly stored: Shape<infer T> } ? T : never;

type Flat<T> = { readonly [K in keyof T]: T[K] };

/** The settings, with kube-proxy's defaults filled in. Durations are in seconds. */
export type SettingValues = ValuesOf<Table>;

type RowsIn<Rows> = {
  [K in keyof Rows]: Rows[K] extends SettingGroup<infer Inner> ? RowsIn<Inner> : Rows[K];
}[keyof Rows];

type AllFlags = RowsIn<Table>['flags'][number];

type AllFields = RowsIn<Table>['fields'][number];

/** The flags that shape rules, by kube-proxy's names in camel case, with their values. */
export type ProxyFlags = { readonly [F in AllFlags as F['key']]?: FlagValues[F['kind']] | undefined };

/** The fields of a configuration that are settings, as its schema has them. */
export type ConfiguredFields = Flat<{
  readonly [S in SectionName]?: Flat<FieldsOf<S>> | null;
}> &
  Flat<FieldsOf<''>>;

type SectionName = AllFields['name'] extends infer N ? (N extends `${infer S}.${string}` ? S : never) : never;

type FieldsOf<Section extends string> = {
  readonly [D in AllFields as OwnName<D['name'], Section>]?: D extends Field<string, infer T> ? T : never;
};

type OwnName<Name extends string, Section extends string> = Name extends `${infer S}.${infer Own}`
  ? S extends Section
    ? Own
    : never
  : Section extends ''
    ? Name
    : never;

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
export function mapSettings(
  make: (row: AnySetting, path: readonly string[]) => unknown,
  join: (fields: Readonly<Record<string, never>>) => unknown = (fields) => fields,
  rows: SettingRows = settingTable,
  above: readonly string[] = [],
): unknown {
  const entries = Object.entries(rows).map(([name, row]) => {
    const path = [...above, name];
    return [name, row.kind === 'group' ? mapSettings(make, join, row.rows, path) : make(row, path)] as const;
  });
  return join(
    Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Readonly<Record<string, never>>,
  );
}

/** The value of one setting. */
export function settingAt(settings: SettingValues, path: readonly string[]): unknown {
  return path.reduce<unknown>((parent, name) => (parent as Readonly<Record<string, unknown>>)[name], settings);
}
