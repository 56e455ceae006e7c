import { parseDuration } from '../base/duration.ts';
import { expectedDuration, flag, integer } from '../base/json/kubernetes-schema.ts';
import { amount, boolean, wholeNumber, type Schema } from '../base/json/schema.ts';
import { parseNetwork, type Network } from '../kernel/address.ts';
import {
  plainSetting,
  proxyField,
  proxyFlag,
  readSwitch,
  refuseSetting,
  refuseValue,
  type Given,
  type Requirement,
  type Setting,
  type SettingSource,
} from './setting.ts';

type FlagUsage = `--${string} ${string}`;

export function switchSetting<const U extends FlagUsage>(
  usage: U,
  help: string,
  name: string,
  usual: boolean,
  unseenIn?: Setting<boolean>['unseenIn'],
) {
  return plainSetting({
    unseenIn,
    flag: proxyFlag('switch', usage, help),
    field: proxyField(name, flag),
    defaultIn: () => usual,
    read: readSwitchOf,
    stored: boolean,
  });
}

/** Reads a switch. Any value other than true and false is reported, and the result is then undefined. */
export function readSwitchOf({ value, name }: Given<boolean | string>, source: SettingSource): boolean | undefined {
  // The value is checked again, because users of the library may pass any value.
  const isOn = readSwitch(String(value));
  if (isOn === undefined) {
    refuseValue(source, { name, value: String(value), path: undefined }, 'true or false');
  }
  return isOn;
}

/** A number's default, and the values that kpc-apply accepts. kube-proxy accepts more. No single packet shows a limit or a timeout. */
interface NumberRow extends Pick<Setting<number>, 'unseenIn'> {
  readonly usual: number;
  readonly must: Requirement<number>;
}

const mostInt32 = 2 ** 31 - 1;
export const int32FromZero = integer(0, mostInt32, `a whole number from 0 to ${mostInt32}`);

export function amountSetting<const U extends FlagUsage>(
  usage: U,
  help: string,
  name: string,
  { usual, must, unseenIn = 'any' }: NumberRow,
) {
  return plainSetting({
    unseenIn,
    flag: proxyFlag('text', usage, help, { isOfNode: true }),
    field: proxyField(name, int32FromZero),
    defaultIn: () => usual,
    read: (written, source) => warnUnmet(source, written, readNumber(written, source, mostInt32), must),
    stored: wholeNumber(0),
    must,
  });
}

/** Reads a number from 0 to `most`. Reports any other value, and returns undefined. Library users may pass any number. */
export function readNumber(written: Given<string | number>, source: SettingSource, most: number): number | undefined {
  const { name } = written;
  const value = String(written.value);
  if (/^\d{1,10}$/.test(value) && Number(value) <= most) return Number(value);
  return refuseValue(source, { name, value, path: undefined }, `a number from 0 to ${most}`);
}

export function secondsSetting<const U extends FlagUsage>(
  usage: U,
  help: string,
  name: string,
  schema: Schema<string | null>,
  { usual, must, unseenIn = 'any' }: NumberRow,
  read = readSecondsSetting,
) {
  return plainSetting({
    unseenIn,
    flag: proxyFlag('text', usage, help, { isOfNode: true }),
    field: proxyField(name, schema),
    defaultIn: () => usual,
    read: (written, source) => warnUnmet(source, written, read(written, source), must),
    stored: amount,
    must,
  });
}

/** Warns about a value that kpc-apply refuses in a bundle. */
function warnUnmet(
  source: SettingSource,
  written: Given<string | number>,
  value: number | undefined,
  must: Requirement<number>,
): number | undefined {
  if (value === undefined || must.isMet(value, {})) return value;
  const { name } = written;
  refuseSetting(source, written, 'not-applicable', { name, value: String(written.value), must: must.text });
  return value;
}

/** Reads a duration as seconds. A text that is not a duration in Go's format is reported, and the result is then undefined. */
export function readSecondsSetting(written: Given<string>, source: SettingSource): number | undefined {
  const seconds = parseDuration(written.value);
  return seconds !== undefined && seconds >= 0 ? seconds : refuseValue(source, written, expectedDuration);
}

export function readNetworkSetting(written: Given<string>, source: SettingSource): Network | undefined {
  return parseNetwork(written.value) ?? refuseValue(source, written, { form: 'network' });
}
