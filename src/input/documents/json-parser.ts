import { backslash, closeBrace, closeBracket, comma, doubleQuote, openBrace, openBracket } from './characters.ts';
import { printParseErrorCode, visit, type ParseErrorCode } from 'jsonc-parser';
import type { FieldPath } from '../../cluster/objects.ts';
import { tooDeep, type SyntaxFault } from './syntax-fault.ts';
import type { PositionOf } from '../yaml/parse.ts';

/** More than these help no reader, and a megabyte can have a million. */
const mostFaults = 100;

/** What is wrong first with a JSON text, in the order of the text; empty for what JSON.parse takes. */
export function findJsonFaults(text: string): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  const enough = new Error('enough faults');
  const onError = (error: ParseErrorCode, offset: number): void => {
    const reason = describe(printParseErrorCode(error));
    faults.push({ offset, code: 'bad-json', arguments: { problem: 'invalid', reason } });
    if (faults.length === mostFaults) throw enough;
  };
  try {
    visit(text, { onError }, { disallowComments: true, allowTrailingComma: false });
  } catch (error) {
    if (error === enough) return faults;
    // It calls itself for each level.
    if (!(error instanceof RangeError)) throw error;
    return [tooDeep];
  }
  return faults;
}

/** "CloseBraceExpected" → "close brace expected". */
function describe(code: string): string {
  return code.replace(/(?!^)([A-Z])/g, ' $1').toLowerCase();
}

/**
 * The offset of a field of the JSON value that starts at `start`, or of the nearest field above it that is written
 * down. The text is known to be valid there. Builds nothing, so that a list of many megabytes costs one scan.
 */
export function locateInJson(text: string, start: number, path: FieldPath, of: PositionOf): number {
  let at = skipBlanks(text, start);
  for (const [i, step] of path.entries()) {
    const opening = text.charCodeAt(at);
    if (opening === openBrace) {
      const property = findProperty(text, at, String(step));
      if (!property) return at;
      at = of === 'key' && i === path.length - 1 ? property.key : property.value;
    } else if (opening === openBracket) {
      const item = itemOffsets(text, at, Number(step) + 1).at(Number(step));
      if (item === undefined) return at;
      at = item;
    } else {
      return at;
    }
  }
  return at;
}

/** Where the first items of the array at `start` stand, `limit` of them at most. */
export function itemOffsets(text: string, start: number, limit = Number.POSITIVE_INFINITY): number[] {
  const offsets: number[] = [];
  let at = skipBlanks(text, start + 1);
  while (offsets.length < limit && at < text.length && text.charCodeAt(at) !== closeBracket) {
    offsets.push(at);
    at = skipBlanks(text, skipValue(text, at));
    if (text.charCodeAt(at) === comma) at = skipBlanks(text, at + 1);
  }
  return offsets;
}

function findProperty(text: string, start: number, name: string): { key: number; value: number } | undefined {
  let found: { key: number; value: number } | undefined;
  let key = skipBlanks(text, start + 1);
  while (key < text.length && text.charCodeAt(key) !== closeBrace) {
    const keyEnd = skipString(text, key);
    const value = skipBlanks(text, skipBlanks(text, keyEnd) + 1);
    // Of a key that is there twice, the last counts.
    if (JSON.parse(text.slice(key, keyEnd)) === name) found = { key, value };
    key = skipBlanks(text, skipValue(text, value));
    if (text.charCodeAt(key) === comma) key = skipBlanks(text, key + 1);
  }
  return found;
}

/** The offset after the JSON value that starts at `start`. */
export function skipValue(text: string, start: number): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    switch (text.charCodeAt(at)) {
      case doubleQuote:
        at = skipString(text, at);
        if (depth === 0) return at;
        continue;
      case openBrace:
      case openBracket:
        depth++;
        break;
      case closeBrace:
      case closeBracket:
        if (depth === 0) return at;
        depth--;
        if (depth === 0) return at + 1;
        break;
      case comma:
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        if (depth === 0) return at;
    }
    at++;
  }
  return at;
}

/** The offset after the JSON string that starts at `start`; the text's end where it does not end. */
export function skipString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
  return text.length;
}

function skipBlanks(text: string, start: number): number {
  let at = start;
  for (let code = text.charCodeAt(at); code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;) {
    code = text.charCodeAt(++at);
  }
  return at;
}
