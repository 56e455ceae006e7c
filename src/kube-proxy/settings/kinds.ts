import { integer } from '../../diagnostics/json-schema.ts';
import { amount, boolean, wholeNumber } from '../../base/json-shape.ts';
import { parseNetwork, type Network } from '../../kernel/address.ts';
import { parseDuration } from './durations.ts';
import type { Field } from './field.ts';
import { readSwitch, type Flag } from './flag.ts';
import {
  given,
  onCommandLine,
  refuse,
  setting,
  type Given,
  type Requirement,
  type Setting,
  type SettingSource,
} from './setting.ts';

type SwitchFlag = Flag<string, 'switch'>;
type SwitchField = Field<string, boolean | null>;
type TextFlag = Flag<string, 'text'>;
type TextField = Field<string, string | null>;
type NumberField = Field<string, number | null>;

const mostInt32 = 2 ** 31 - 1;

/** The schema of a field that holds an amount. */
export const anyAmount = integer(0, mostInt32, `a whole number from 0 to ${mostInt32}`);

/** A setting that is on or off. */
export function switchSetting<F extends SwitchFlag, D extends SwitchField>(row: {
  readonly flag: F;
  readonly field: D;
  readonly usual: boolean;
}): Setting<boolean, F, D> {
  return setting({
    flags: [row.flag],
    fields: [row.field],
    defaultIn: () => row.usual,
    read: (source) => switchOf(source, row.flag) ?? source.field(row.field),
    stored: boolean,
  });
}

/** The value of a switch flag; undefined where it is not given, or is neither true nor false. */
export function switchOf(source: SettingSource, flag: SwitchFlag): boolean | undefined {
  const value = source.flag(flag);
  if (value === undefined || typeof value === 'boolean') return value;
  const isOn = readSwitch(value);
  if (isOn === undefined) refuse(source, onCommandLine, 'bad-flag', { name: flag.name, value });
  return isOn;
}

/** kube-proxy takes values that kpc-apply does not: it reads no bundle with them. */
function warnUnmet(
  source: SettingSource,
  written: Given<string>,
  value: number | undefined,
  must: Requirement<number> | undefined,
): void {
  if (value === undefined || !must || must.isMet(value, {})) return;
  refuse(source, written, 'not-applicable', { name: written.name, value: written.value, must: must.text });
}

/** A number of things. */
export function amountSetting<F extends TextFlag, D extends NumberField>(row: {
  readonly flag: F;
  readonly field: D;
  readonly usual: number;
  readonly dumped?: number;
  readonly must?: Requirement<number>;
}): Setting<number, F, D> {
  return setting({
    flags: [row.flag],
    fields: [row.field],
    defaultIn: () => row.usual,
    read: (source) => {
      const fromFlag = amountOf(source, row.flag);
      const value = fromFlag ?? source.field(row.field);
      const written =
        fromFlag === undefined
          ? { name: row.field.path.at(-1) ?? '', path: row.field.path }
          : { name: row.flag.name, path: undefined };
      warnUnmet(source, { ...written, value: String(value) }, value, row.must);
      return value;
    },
    stored: wholeNumber(0),
    must: row.must,
    dumped: row.dumped,
  });
}

function amountOf(source: SettingSource, flag: TextFlag): number | undefined {
  const value = source.flag(flag);
  if (value === undefined) return undefined;
  const number = Number(value);
  if (/^\d{1,10}$/.test(value) && number <= mostInt32) return number;
  refuse(source, onCommandLine, 'bad-number', {
    field: flag.name,
    found: { type: 'string', value },
    expected: `a number from 0 to ${mostInt32}`,
  });
  return undefined;
}

/** A time, in seconds. */
export function secondsSetting<F extends TextFlag, D extends TextField>(row: {
  readonly flag: F;
  readonly field: D;
  readonly usual: number;
  readonly dumped?: number;
  readonly must?: Requirement<number>;
  readonly read?: (source: SettingSource, given: Given<string>) => number | undefined;
}): Setting<number, F, D> {
  const { read = readSeconds } = row;
  return setting({
    flags: [row.flag],
    fields: [row.field],
    defaultIn: () => row.usual,
    read: (source) => {
      const written = given(source, row.flag, row.field);
      const seconds = written && read(source, written);
      if (written) warnUnmet(source, written, seconds, row.must);
      return seconds;
    },
    stored: amount,
    must: row.must,
    dumped: row.dumped,
  });
}

/** Seconds of a duration as Go writes it. Reports anything else, and then gives undefined. */
export function readSeconds(source: SettingSource, written: Given<string>): number | undefined {
  const seconds = parseDuration(written.value);
  if (seconds !== undefined && seconds >= 0) return seconds;
  const { name, value } = written;
  refuse(source, written, 'bad-duration', { name, value });
  return undefined;
}

/** Reads a network. Reports anything else, and then gives undefined. */
export function readNetwork(source: SettingSource, written: Given<string>): Network | undefined {
  const network = parseNetwork(written.value);
  if (!network) refuse(source, written, 'bad-cidr', noNetwork(written));
  return network;
}

/** What a diagnostic says of a text that is no network. */
export function noNetwork({ name, value }: Given<string>) {
  return { problem: 'no-network', field: name, value } as const;
}
