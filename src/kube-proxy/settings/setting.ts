import type { Shape } from '../../base/json-shape.ts';
import type { ArgumentsOf, DiagnosticCode } from '../../diagnostics/codes.ts';
import { faultOf, type Fault } from '../../diagnostics/diagnostic.ts';
import type { ProxyMode } from '../modes.ts';
import type { FeatureGates, Release } from '../releases.ts';
import { lastName, type Field } from './field.ts';
import { splitList, type Flag, type FlagValues } from './flag.ts';

/** A setting of kube-proxy that shapes rules: everything about it except its effect. */
export interface Setting<T, F extends Flag = Flag, D extends Field = Field> {
  readonly kind: 'setting';
  readonly flags: readonly F[];
  readonly fields: readonly D[];
  /** kube-proxy's default in a mode. */
  defaultIn(mode: ProxyMode): T;
  /** Reads the flag, else the configuration, and reports what is wrong; undefined for the default. */
  read(source: SettingSource): T | undefined;
  /** Its shape in a bundle's manifest.json. */
  readonly stored: Shape<T>;
  /** Which values of that shape kpc accepts. */
  readonly must?: Requirement<T> | undefined;
  /** The value for a dump of a node: one that asks for nothing, if the default would ask for something. */
  readonly dumped?: T | undefined;
}

/** Which values of the right shape are valid. */
export interface Requirement<T> {
  /** What follows "must": "be an IP address". */
  readonly text: string;
  isMet(value: T, settings: object): boolean;
}

/** Settings that share a section of the configuration. */
export interface SettingGroup<Rows> {
  readonly kind: 'group';
  readonly rows: Rows;
}

/** Where settings come from, and the mode and release that they are read for. */
export interface SettingSource {
  readonly mode: ProxyMode;
  readonly release: Release;
  readonly gates: FeatureGates;
  /** The value of a flag; undefined where the flag is not given. */
  flag<K extends keyof FlagValues>(flag: Flag<string, K>): FlagValues[K] | undefined;
  /** A field of the configuration; undefined where it is not set. */
  field<T>(field: Field<string, T>): NonNullable<T> | undefined;
  /** Whether the configuration has a section. */
  hasSection(name: string): boolean;
  report(fault: SettingFault): void;
}

/** What is wrong with a setting. */
export type SettingFault = Fault & {
  /** The place in the configuration; undefined for a flag. */
  readonly path: SettingPath | undefined;
};

type SettingPath = readonly (string | number)[];

/** A value with its source: a flag, or a field of the configuration. */
export interface Given<T> {
  readonly value: T;
  /** What the user calls it: "--cluster-cidr" or "clusterCIDR". */
  readonly name: string;
  readonly path: SettingPath | undefined;
}

/** A row of the table. */
export function setting<T, F extends Flag = never, D extends Field = never>(
  row: Omit<Setting<T, F, D>, 'kind'>,
): Setting<T, F, D> {
  return { kind: 'setting', ...row };
}

/** A section of the table. */
export function group<Rows>(rows: Rows): SettingGroup<Rows> {
  return { kind: 'group', rows };
}

/** The flag's value where the flag was given, else the field's; undefined where neither is set. */
export function given(
  source: SettingSource,
  flag: Flag<string, 'text'>,
  field: Field<string, string | null>,
): Given<string> | undefined {
  return givenOf(source.flag(flag), flag, source.field(field), field);
}

/** Like given, but an empty value counts as not set. */
export function givenFilled(
  source: SettingSource,
  flag: Flag<string, 'text'>,
  field: Field<string, string | null>,
): Given<string> | undefined {
  return givenOf(source.flag(flag) || undefined, flag, source.field(field) || undefined, field);
}

/** Like given, for a list. */
export function givenList(
  source: SettingSource,
  flag: Flag<string, 'list'>,
  field: Field<string, readonly string[] | null>,
): Given<readonly string[]> | undefined {
  return givenOf(splitList(source.flag(flag)), flag, source.field(field), field);
}

function givenOf<T>(fromFlag: T | undefined, flag: Flag, fromField: T | undefined, field: Field): Given<T> | undefined {
  if (fromFlag !== undefined) return { value: fromFlag, name: flag.name, path: undefined };
  return fromField === undefined ? undefined : { value: fromField, name: lastName(field), path: field.path };
}

type Written = Pick<Given<unknown>, 'path'>;

/** The place of a flag: it has none. */
export const onCommandLine: Written = { path: undefined };

/** Reports what is wrong with a value. */
export function refuse<Code extends DiagnosticCode>(
  source: Pick<SettingSource, 'report'>,
  { path }: Written,
  code: Code,
  details: ArgumentsOf<Code>,
): void {
  source.report({ ...faultOf(code, details), path });
}

/** The mode to compile for, if kube-proxy ignores a setting in it; `mode` is the only one that reads the setting. */
export function ignoredUnlessIn(mode: ProxyMode, source: SettingSource): ProxyMode | undefined {
  return source.mode === mode ? undefined : source.mode;
}

/** The item of a list that was given. */
export function itemOf({ name, path }: Given<unknown>, value: string, i: number): Given<string> {
  return { value, name, path: path && [...path, i] };
}
