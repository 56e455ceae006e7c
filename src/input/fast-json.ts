import {
  backslash,
  carriageReturn,
  closeBrace,
  closeBracket,
  colon,
  comma,
  dash,
  doubleQuote,
  endOfText,
  isDigit,
  lineFeed,
  openBrace,
  openBracket,
  space,
  tab,
} from './characters.ts';
import { skipString } from './json-parser.ts';
import { KnownKeys } from './known-keys.ts';
import { LeafRecorder, Pattern } from './pattern.ts';
import type { Span } from './split-documents.ts';

/** Deeper nesting is for JSON.parse, which needs no stack for it. */
const maxDepth = 64;

/** Thrown within this file for whatever JSON.parse has to judge; it carries nothing, so one is enough. */
const unsure = new Error('left to JSON.parse');

/**
 * Reads one JSON value from a stretch of a text, for speed: where objects are written alike but for some of their scalars,
 * as those of a cluster are, comparing them with the one before is much cheaper than what JSON.parse does. The value is
 * that of JSON.parse for whatever is accepted, but that values written the same may be the same object; undefined means
 * that JSON.parse has to be asked, because the text holds something rarer, or a mistake. No error is ever found here.
 */
export function readJsonFast(
  text: string,
  span: Span = { start: 0, end: text.length },
  known = new KnownKeys(),
): { readonly value: unknown } | undefined {
  try {
    return { value: new FastReader(text, span).readText(known) };
  } catch (error) {
    if (error === unsure) return undefined;
    throw error;
  }
}

/** The line that starts a YAML document, with a mapping in JSON straight after it. */
const marker = /---[ \n](?=\{)/y;

/**
 * What JSON and YAML take for different things, or YAML not at all: white space, line ends in strings, characters,
 * escapes, numbers without a fraction that are -0, and numbers that are too large.
 */
const doubtful =
  /[\t\r\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]|\\(?:\/|u[dD][89a-fA-F])|-0(?![.\d])|\d[eE][-+]?\d{3}|\d{300}|[^"\n]{1000}":/;

/**
 * Reads a YAML document that is all JSON, as tools print that write a stream of objects; undefined for any other. What
 * JSON means it means as YAML too, but for little.
 */
export function readMarkedJson(
  text: string,
  { start, end }: Span,
  known = new KnownKeys(),
): { readonly value: unknown } | undefined {
  marker.lastIndex = start;
  if (!marker.test(text) || doubtful.test(text.slice(start, end))) return undefined;
  return readJsonFast(text, { start: marker.lastIndex, end }, known);
}

/** One pass over the characters. What reads a value starts with `pos` on its first character, and ends with it after it. */
class FastReader {
  readonly #text: string;
  readonly #end: number;
  #pos: number;
  #depth = 0;
  /** What the pattern that was fitted last leaves open. */
  #scalars: readonly unknown[] = [];
  /** Set while an object is read for a pattern. */
  readonly #recorder: LeafRecorder | undefined;

  constructor(text: string, span: Span, recorder?: LeafRecorder) {
    this.#text = text;
    this.#pos = span.start;
    this.#end = span.end;
    this.#recorder = recorder;
  }

  readText(known: KnownKeys): unknown {
    this.#skipBlanks();
    const value = this.#readValue(known);
    this.#skipBlanks();
    if (this.#pos !== this.#end) throw unsure;
    return value;
  }

  #readValue(known: KnownKeys): unknown {
    switch (this.#charAt(this.#pos)) {
      case openBrace:
        return this.#readObject(known);
      case openBracket:
        return this.#readArray(known);
      default: {
        const start = this.#pos;
        const value = this.#readScalar();
        this.#recorder?.add(start, this.#pos);
        return value;
      }
    }
  }

  #readObject(known: KnownKeys): unknown {
    const pattern = known.findPattern(0, this.#depth, this);
    if (pattern) return pattern.make(this.#scalars);
    const start = this.#pos;
    const value = this.#readNewObject(known);
    const end = this.#pos;
    if (this.#recorder === undefined && known.wantsPattern(end - start)) {
      this.#learnPattern(known, start, end, value);
    }
    return value;
  }

  #readNewObject(known: KnownKeys): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    if (this.#open(closeBrace)) return object;
    let last = known;
    do {
      const key = this.#readKey();
      // The last of two values of one key counts, and '__proto__' must not become a prototype: JSON.parse sees to both.
      if (key === '__proto__' || Object.hasOwn(object, key)) throw unsure;
      last = last.next.find((next) => next.key === key) ?? last.follow(key);
      this.#recorder?.enter(key);
      object[key] = this.#readValue(last.inner);
      this.#recorder?.leave();
    } while (this.#goesOn(closeBrace));
    return object;
  }

  #readArray(known: KnownKeys): unknown[] {
    if (this.#open(closeBracket)) return [];
    // An array that grows from empty reserves room for sixteen; most hold one item.
    const items = [this.#readItem(known, 0)];
    while (this.#goesOn(closeBracket)) items.push(this.#readItem(known, items.length));
    return items;
  }

  #readItem(known: KnownKeys, index: number): unknown {
    this.#recorder?.enter(index);
    const value = this.#readValue(known);
    this.#recorder?.leave();
    return value;
  }

  /** Moves to the first key or item; true for an empty object or array, which is then passed. */
  #open(close: number): boolean {
    if (++this.#depth > maxDepth) throw unsure;
    this.#pos++;
    this.#skipBlanks();
    if (this.#charAt(this.#pos) !== close) return false;
    this.#pos++;
    this.#depth--;
    return true;
  }

  /** After a value: moves to the next key or item, true, or past the end of the object or array, false. */
  #goesOn(close: number): boolean {
    this.#skipBlanks();
    const char = this.#charAt(this.#pos);
    this.#pos++;
    if (char === comma) {
      this.#skipBlanks();
      return true;
    }
    if (char !== close) throw unsure;
    this.#depth--;
    return false;
  }

  /** A key with its colon. */
  #readKey(): string {
    if (this.#charAt(this.#pos) !== doubleQuote) throw unsure;
    const key = this.#readString();
    this.#skipBlanks();
    if (this.#charAt(this.#pos) !== colon) throw unsure;
    this.#pos++;
    this.#skipBlanks();
    return key;
  }

  /**
   * Moves over an object that is written as the pattern says, and leaves its scalars in #scalars; false where it is not,
   * and nothing is moved.
   */
  fits(pattern: Pattern): boolean {
    const text = this.#text;
    const start = this.#pos;
    const { literals } = pattern;
    const scalars: unknown[] = [];
    const last = literals.length - 1;
    let at = start;
    for (let i = 0; i <= last; i++) {
      const literal = literals[i] ?? '';
      if (text.slice(at, at + literal.length) !== literal) break;
      at += literal.length;
      if (i === last) {
        if (at > this.#end) break;
        this.#pos = at;
        this.#scalars = scalars;
        return true;
      }
      this.#pos = at;
      if (!startsScalar(this.#charAt(at))) break;
      scalars.push(this.#readScalar());
      at = this.#pos;
    }
    this.#pos = start;
    return false;
  }

  /** Reads the object once more, to see where its scalars are. */
  #learnPattern(known: KnownKeys, start: number, end: number, value: object): void {
    const recorder = new LeafRecorder();
    new FastReader(this.#text, { start, end }, recorder).#readNewObject(KnownKeys.forgotten(''));
    known.learn(Pattern.of({ column: 0, depth: this.#depth }, value, this.#text, start, end, recorder));
  }

  #readScalar(): unknown {
    const char = this.#charAt(this.#pos);
    if (char === doubleQuote) return this.#readString();
    if (char === dash || isDigit(char)) return this.#readNumber();
    for (const [word, value] of words) {
      if (!this.#text.startsWith(word, this.#pos)) continue;
      this.#pos += word.length;
      return value;
    }
    throw unsure;
  }

  #readString(): string {
    const text = this.#text;
    const start = this.#pos + 1;
    for (let at = start; at < this.#end; at++) {
      const char = text.charCodeAt(at);
      if (char === doubleQuote) {
        this.#pos = at + 1;
        return text.slice(start, at);
      }
      if (char === backslash) return this.#readEscaped();
      if (char < space) throw unsure;
    }
    throw unsure;
  }

  /** A string with a backslash in it. */
  #readEscaped(): string {
    const start = this.#pos;
    this.#pos = skipString(this.#text, start);
    if (this.#pos > this.#end) throw unsure;
    try {
      return JSON.parse(this.#text.slice(start, this.#pos)) as string;
    } catch {
      throw unsure;
    }
  }

  #readNumber(): number {
    number.lastIndex = this.#pos;
    const found = number.exec(this.#text)?.[0];
    if (found === undefined) throw unsure;
    this.#pos += found.length;
    return Number(found);
  }

  #skipBlanks(): void {
    while (isBlank(this.#charAt(this.#pos))) this.#pos++;
  }

  #charAt(offset: number): number {
    return offset < this.#end ? this.#text.charCodeAt(offset) : endOfText;
  }
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const words = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const;

const wordStarts: ReadonlySet<number> = new Set(words.map(([word]) => word.charCodeAt(0)));

function isBlank(char: number): boolean {
  return char === space || char === lineFeed || char === carriageReturn || char === tab;
}

function startsScalar(char: number): boolean {
  return char === doubleQuote || char === dash || isDigit(char) || wordStarts.has(char);
}
