import {
  backslash,
  dash,
  dot,
  doubleQuote,
  endOfText,
  hash,
  isDigit,
  plus,
  singleQuote,
  space,
  tab,
  zero,
} from '../characters.ts';
import { Refusal, refuse } from '../syntax-fault.ts';
import { isBlank, isBreak, isBreakOrEnd, isSpaceOrEnd } from './cursor.ts';
import type { Cursor } from './cursor.ts';

/** Blanks and line ends between two words of a scalar, which may fold. */
class Gap {
  #blanks = '';
  #firstBreak = '';
  #otherBreaks = '';
  /** Whether a line ended. */
  #broken = false;

  /** Begins as if a line had ended, for one that ended escaped. */
  startBroken(): void {
    this.#broken = true;
  }

  get isBroken(): boolean {
    return this.#broken;
  }

  /** Moves over what is left of the gap. `checkTab` may refuse a tab at the start of a line. */
  read(cursor: Cursor, checkTab?: () => void): void {
    for (;;) {
      const code = cursor.peek();
      if (isBlank(code)) {
        if (this.#broken && code === tab) checkTab?.();
        if (!this.#broken) this.#blanks += String.fromCharCode(code);
        cursor.skip();
      } else if (!isBreak(code)) {
        return;
      } else if (this.#broken) {
        this.#otherBreaks += cursor.readBreak();
      } else {
        this.#firstBreak = cursor.readBreak();
        this.#broken = true;
      }
    }
  }

  /** What the gap is in the value. */
  fold(): string {
    if (!this.#broken) return this.#blanks;
    if (this.#firstBreak !== '\n') return this.#firstBreak + this.#otherBreaks;
    return this.#otherBreaks === '' ? ' ' : this.#otherBreaks;
  }
}

/** Whether a line begins here that is "---" or "...", with nothing or more behind it. */
export function atDocumentMarker(cursor: Cursor): boolean {
  if (cursor.column !== 0) return false;
  const code = cursor.peek();
  if (code !== dash && code !== dot) return false;
  return cursor.peek(1) === code && cursor.peek(2) === code && isSpaceOrEnd(cursor.peek(3));
}

const flowIndicators: ReadonlySet<number> = new Set(Array.from(',?[]{}', (char) => char.charCodeAt(0)));

/** A plain scalar in a block that is indented by `indent`; where a line ended in or after it, `broken` is true. */
export function scanPlain(
  cursor: Cursor,
  indent: number,
  inFlow: boolean,
): { readonly value: string; readonly end: number; readonly broken: boolean } {
  let value = '';
  let end = cursor.offset;
  let gap = new Gap();
  for (;;) {
    if (atDocumentMarker(cursor) || cursor.peek() === hash) break;
    const start = cursor.offset;
    while (!atPlainEnd(cursor, inFlow)) cursor.skip();
    if (cursor.offset > start) {
      value += gap.fold() + cursor.text.slice(start, cursor.offset);
      end = cursor.offset;
      gap = new Gap();
    }
    if (!isBlank(cursor.peek()) && !isBreak(cursor.peek())) break;
    gap.read(cursor, () => {
      if (cursor.column <= indent) refuseTab(cursor.offset);
    });
    if (!inFlow && cursor.column <= indent) break;
  }
  return { value, end, broken: gap.isBroken };
}

function atPlainEnd(cursor: Cursor, inFlow: boolean): boolean {
  const code = cursor.peek();
  if (isSpaceOrEnd(code)) return true;
  if (code === 0x3a && isSpaceOrEnd(cursor.peek(1))) return true;
  return inFlow && flowIndicators.has(code);
}

/** Refuses a tab where only spaces can be. */
export function refuseTab(offset: number): never {
  throw new Refusal({ offset, code: 'yaml-tab', arguments: {} });
}

/** A scalar in quotes; the cursor is then behind it. */
export function scanQuoted(cursor: Cursor): string {
  const start = cursor.offset;
  const quote = cursor.peek();
  cursor.skip();
  const pieces: string[] = [];
  for (;;) {
    if (atDocumentMarker(cursor) || cursor.peek() === endOfText) refuse(start, { problem: 'open-quote' });
    const gap = new Gap();
    if (quote === singleQuote) scanSingleQuotedWord(cursor, pieces);
    else scanDoubleQuotedWord(cursor, pieces, gap);
    if (cursor.peek() === quote) break;
    gap.read(cursor);
    pieces.push(gap.fold());
  }
  cursor.skip();
  return pieces.join('');
}

function scanSingleQuotedWord(cursor: Cursor, pieces: string[]): void {
  let start = cursor.offset;
  while (!isSpaceOrEnd(cursor.peek())) {
    if (cursor.peek() !== singleQuote) {
      cursor.skip();
      continue;
    }
    if (cursor.peek(1) !== singleQuote) break;
    cursor.skip();
    pieces.push(cursor.text.slice(start, cursor.offset));
    cursor.skip();
    start = cursor.offset;
  }
  pieces.push(cursor.text.slice(start, cursor.offset));
}

function scanDoubleQuotedWord(cursor: Cursor, pieces: string[], gap: Gap): void {
  let start = cursor.offset;
  while (!isSpaceOrEnd(cursor.peek()) && cursor.peek() !== doubleQuote) {
    if (cursor.peek() !== backslash) {
      cursor.skip();
      continue;
    }
    pieces.push(cursor.text.slice(start, cursor.offset));
    if (isBreak(cursor.peek(1))) {
      cursor.skip();
      cursor.readBreak();
      gap.startBroken();
      return;
    }
    pieces.push(scanEscape(cursor));
    start = cursor.offset;
  }
  pieces.push(cursor.text.slice(start, cursor.offset));
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['0', '\0'],
  ['a', '\u0007'],
  ['b', '\b'],
  ['t', '\t'],
  ['\t', '\t'],
  ['n', '\n'],
  ['v', '\v'],
  ['f', '\f'],
  ['r', '\r'],
  ['e', '\u001B'],
  [' ', ' '],
  ['"', '"'],
  ["'", "'"],
  ['\\', '\\'],
  ['N', '\u0085'],
  ['_', '\u00A0'],
  ['L', '\u2028'],
  ['P', '\u2029'],
]);

const codeLengths: ReadonlyMap<string, number> = new Map([
  ['x', 2],
  ['u', 4],
  ['U', 8],
]);

function scanEscape(cursor: Cursor): string {
  const { offset, text } = cursor;
  const name = text.charAt(offset + 1);
  const length = codeLengths.get(name);
  if (length === undefined) {
    const char = escapes.get(name);
    if (char === undefined) refuse(offset, { problem: 'escape', name });
    cursor.skipMany(2);
    return char;
  }
  const digits = text.slice(offset + 2, offset + 2 + length);
  const code = Number.parseInt(digits, 16);
  if (!/^[\da-fA-F]+$/.test(digits) || digits.length < length) {
    refuse(offset, { problem: 'escape-length', name, digits: length });
  }
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    refuse(offset, { problem: 'escaped-character', escape: `${name}${digits}` });
  }
  cursor.skipMany(2 + length);
  return String.fromCodePoint(code);
}

/** A block scalar below a key or dash in the column `parentIndent`, -1 at the top. */
export function scanBlockScalar(cursor: Cursor, parentIndent: number): string {
  const start = cursor.offset;
  const isLiteral = cursor.peek() === 0x7c;
  cursor.skip();
  const { chomping, increment } = scanBlockHeader(cursor, start);
  const block = new BlockLines(cursor, parentIndent, increment);
  let value = '';
  let lineEnd = '';
  let breaks = block.readBreaks();
  let startedBlank = false;
  while (cursor.column === block.indent && cursor.peek() !== endOfText) {
    const startsBlank = isBlank(cursor.peek());
    const folds = !isLiteral && !startedBlank && !startsBlank && lineEnd === '\n';
    if (!folds) value += lineEnd;
    else if (breaks === '') value += ' ';
    value += breaks;
    startedBlank = startsBlank;
    const from = cursor.offset;
    while (!isBreakOrEnd(cursor.peek())) cursor.skip();
    value += cursor.text.slice(from, cursor.offset);
    lineEnd = cursor.readBreak();
    breaks = block.readBreaks();
  }
  if (chomping === dash) return value;
  return value + lineEnd + (chomping === plus ? breaks : '');
}

/** The rest of the line of "|" or ">": how the end is kept, and how far the lines are indented, 0 where it is not said. */
function scanBlockHeader(cursor: Cursor, start: number): { readonly chomping: number; readonly increment: number } {
  let chomping = 0;
  let increment = 0;
  const takeChomping = (): void => {
    if (chomping !== 0 || (cursor.peek() !== plus && cursor.peek() !== dash)) return;
    chomping = cursor.peek();
    cursor.skip();
  };
  takeChomping();
  if (isDigit(cursor.peek())) {
    increment = cursor.peek() - zero;
    if (increment === 0) refuse(cursor.offset, { problem: 'indent-of-zero' });
    cursor.skip();
  }
  takeChomping();
  cursor.skipBlanks();
  cursor.skipComment();
  if (!isBreakOrEnd(cursor.peek())) refuse(start, { problem: 'text-after-block-sign' });
  cursor.readBreak();
  return { chomping, increment };
}

/** Finds the lines of a block scalar, and how far they are indented. */
class BlockLines {
  indent: number;
  readonly #cursor: Cursor;
  readonly #parentIndent: number;

  constructor(cursor: Cursor, parentIndent: number, increment: number) {
    this.#cursor = cursor;
    this.#parentIndent = parentIndent;
    this.indent = increment === 0 ? 0 : Math.max(parentIndent, 0) + increment;
  }

  /** Moves over indentation and the ends of empty lines, which it returns, to the next line that holds anything. */
  readBreaks(): string {
    const cursor = this.#cursor;
    let breaks = '';
    let widest = 0;
    for (;;) {
      while (this.#isIndentation() && cursor.peek() === space) cursor.skip();
      widest = Math.max(widest, cursor.column);
      if (this.#isIndentation() && cursor.peek() === tab) refuseTab(cursor.offset);
      if (!isBreak(cursor.peek())) break;
      breaks += cursor.readBreak();
    }
    if (this.indent === 0) this.indent = Math.max(widest, this.#parentIndent + 1, 1);
    return breaks;
  }

  #isIndentation(): boolean {
    return this.indent === 0 || this.#cursor.column < this.indent;
  }
}
