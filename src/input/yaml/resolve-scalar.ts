import { refuse } from '../syntax-fault.ts';
import { resolveNumber, resolvePlainScalar } from '../yaml-scalars.ts';
import { keyText } from './key-text.ts';
import type { ScalarNode } from './nodes.ts';

const tags = {
  binary: 'tag:yaml.org,2002:binary',
  string: 'tag:yaml.org,2002:str',
  boolean: 'tag:yaml.org,2002:bool',
  integer: 'tag:yaml.org,2002:int',
  float: 'tag:yaml.org,2002:float',
  null: 'tag:yaml.org,2002:null',
  timestamp: 'tag:yaml.org,2002:timestamp',
} as const;

/** The value of a scalar. Throws a Refusal. */
export function decodeScalar(scalar: ScalarNode): unknown {
  const value = resolve(scalar);
  if (typeof value === 'number' && !Number.isFinite(value)) {
    refuse(scalar.offset, { problem: 'not-a-number-in-json', value: scalar.value });
  }
  return value;
}

/** A key as JSON has it, and what Go takes it for. */
export interface YamlKey {
  readonly text: string;
  readonly type: string;
}

/** The key that a scalar is; `offset` is that of its alias, if it has one. Throws a Refusal. */
export function keyOf(scalar: ScalarNode, offset: number): YamlKey {
  const value = resolve(scalar);
  if (value === null) refuseKey(offset);
  if (typeof value !== 'number') return { text: String(value), type: typeof value };
  const number = resolveNumber(scalar.value) ?? { kind: 'float', value };
  // Go's yaml keeps those as unsigned integers, for which sigs.k8s.io/yaml knows no text.
  if (number.kind === 'integer' && number.exact !== undefined && number.exact >= 2n ** 63n) {
    refuseKey(offset);
  }
  const isFloat = number.kind === 'float' || scalar.tag === tags.float;
  return { text: keyText(number, isFloat), type: isFloat ? 'float' : 'integer' };
}

/** Refuses a key that JSON has no text for. */
export function refuseKey(offset: number): never {
  refuse(offset, { problem: 'key-of-other-type' });
}

/** What go-yaml makes of a scalar and its tag. It knows no other tags than these: what has another one is text. */
function resolve({ value, tag, isImplicit, offset }: ScalarNode): string | number | boolean | null {
  switch (tag) {
    case '':
      return isImplicit ? resolvePlainScalar(value) : value;
    case tags.boolean:
    case tags.integer:
    case tags.float:
    case tags.null:
      if (!isOfTag(value, tag)) refuse(offset, { problem: 'not-of-tag', value, tag: tag.replace(/^.*:/, '!!') });
      return resolvePlainScalar(value);
    case tags.timestamp:
      if (!isTimestamp(value)) refuse(offset, { problem: 'not-of-tag', value, tag: '!!timestamp' });
      return value;
    case tags.binary:
      return refuse(offset, { problem: 'value-as-binary' });
    default:
      return value;
  }
}

function isOfTag(text: string, tag: string): boolean {
  const number = resolveNumber(text);
  switch (tag) {
    case tags.boolean:
      return typeof resolvePlainScalar(text) === 'boolean';
    case tags.integer:
      return number?.kind === 'integer';
    case tags.float:
      return number !== undefined && !(number.kind === 'integer' && (number.exact ?? 0n) >= 2n ** 63n);
    default:
      return resolvePlainScalar(text) === null;
  }
}

const timestamp =
  /^(\d{4})-(\d\d?)-(\d\d?)(?:[Tt](\d\d?):(\d\d?):(\d\d?)(?:[.,]\d+)?(?:Z|[-+](\d\d):(\d\d))| (\d\d?):(\d\d?):(\d\d?)(?:[.,]\d+)?)?$/;

/** Whether a text is a date, or a date and a time, as go-yaml reads them. */
function isTimestamp(text: string): boolean {
  const match = timestamp.exec(text);
  if (!match) return false;
  const [year = 0, month = 0, day = 0, ...rest] = match.slice(1).map((digits) => Number(digits ?? 0));
  const [
    hour = 0,
    minute = 0,
    second = 0,
    zoneHour = 0,
    zoneMinute = 0,
    plainHour = 0,
    plainMinute = 0,
    plainSecond = 0,
  ] = rest;
  if (month < 1 || month > 12 || day < 1 || day > new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate())
    return false;
  if (Math.max(hour, plainHour) > 23 || Math.max(minute, second, plainMinute, plainSecond) > 59) return false;
  return zoneHour <= 24 && zoneMinute < 60;
}
