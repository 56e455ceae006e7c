import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  doubleQuote,
  lineFeed,
  openBrace,
  openBracket,
} from './characters.ts';
import { skipString } from './json-parser.ts';
import type { Span } from './split-documents.ts';
import { maxDepth, type SyntaxFault } from './syntax-fault.ts';

/**
 * Keys that come twice in one object of the JSON value in a stretch of a text, of which the last counts to JSON.parse. `value`
 * is what it made of the stretch, and holds each key once: only where the text has more keys is each object looked into.
 */
export function findRepeatedJsonKeys(text: string, span: Span, value: unknown): SyntaxFault[] {
  return countKeys(value, maxDepth) === countWrittenKeys(text, span) ? [] : scanRepeatedKeys(text, span);
}

/** How many keys the value holds at all depths; NaN where it nests deeper than `levels`. Scalars need no call. */
function countKeys(value: unknown, levels: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (levels === 0) return Number.NaN;
  let count = 0;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      if (typeof item === 'object') count += countKeys(item, levels - 1);
    }
    return count;
  }
  for (const key in value) {
    count++;
    const inner = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof inner === 'object') count += countKeys(inner, levels - 1);
  }
  return count;
}

/**
 * How many keys are written; NaN where that is not easily told. A colon comes after a key where a quote stands before it that
 * no backslash escapes and that begins no string.
 */
function countWrittenKeys(file: string, { start, end }: Span): number {
  // No search goes on behind the end: there may be a million values there.
  const text = file.slice(start, end);
  let count = 0;
  for (let at = text.indexOf(':'); at >= 0; at = text.indexOf(':', at + 1)) {
    let quote = at - 1;
    while (isBlank(text.charCodeAt(quote))) quote--;
    if (text.charCodeAt(quote) !== doubleQuote) continue;
    const ends = isLetter(text.charCodeAt(quote - 1)) || endsString(text, quote);
    if (ends === undefined) return Number.NaN;
    if (ends) count++;
  }
  return count;
}

/** Nearly all keys end with a letter, and nothing that begins a string does. */
function isLetter(code: number): boolean {
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** Whether a quote ends a string, rather than being one of its characters or beginning one; undefined where that is not easily told. */
function endsString(text: string, quote: number): boolean | undefined {
  let before = quote - 1;
  while (text.charCodeAt(before) === backslash) before--;
  if ((quote - 1 - before) % 2 !== 0) return false;
  if (!mayStartString(text, quote)) return true;
  const starts = startsString(text, quote);
  return starts === undefined ? undefined : !starts;
}

function mayStartString(text: string, quote: number): boolean {
  let before = quote - 1;
  while (isBlank(text.charCodeAt(before))) before--;
  const code = text.charCodeAt(before);
  return code === comma || code === colon || code === openBrace || code === openBracket;
}

/** How far back the start of a line is looked for. */
const mostSteps = 200;

/**
 * Whether a quote begins a string. No string goes beyond a line, so that it depends on the quotes before it in its line;
 * undefined where that is long.
 */
function startsString(text: string, quote: number): boolean | undefined {
  let at = quote - 1;
  const least = quote - mostSteps;
  while (at >= least && text.charCodeAt(at) !== lineFeed) at--;
  if (at < least) return undefined;
  let isOutside = true;
  for (at++; at < quote; at++) {
    const code = text.charCodeAt(at);
    if (code === backslash) at++;
    else if (code === doubleQuote) isOutside = !isOutside;
  }
  return isOutside;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function scanRepeatedKeys(text: string, { start, end }: Span): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  /** The keys of the objects around the place, undefined for a list. */
  const around: (Set<string> | undefined)[] = [];
  let keys: Set<string> | undefined;
  for (let at = start; at < end; at++) {
    switch (text.charCodeAt(at)) {
      case openBrace:
        keys = new Set();
        around.push(keys);
        break;
      case openBracket:
        keys = undefined;
        around.push(keys);
        break;
      case closeBrace:
      case closeBracket:
        around.pop();
        keys = undefined;
        break;
      case comma:
        keys = around.at(-1);
        break;
      case colon:
        keys = undefined;
        break;
      case doubleQuote: {
        const after = skipString(text, at);
        if (keys) {
          const key = readString(text.slice(at, after));
          if (keys.has(key)) faults.push({ offset: at - start, code: 'duplicate-key', arguments: {} });
          keys.add(key);
        }
        at = after - 1;
      }
    }
  }
  return faults;
}

function readString(written: string): string {
  return written.includes('\\') ? (JSON.parse(written) as string) : written.slice(1, -1);
}
