import type { Schema } from '../base/json/schema.ts';
import type { ArgumentsOf, FindingCode } from '../base/findings/codes.ts';
import { faultOf, type Fault } from '../base/findings/finding.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { FeatureGates, Release } from '../kube-proxy/releases.ts';
import { flagRow, type Flag, type FlagFacts, type FlagKind, type FlagValues } from './flag.ts';

export interface Setting<T, F extends Flag = Flag> {
  readonly flags: readonly F[];
  readonly fields: readonly SettingField[];
  defaultIn(mode: ProxyMode): T;
  /** Returns the value of the flag, or else of the configuration's field. Undefined means the default. Reports faults. */
  read(source: SettingSource): T | undefined;
  readonly stored: Schema<T>;
  readonly must?: Requirement<T> | undefined;
  /** The mode in which the setting has an effect that no single packet shows. `own`: the effect is on kube-proxy's own ports. */
  readonly unseenIn?: ProxyMode | 'any' | 'own' | undefined;
}

export interface Requirement<T> {
  /** The words after "must", such as "be an IP address". */
  readonly text: string;
  isMet(value: T, settings: object): boolean;
}

export interface SettingSource {
  readonly mode: ProxyMode;
  readonly release: Release;
  readonly gates: FeatureGates;
  flag<K extends FlagKind>(flag: Flag<string, K>): ReadValues[K] | undefined;
  field<T>(field: SettingField<T>): NonNullable<T> | undefined;
  hasSection(name: string): boolean;
  report(fault: SettingFault): void;
}

export type SettingFault = Fault & {
  /** The place in the configuration. Undefined for a flag. */
  readonly path: SettingPath | undefined;
};

type SettingPath = readonly (string | number)[];

export interface SettingField<T = unknown> {
  /** The field's name with its section, such as "ipvs.scheduler". */
  readonly name: string;
  readonly path: readonly string[];
  readonly schema: Schema<T>;
}

export function proxyField<T>(name: string, schema: Schema<T>): SettingField<T> {
  return { name, path: name.split('.'), schema };
}

export function lastName({ path }: SettingField): string {
  return path.at(-1) ?? '';
}

interface ReadValues extends FlagValues {
  list: readonly string[];
}

export function proxyFlag<Kind extends FlagKind, const Usage extends `--${string} ${string}`>(
  kind: Kind,
  usage: Usage,
  help: string,
  { rank = 0, isOfNode = false }: Pick<FlagFacts, 'rank' | 'isOfNode'> = {},
) {
  return flagRow(kind, usage, help, { group: 'settings', needs: 'manifests', rank, isOfNode });
}

/** Reads a switch like Go's strconv.ParseBool, but ignores case. */
export function readSwitch(value: string): boolean | undefined {
  if (/^(?:1|t|true)$/i.test(value)) return true;
  return /^(?:0|f|false)$/i.test(value) ? false : undefined;
}

/** Splits a text at commas, as pflag's StringSlice does. A flag given more than once adds to the list. */
export function splitList(value: FlagValues['list']): readonly string[] {
  const parts = typeof value === 'string' ? [value] : value;
  return parts.flatMap((part) => (part === '' ? [] : part.split(',')));
}

export interface Given<T> {
  readonly value: T;
  readonly name: string;
  readonly path: SettingPath | undefined;
}

export function setting<T, F extends Flag = never>(row: Setting<T, F>): Setting<T, F> {
  return row;
}

/** Makes a setting with one flag and one field. If both are set, the flag's value counts. `read` is called if either is set. */
export function plainSetting<T, N extends string, K extends FlagKind, V>({
  flag,
  field,
  read,
  skipsEmpty = false,
  ...row
}: Omit<Setting<T>, 'flags' | 'fields' | 'read'> & {
  readonly flag: Flag<N, K>;
  readonly field: SettingField<V>;
  /** Whether an empty text counts as unset. */
  readonly skipsEmpty?: boolean;
  read(written: Given<ReadValues[K] | NonNullable<V>>, source: SettingSource): T | undefined;
}): Setting<T, Flag<N, K>> {
  return setting({
    ...row,
    flags: [flag],
    fields: [field],
    read: (source) => {
      const written = given(source, flag, field, skipsEmpty);
      return written && read(written, source);
    },
  });
}

/** Returns the flag's value, or else the field's; undefined if neither is set. */
export function given<K extends FlagKind, V>(
  source: SettingSource,
  flag: Flag<string, K>,
  field: SettingField<V>,
  skipsEmpty = false,
): Given<ReadValues[K] | NonNullable<V>> | undefined {
  const isSet = (value: unknown): boolean => value !== undefined && !(skipsEmpty && value === '');
  const fromFlag = source.flag(flag);
  if (fromFlag !== undefined && isSet(fromFlag)) return { value: fromFlag, name: flag.name, path: undefined };
  const value = source.field(field);
  return value !== undefined && isSet(value) ? { value, name: lastName(field), path: field.path } : undefined;
}

type Written = Pick<Given<unknown>, 'path'>;

/** A flag has no place in a file. */
export const onCommandLine: Written = { path: undefined };

export function refuseSetting<Code extends FindingCode>(
  source: Pick<SettingSource, 'report'>,
  { path }: Written,
  code: Code,
  details: ArgumentsOf<Code>,
): undefined {
  source.report({ ...faultOf(code, details), path });
}

export function refuseValue(
  source: Pick<SettingSource, 'report'>,
  { name, value, path }: Given<string>,
  wanted: string | Pick<ArgumentsOf<'bad-value'>, 'form'>,
  more: Pick<ArgumentsOf<'bad-value'>, 'because' | 'isWarning' | 'ignoredIn'> = {},
): undefined {
  const found = { type: 'string', value } as const;
  const details = typeof wanted === 'string' ? { expected: wanted } : wanted;
  return refuseSetting(source, { path }, 'bad-value', { field: name, found, ...details, ...more });
}

/** Returns the mode to compile for, if that is not `mode`, the only mode in which kube-proxy reads this setting. */
export function ignoredUnlessIn(mode: ProxyMode, source: SettingSource): ProxyMode | undefined {
  return source.mode === mode ? undefined : source.mode;
}

export function itemsOf({ value, name, path }: Given<readonly string[]>): readonly Given<string>[] {
  return value.map((item, i) => ({ value: item, name, path: path && [...path, i] }));
}
