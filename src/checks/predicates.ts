// Predicates for conditions that JSON Schema has no keyword for. Schemas name the predicates, and the checks that scripts/checks-module.mjs
// makes import them. A predicate on texts gets only texts. Any other predicate gets only values that the rest of the schema accepts.
import { parseDuration } from '../base/duration.ts';
import { isObject } from '../base/json/check.ts';
import { isName } from '../base/names.ts';
import { printable } from '../base/printable.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';
import { schedulers } from '../kernel/ipvs/ipvs.ts';
import { parsePort } from '../kernel/ports-and-marks.ts';
import { isSettingPath } from '../kernel/sysctls-and-modules.ts';
import { parseRelease } from '../kube-proxy/releases.ts';

export { isInterfaceName, isInterfacePrefix, isLabelValue } from '../base/names.ts';

export function isAddress(text: string): boolean {
  return parseAddress(text) !== undefined;
}

export function isAddressOrNothing(text: string): boolean {
  return text === '' || isAddress(text);
}

export function isClusterIP(text: string): boolean {
  return text === 'None' || isAddressOrNothing(text);
}

export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== undefined;
}

/**
 * Accepts an address with or without a port, and an empty text. If an address has no port, kube-proxy adds its own (AppendPortIfNeeded).
 */
export function isSocket(text: string): boolean {
  const [, ipv6, ipv4 = '', port = ''] = /^(?:\[(.*)\]|([^:]*)):\+?(\d{1,9})$/.exec(text) ?? [];
  const address = port === '' ? text : (ipv6 ?? ipv4);
  return text === '' || (isAddress(address) && (port === '' || (parsePort(String(Number(port))) ?? 0) > 0));
}

export function isLabel(text: string): boolean {
  return isName(text, 'label');
}

export function isPortName(text: string): boolean {
  return text === '' || isLabel(text);
}

export function isNodeName(text: string): boolean {
  return text === '' || isName(text, 'subdomain');
}

export function isDnsName(text: string): boolean {
  return isName(text.replace(/\.$/, ''), 'subdomain');
}

export function isKubeProxyVersion(text: string): boolean {
  return parseRelease(text) !== undefined;
}

export function isScheduler(text: string): boolean {
  return schedulers.includes(text);
}

export function isPrintable(text: string): boolean {
  return printable(text) === text;
}

export function isWithoutNull(text: string): boolean {
  return !text.includes('\0');
}

export function isDuration(text: string): boolean {
  return parseDuration(text) !== undefined;
}

export function isDurationFromZero(text: string): boolean {
  return (parseDuration(text) ?? -1) >= 0;
}

/** Accepts a duration with a unit, or a number of nanoseconds (TimeOrMetaDuration). */
export function isFlushFrequency(value: unknown): boolean {
  if (typeof value === 'string') return isDurationFromZero(value);
  return value === null || (Number.isSafeInteger(value) && Number(value) >= 0);
}

export function isQuantity(value: unknown): boolean {
  if (value === null || typeof value === 'number') return true;
  return (
    typeof value === 'string' && /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$/.test(value)
  );
}

export function hasFilePattern({ filePattern }: { readonly filePattern?: string | null }): boolean {
  return /^[^=,]+$/.test(filePattern ?? '');
}

/** Reports whether logging is valid: kube-proxy allows vmodule only for text logs. */
export function isLogging(
  logging: { readonly format?: string | null; readonly vmodule?: readonly unknown[] | null } | null,
): boolean {
  return logging?.format !== 'json' || (logging.vmodule ?? []).length === 0;
}

/** Accepts only paths of the network's kernel settings, because a rollback writes to these files. Test: apply/damaged-state.test.ts. */
export function hasSettingPaths(settings: unknown): boolean {
  return !isObject(settings) || Object.keys(settings).every(isSettingPath);
}

/** Reports whether a field is present and its value is wrong. The generated checks call this for each optional field. */
export function isWrong(value: unknown, accepts: (value: unknown) => boolean): boolean {
  return value !== undefined && !accepts(value);
}
