/**
 * Returns the end of the quoted text at `start`; undefined if it does not end. A regular expression would remember each choice, and V8
 * throws a RangeError after millions of characters. Test: base/end-of-quoted.test.ts.
 */
export function endOfQuoted(text: string, start: number): number | undefined {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (at - 1 - slashes > start && text.charCodeAt(at - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
  return undefined;
}

const backslash = 0x5c;

export type PositionOf = 'value' | 'key';

/** The offsets of the key and value of a field. An item of a list has its own offset as both. */
export type JsonEntry = { [Of in PositionOf]: number };

export type FieldLocator = (path: readonly (string | number)[], of: PositionOf) => number;

export interface RepeatedKey {
  readonly second: number;
  times: number;
}

/** Finds repeated keys in a part of a JSON text. JSON.parse uses the last one. */
export function findRepeatedKeys(text: string, start: number, end: number): readonly RepeatedKey[] {
  const repeated = new Set<RepeatedKey>();
  const around: Map<string, RepeatedKey | undefined>[] = [];
  const sign = /["{}[\]]/g;
  const colon = /[ \t\r\n]*:/y;
  sign.lastIndex = start;
  for (let found = sign.exec(text); found && found.index < end; found = sign.exec(text)) {
    const at = found.index;
    if (found[0] === '{' || found[0] === '[') around.push(new Map());
    else if (found[0] !== '"') around.pop();
    else {
      sign.lastIndex = colon.lastIndex = skipString(text, at);
      const keys = around.at(-1);
      if (!keys || !colon.test(text)) continue;
      const written = text.slice(at, sign.lastIndex);
      const key = written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
      if (!keys.has(key)) {
        keys.set(key, undefined);
        continue;
      }
      const again = keys.get(key) ?? { second: at, times: 1 };
      again.times++;
      keys.set(key, again);
      repeated.add(again);
    }
  }
  return [...repeated];
}

/** Returns a locator for the valid JSON at `start`, which scans each object and list once. */
export function locateInJson(text: string, start: number): FieldLocator {
  const known = new Map<number, Entries>();
  return (path, of) => {
    let at = skipBlanks(text, start);
    for (const [i, step] of path.entries()) {
      const entries = known.get(at) ?? locateEntries(text, at);
      known.set(at, entries);
      const entry = findEntry(entries, step);
      if (!entry) return at;
      at = of === 'key' && i === path.length - 1 ? entry.key : entry.value;
    }
    return at;
  };
}

type Entries = ReadonlyMap<string, JsonEntry> | readonly number[];

function findEntry(entries: Entries, step: string | number): JsonEntry | undefined {
  if ('get' in entries) return entries.get(String(step));
  const value = entries[Number(step)];
  return value === undefined ? undefined : { key: value, value };
}

/** Returns the fields or items of the object or list at `start`. The last of repeated keys counts. */
function locateEntries(text: string, start: number): Entries {
  const entries = new Map<string, JsonEntry>();
  const items: number[] = [];
  const isObject = text[start] === '{';
  if (!isObject && text[start] !== '[') return entries;
  for (let at = skipBlanks(text, start + 1); at < text.length && !/[}\]]/.test(text.charAt(at));) {
    const keyEnd = isObject ? skipString(text, at) : at;
    const value = isObject ? skipBlanks(text, skipBlanks(text, keyEnd) + 1) : at;
    if (isObject) entries.set(String(JSON.parse(text.slice(at, keyEnd))), { key: at, value });
    else items.push(value);
    at = skipBlanks(text, skipValue(text, value));
    if (text[at] === ',') at = skipBlanks(text, at + 1);
  }
  return isObject ? entries : items;
}

export function skipValue(text: string, start: number): number {
  const sign = /[{[]/.test(text.charAt(start)) ? /["{}[\]]/g : /["}\],\s]/g;
  let depth = 0;
  sign.lastIndex = start;
  for (let found = sign.exec(text); found; found = sign.exec(text)) {
    const at = found.index;
    const [char] = found;
    if (char === '{' || char === '[') depth++;
    else if (char === '"') sign.lastIndex = skipString(text, at);
    else if (depth === 0) return at;
    else depth--;
    if (depth === 0) return sign.lastIndex;
  }
  return text.length;
}

function skipString(text: string, start: number): number {
  return endOfQuoted(text, start) ?? text.length;
}

function skipBlanks(text: string, start: number): number {
  let at = start;
  while (/[ \n\r\t]/.test(text.charAt(at))) at++;
  return at;
}
