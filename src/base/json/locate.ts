// Where the parts of a JSON text are.

/**
 * The offset behind the text in double quotes that begins at `start`, in which a backslash hides the sign behind it; undefined if
 * nothing ends it. Takes no memory: a regular expression remembers each turn of a loop of choices, and V8 throws a RangeError for a
 * text of some million signs. Test: a text in quotes may have any length.
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

/** Whether a position is wanted for the value of a field or for its key. */
export type PositionOf = 'value' | 'key';

/** Finds the offset of a field of a document, or of the nearest field above it that is written down. */
export type FieldLocator = (path: readonly (string | number)[], of: PositionOf) => number;

/** A key that comes more than once in one object, and the offset where it comes the second time. */
export interface RepeatedKey {
  readonly second: number;
  times: number;
}

/** Such keys in the JSON value in a stretch of a text; to JSON.parse, the last counts. */
export function findRepeatedKeys(text: string, start: number, end: number): readonly RepeatedKey[] {
  const repeated = new Set<RepeatedKey>();
  /** The keys of the objects around the place, with how often each comes if that is more than once; of a list, none. */
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

/** A field of an object or an item of a list: the offsets of its key (an item has none) and of its value. */
interface Entry {
  readonly key: number;
  readonly value: number;
}

/**
 * Finds the offsets of fields of the JSON value that starts at `start`, or of the nearest field above that is written down.
 * The text is known to be valid there. What was looked into once is remembered, so that many errors cost one scan.
 */
export function locateInJson(text: string, start: number): FieldLocator {
  const known = new Map<number, Entries>();
  return (path, of) => {
    let at = skipBlanks(text, start);
    for (const [i, step] of path.entries()) {
      const entries = known.get(at) ?? entriesOf(text, at);
      known.set(at, entries);
      const entry = entryAt(entries, step);
      if (!entry) return at;
      at = of === 'key' && i === path.length - 1 ? entry.key : entry.value;
    }
    return at;
  };
}

/** What is in an object, by its keys, or where the items of a list begin. */
type Entries = ReadonlyMap<string, Entry> | readonly number[];

function entryAt(entries: Entries, step: string | number): Entry | undefined {
  if ('get' in entries) return entries.get(String(step));
  const value = entries[Number(step)];
  return value === undefined ? undefined : { key: value, value };
}

/** What the object or list at `start` holds. Of a key that is there twice, the last counts. */
function entriesOf(text: string, start: number): Entries {
  const entries = new Map<string, Entry>();
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

/** The offset after the JSON value that starts at `start`. */
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

/** The offset after the JSON string that starts at `start`; the text's end if it does not end. */
function skipString(text: string, start: number): number {
  return endOfQuoted(text, start) ?? text.length;
}

function skipBlanks(text: string, start: number): number {
  let at = start;
  while (/[ \n\r\t]/.test(text.charAt(at))) at++;
  return at;
}
