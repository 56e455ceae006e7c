import type { Span } from '../documents/text-file.ts';
import { KnownKeys, Leaf, type Example, type Pattern } from './known-keys.ts';
import { resolvePlainScalar } from './scalars.ts';

/** Codes of the characters that a text is read by, and the value that marks its end. */
const lineFeed = 0x0a;
const space = 0x20;
const doubleQuote = 0x22;
const hash = 0x23;
const singleQuote = 0x27;
const plus = 0x2b;
const comma = 0x2c;
const dash = 0x2d;
const dot = 0x2e;
const zero = 0x30;
const nine = 0x39;
const colon = 0x3a;
const greater = 0x3e;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const pipe = 0x7c;
const closeBrace = 0x7d;
const endOfText = -1;

function isDigit(char: number): boolean {
  return char >= zero && char <= nine;
}

/** Signs other than letters and digits that a plain scalar starts with here. */
const plainStarts = codesOf('$()+-./:;\\^_~');
/** Signs in plain words of flow collections. */
const flowWordSigns = codesOf('+-./_~');

function codesOf(signs: string): ReadonlySet<number> {
  return new Set(Array.from(signs, (sign) => sign.charCodeAt(0)));
}

/** Deeper nesting is for the full parser, and a document made to exhaust the stack. */
const maxDepth = 64;
/** The full parser takes keys of up to 1024 characters, counted its own way. */
const maxKeyLength = 512;
/** A number with more digits may be too large to be one. */
const maxDigits = 300;
/** Thrown within this file for whatever only the full parser can decide; it carries nothing, so one is enough. */
const unsure = new Error('left to the full YAML parser');

/**
 * Reads one YAML document (without directives, with or without its "---" line) from a stretch of a text, for speed:
 * a document of the plain kind that kubectl prints and people write. The value is the full parser's, of
 * parseYamlValue, for whatever is accepted; undefined means that the full parser has to be asked, because the document
 * holds something rarer, or a mistake. No error is ever found here.
 */
export function readYamlFast(
  text: string,
  span: Span = { start: 0, end: text.length },
  known = new KnownKeys(),
): { readonly value: unknown } | undefined {
  const fast = attempt(() => new FastReader(text, span).readDocument(known));
  const document = fast ? '' : text.slice(span.start, span.end);
  if (!document.includes('\r\n')) return fast;
  // Lines that end as on Windows mean what they do without the carriage return, in any kind of scalar.
  const lines = document.replaceAll('\r\n', '\n');
  return attempt(() => new FastReader(lines, { start: 0, end: lines.length }).readDocument(known));
}

/** What is read; undefined if only the full parser can read it. */
function attempt<Value>(read: () => Value): { readonly value: Value } | undefined {
  try {
    return { value: read() };
  } catch (error) {
    if (error === unsure) return undefined;
    throw error;
  }
}

/**
 * One pass over the characters. Each method that reads a value starts with `pos` on its first character and ends with
 * `pos` on the first character of the next line that holds anything, and that line's indentation in `column`.
 */
class FastReader {
  readonly #text: string;
  readonly #end: number;
  #pos: number;
  /** Of the first character at `pos` in its line; -1 at the end of the document. */
  #column = 0;
  #depth = 0;
  /** Whether #toContent passed a comment. */
  #passedComment = false;
  /** Where the plain scalar that was scanned last ends. */
  #plainEnd = 0;
  /** What the pattern that was fitted last leaves open. */
  #scalars: readonly unknown[] = [];
  /** Where the last line ended that held anything, or its comment began. */
  #contentEnd = 0;
  /** Set while a mapping is read for a pattern: its plain scalars, which take the place of their values. */
  readonly #leaves: Leaf[] | undefined;

  constructor(text: string, span: Span, leaves?: Leaf[]) {
    this.#text = text;
    this.#pos = span.start;
    this.#end = span.end;
    this.#leaves = leaves;
  }

  readDocument(known: KnownKeys): unknown {
    this.#toFirstContent();
    if (this.#column < 0) return null;
    const value = this.#readBlock(known);
    if (this.#column >= 0) throw unsure;
    return value;
  }

  #toFirstContent(): void {
    if (this.#text.startsWith('---', this.#pos)) {
      this.#pos += 3;
      this.#endLine();
      return;
    }
    const start = this.#pos;
    this.#refuseMarker(start);
    this.#skipSpaces();
    const char = this.#charAt(this.#pos);
    if (char === lineFeed || char === hash) this.#toContent();
    else this.#column = this.#pos < this.#end ? this.#pos - start : -1;
  }

  /** A mapping or a sequence that starts at `pos`. */
  #readBlock(known: KnownKeys): unknown {
    return this.#atSequence() ? this.#readSequence(known) : this.#readMapping(known);
  }

  #atSequence(): boolean {
    return this.#charAt(this.#pos) === dash && isBlank(this.#charAt(this.#pos + 1));
  }

  #readMapping(known: KnownKeys): unknown {
    const column = this.#column;
    for (const pattern of known.patterns) {
      if (pattern.column === column && this.#fits(pattern)) return pattern.make(this.#scalars);
    }
    const start = this.#pos;
    const value = this.#readNewMapping(known);
    const end = this.#contentEnd;
    if (!this.#leaves && known.wantsPattern(end - start)) {
      const example = attempt(() => this.#readExample(start, end, column));
      if (example) known.learn(example.value);
    }
    return value;
  }

  #readNewMapping(known: KnownKeys): Record<string, unknown> {
    const column = this.#column;
    const mapping: Record<string, unknown> = {};
    let last = known;
    this.#enter();
    do {
      last = this.#readKey(last, mapping);
      mapping[last.key] = this.#readMappingValue(column, last);
    } while (this.#column === column);
    this.#leave(column);
    return mapping;
  }

  /**
   * Moves over a mapping that is written as the pattern says, and leaves its scalars in #scalars; false if it is not,
   * and nothing is moved.
   */
  #fits(pattern: Pattern): boolean {
    const text = this.#text;
    const start = this.#pos;
    const column = this.#column;
    const { literals } = pattern;
    const scalars: unknown[] = [];
    const last = literals.length - 1;
    let at = start;
    for (let i = 0; i <= last; i++) {
      const literal = literals[i] ?? '';
      // A comparison with a slice is one of memory; startsWith compares characters.
      if (text.slice(at, at + literal.length) !== literal) break;
      at += literal.length;
      if (i < last) {
        this.#pos = at;
        if (!this.#atPlain()) break;
        this.#scanPlainRest();
        scalars.push(this.#resolve(at, this.#plainEnd));
        at = this.#plainEnd;
      } else if (at <= this.#end && (at === this.#end || this.#charAt(at) === lineFeed)) {
        this.#pos = at;
        this.#toContent();
        // In the same column the mapping goes on, further in its last value does.
        if (this.#column >= column) break;
        this.#scalars = scalars;
        return true;
      }
    }
    this.#pos = start;
    this.#column = column;
    return false;
  }

  /** Reads the mapping once more, to see where its plain scalars are. */
  #readExample(start: number, end: number, column: number): Example {
    const text = this.#text;
    const leaves: Leaf[] = [];
    const reader = new FastReader(text, { start, end }, leaves);
    reader.#column = column;
    const value = reader.#readNewMapping(new KnownKeys());
    const texts = leaves.map((leaf) => text.slice(leaf.start, leaf.end));
    const between = [...leaves, { start: end }].map((leaf, i) => text.slice(leaves[i - 1]?.end ?? start, leaf.start));
    return { column, value, leaves, texts, between };
  }

  #readSequence(known: KnownKeys): unknown[] {
    const column = this.#column;
    this.#enter();
    // An array that grows from empty reserves room for sixteen; most hold one item.
    const items = [this.#readItem(column, known)];
    while (this.#column === column && this.#atSequence()) items.push(this.#readItem(column, known));
    this.#leave(column);
    return items;
  }

  #enter(): void {
    if (++this.#depth > maxDepth) throw unsure;
  }

  /** What follows a collection must belong to one further out. */
  #leave(column: number): void {
    if (this.#column > column) throw unsure;
    this.#depth--;
  }

  /** Reads a key with its colon. */
  #readKey(last: KnownKeys, mapping: Record<string, unknown>): KnownKeys {
    for (const known of last.next) {
      const end = this.#pos + known.written.length;
      if (
        this.#charAt(end) === colon &&
        this.#text.startsWith(known.written, this.#pos) &&
        isBlank(this.#charAt(end + 1))
      ) {
        this.#pos = end + 1;
        return known;
      }
    }
    const start = this.#pos;
    const first = this.#charAt(start);
    const isQuoted = first === doubleQuote || first === singleQuote;
    const key = isQuoted ? this.#readQuoted(-1) : this.#readPlainKey();
    if (this.#charAt(this.#pos) !== colon || !isBlank(this.#charAt(this.#pos + 1))) throw unsure;
    if (this.#pos - start > maxKeyLength) throw unsure;
    this.#checkKey(key, mapping);
    return last.follow(key, this.#text.slice(start, this.#pos++));
  }

  #readPlainKey(): string {
    const start = this.#pos;
    this.#scanPlain();
    const key = this.#resolve(start, this.#plainEnd);
    if (typeof key !== 'string' || this.#pos !== this.#plainEnd) throw unsure;
    return key;
  }

  /** A key that comes twice is an error, '<<' may merge, and '__proto__' must not become a prototype. */
  #checkKey(key: string, mapping: Record<string, unknown>): void {
    if (key === '__proto__' || key === '<<' || Object.hasOwn(mapping, key)) throw unsure;
  }

  #readMappingValue(column: number, known: KnownKeys): unknown {
    this.#skipSpaces();
    if (!this.#atLineEnd()) return this.#readInline(column);
    this.#toContent();
    if (this.#column > column) return this.#readBlock(known.inner);
    return this.#column === column && this.#atSequence() ? this.#readSequence(known.inner) : null;
  }

  #readItem(column: number, known: KnownKeys): unknown {
    const start = this.#pos++;
    this.#skipSpaces();
    if (this.#atLineEnd()) {
      this.#toContent();
      return this.#column > column ? this.#readBlock(known) : null;
    }
    this.#column = column + this.#pos - start;
    if (this.#atSequence()) return this.#readSequence(known);
    return this.#atKey(column) ? this.#readMapping(known) : this.#readInline(column);
  }

  /** Whether there is a key with its colon at `pos`, and not some other value of an item whose dash is in `column`. */
  #atKey(column: number): boolean {
    const start = this.#pos;
    const first = this.#charAt(start);
    if (first === openBrace || first === openBracket || first === pipe || first === greater) return false;
    if (first === doubleQuote || first === singleQuote) this.#scanQuoted(column);
    else this.#scanPlain();
    const isKey = this.#charAt(this.#pos) === colon;
    this.#pos = start;
    return isKey;
  }

  /** A value that starts on the line of its key or dash, which is in `column`. */
  #readInline(column: number): unknown {
    const first = this.#charAt(this.#pos);
    if (first === pipe || first === greater) return this.#readBlockScalar(column);
    const isQuoted = first === doubleQuote || first === singleQuote;
    if (!isQuoted && first !== openBrace && first !== openBracket) return this.#readPlain(column);
    const value = isQuoted ? this.#readQuoted(column) : this.#readFlow();
    this.#endLine();
    return value;
  }

  #readPlain(column: number): unknown {
    const start = this.#pos;
    this.#scanPlain();
    const end = this.#plainEnd;
    const stop = this.#charAt(this.#pos);
    if (stop === colon) throw unsure;
    this.#toContent();
    if (stop !== hash && this.#column > column) return this.#readFolded(start, column);
    const value = this.#resolve(start, end);
    if (!this.#leaves || stop === hash) return value;
    const leaf = new Leaf(start, end, value);
    this.#leaves.push(leaf);
    return leaf;
  }

  /** A plain scalar that goes on in further lines, the first of which is at `pos`. */
  #readFolded(start: number, column: number): unknown {
    if (this.#leaves) throw unsure;
    for (;;) {
      if (this.#passedComment) throw unsure;
      this.#scanPlainRest();
      const stop = this.#charAt(this.#pos);
      if (stop === colon) throw unsure;
      const lineEnd = this.#plainEnd;
      this.#toContent();
      if (stop === hash || this.#column <= column) return resolveFinite(foldLines(this.#text.slice(start, lineEnd)));
    }
  }

  /** Moves over the part of a plain scalar that is on this line: to the line's end, a comment, or the colon of a key. */
  #scanPlain(): void {
    if (!this.#atPlain()) throw unsure;
    this.#scanPlainRest();
  }

  #atPlain(): boolean {
    const first = this.#charAt(this.#pos);
    if ((first === dash || first === colon) && isBlank(this.#charAt(this.#pos + 1))) return false;
    return startsPlain(first);
  }

  #scanPlainRest(): void {
    const text = this.#text;
    const end = this.#end;
    let at = this.#pos;
    let plainEnd = at;
    for (; at < end; at++) {
      const char = text.charCodeAt(at);
      if (char > colon) {
        if (char >= 0x7f && isOdd(char)) throw unsure;
        plainEnd = at + 1;
      } else if (char === lineFeed) {
        break;
      } else if (char === colon) {
        if (isBlank(this.#charAt(at + 1))) break;
        plainEnd = at + 1;
      } else if (char > space) {
        if (char === hash && plainEnd !== at) break;
        plainEnd = at + 1;
      } else if (char !== space) {
        throw unsure;
      }
    }
    this.#pos = at;
    this.#plainEnd = plainEnd;
  }

  /** The value of a plain scalar on one line: what resolvePlainScalar says, with short cuts to it. */
  #resolve(start: number, end: number): unknown {
    const text = this.#text;
    const first = text.charCodeAt(start);
    if (first >= zero && first <= nine) {
      let at = start + 1;
      while (at < end && isDigit(text.charCodeAt(at))) at++;
      // A leading zero means octal.
      if (at === end && (first !== zero || end - start === 1) && end - start <= maxDigits)
        return Number(text.slice(start, end));
      if (at < end && text.charCodeAt(at) === dot) {
        at++;
        while (at < end && isDigit(text.charCodeAt(at))) at++;
        // A second dot: an IPv4 address or a version.
        if (at < end && text.charCodeAt(at) === dot) return text.slice(start, end);
      }
      return resolveFinite(text.slice(start, end));
    }
    const isLetter = first >= 0x41 && first <= 0x7a;
    // The longest of the words that mean something else than their text is "false".
    if (isLetter && end - start > 5) return text.slice(start, end);
    if (end - start === 4 && text.startsWith('true', start)) return true;
    if (end - start === 5 && text.startsWith('false', start)) return false;
    return resolveFinite(text.slice(start, end));
  }

  /** A quoted scalar; `pos` is then after it. It may go on in lines that are indented deeper than `column`, if not -1. */
  #readQuoted(column: number): string {
    const start = this.#pos + 1;
    const isDouble = this.#charAt(this.#pos) === doubleQuote;
    const isPlain = this.#scanQuoted(column);
    const raw = this.#text.slice(start, this.#pos - 1);
    if (isPlain) return raw;
    return isDouble ? unescapeDouble(raw) : foldLines(raw).replaceAll("''", "'");
  }

  /** Moves over a quoted scalar; true if its text needs no decoding. */
  #scanQuoted(column: number): boolean {
    const quote = this.#charAt(this.#pos);
    let isPlain = true;
    for (let at = this.#pos + 1; at < this.#end; at++) {
      const char = this.#text.charCodeAt(at);
      if (char === quote) {
        if (quote === doubleQuote || this.#charAt(at + 1) !== singleQuote) {
          this.#pos = at + 1;
          return isPlain;
        }
        isPlain = false;
        at++;
      } else if (char === backslash && quote === doubleQuote) {
        isPlain = false;
        if (this.#charAt(at + 1) !== lineFeed) at++;
      } else if (char === lineFeed) {
        isPlain = false;
        if (column < 0) throw unsure;
        this.#checkContinuation(at + 1, column);
      } else if (isOdd(char)) {
        throw unsure;
      }
    }
    throw unsure;
  }

  #checkContinuation(start: number, column: number): void {
    let at = start;
    while (this.#charAt(at) === space) at++;
    if (this.#charAt(at) !== lineFeed && at - start <= column) throw unsure;
  }

  /** A flow mapping or sequence on one line; `pos` is then after it. */
  #readFlow(): unknown {
    this.#enter();
    const isMapping = this.#charAt(this.#pos++) === openBrace;
    const close = isMapping ? closeBrace : closeBracket;
    const mapping: Record<string, unknown> = {};
    const items: unknown[] = [];
    this.#skipSpaces();
    for (let isFirst = true; this.#charAt(this.#pos) !== close; isFirst = false) {
      if (!isFirst) {
        if (this.#charAt(this.#pos++) !== comma) throw unsure;
        this.#skipSpaces();
      }
      if (isMapping) {
        const key = this.#readFlowKey();
        this.#checkKey(key, mapping);
        this.#skipSpaces();
        mapping[key] = this.#readFlowValue();
      } else items.push(this.#readFlowValue());
      this.#skipSpaces();
    }
    this.#pos++;
    this.#depth--;
    return isMapping ? mapping : items;
  }

  #readFlowKey(): string {
    const start = this.#pos;
    const first = this.#charAt(start);
    const isQuoted = first === doubleQuote || first === singleQuote;
    const key = isQuoted ? this.#readQuoted(-1) : this.#readFlowPlain();
    if (typeof key !== 'string' || this.#pos - start > maxKeyLength) throw unsure;
    if (this.#charAt(this.#pos) !== colon) throw unsure;
    this.#pos++;
    if (!isQuoted && this.#charAt(this.#pos) !== space) throw unsure;
    return key;
  }

  #readFlowValue(): unknown {
    const first = this.#charAt(this.#pos);
    if (first === doubleQuote || first === singleQuote) return this.#readQuoted(-1);
    return first === openBrace || first === openBracket ? this.#readFlow() : this.#readFlowPlain();
  }

  #readFlowPlain(): unknown {
    const start = this.#pos;
    while (isFlowWord(this.#charAt(this.#pos))) this.#pos++;
    if (this.#pos === start || (this.#charAt(start) === dash && !/[\d.]/.test(this.#text.charAt(start + 1))))
      throw unsure;
    return this.#resolve(start, this.#pos);
  }

  /** A block scalar below a key or dash in `column`, without an indentation indicator. */
  #readBlockScalar(column: number): string {
    if (this.#leaves) throw unsure;
    const isLiteral = this.#charAt(this.#pos++) === pipe;
    const chomping = this.#charAt(this.#pos);
    if (chomping === dash || chomping === plus) this.#pos++;
    this.#skipSpaces();
    if (this.#charAt(this.#pos) !== lineFeed) throw unsure;
    const lines = this.#readBlockLines(column, isLiteral).join('\n');
    this.#toContent();
    let end = lines.length;
    while (lines[end - 1] === '\n') end--;
    if (end === 0) throw unsure;
    const content = lines.slice(0, end);
    const value = isLiteral ? content : content.replaceAll(/(?<=[^\n])\n+/g, foldBlanks);
    if (chomping === dash) return value;
    return `${value}\n${chomping === plus ? lines.slice(end) : ''}`;
  }

  /** The lines of a block scalar, without their indentation; `pos` is then on the line feed after the last one. */
  #readBlockLines(column: number, isLiteral: boolean): string[] {
    const lines: string[] = [];
    let indent = -1;
    let widestBlank = 0;
    while (this.#pos + 1 < this.#end) {
      const start = this.#pos + 1;
      let at = start;
      while (this.#charAt(at) === space) at++;
      if (at === this.#end) throw unsure;
      const width = at - start;
      const isBlankLine = this.#charAt(at) === lineFeed;
      if (isBlankLine) widestBlank = Math.max(widestBlank, width);
      else {
        if (indent < 0 && width > column) indent = width;
        if (width <= column && (indent < 0 || width < indent)) break;
        if (width < indent || (!isLiteral && width > indent)) throw unsure;
        at = this.#skipLine(at);
      }
      lines.push(isBlankLine ? '' : this.#text.slice(start + indent, at));
      this.#pos = at;
    }
    // Blanks beyond the indentation are content, or an error before the first line.
    if (widestBlank > indent) throw unsure;
    return lines;
  }

  /** After a value: blanks, a comment, and on to the next line with content. */
  #endLine(): void {
    const start = this.#pos;
    this.#skipSpaces();
    if (!this.#atLineEnd()) throw unsure;
    if (this.#charAt(this.#pos) === hash && this.#pos === start) throw unsure;
    this.#toContent();
  }

  #atLineEnd(): boolean {
    const char = this.#charAt(this.#pos);
    return char === lineFeed || char === hash || char === endOfText;
  }

  /** From the end of a line, or a comment, to the next line that holds anything. */
  #toContent(): void {
    const text = this.#text;
    const end = this.#end;
    let at = this.#pos;
    this.#contentEnd = at;
    this.#passedComment = false;
    for (;;) {
      if (at < end && text.charCodeAt(at) === hash) {
        this.#passedComment = true;
        at = this.#skipLine(at);
      }
      const start = at + 1;
      at = start;
      while (at < end && text.charCodeAt(at) === space) at++;
      if (at >= end) {
        this.#pos = end;
        this.#column = -1;
        return;
      }
      const char = text.charCodeAt(at);
      if (char !== lineFeed && char !== hash) {
        if (at === start) this.#refuseMarker(at);
        this.#pos = at;
        this.#column = at - start;
        return;
      }
    }
  }

  /** A line that begins like the end or the start of a document is hardly ever a key or an item. */
  #refuseMarker(lineStart: number): void {
    const char = this.#charAt(lineStart);
    if (char !== dot && char !== dash) return;
    if (this.#text.startsWith('---', lineStart)) throw unsure;
    if (this.#text.startsWith('...', lineStart) && isBlank(this.#charAt(lineStart + 3))) throw unsure;
  }

  /** The end of a line in which no character is odd. */
  #skipLine(start: number): number {
    let at = start;
    for (; at < this.#end; at++) {
      const char = this.#text.charCodeAt(at);
      if (char === lineFeed) break;
      if (isOdd(char)) throw unsure;
    }
    return at;
  }

  #skipSpaces(): void {
    while (this.#charAt(this.#pos) === space) this.#pos++;
  }

  #charAt(offset: number): number {
    return offset < this.#end ? this.#text.charCodeAt(offset) : endOfText;
  }
}

/** What JSON has no number for is a mistake. */
function resolveFinite(text: string): unknown {
  const value = resolvePlainScalar(text);
  if (typeof value === 'number' && !Number.isFinite(value)) throw unsure;
  return value;
}

/** White space after an indicator, or the end of the text. */
function isBlank(char: number): boolean {
  return char === space || char === lineFeed || char === endOfText;
}

function isLetterOrDigit(char: number): boolean {
  return (char >= 0x61 && char <= 0x7a) || (char >= 0x41 && char <= 0x5a) || isDigit(char);
}

/** Characters that no YAML text should hold unescaped, that end a line in some YAML versions only, and tabs. */
function isOdd(char: number): boolean {
  if (char < 0x7f) return char < space;
  return char < 0xa0 || char === 0x2028 || char === 0x2029 || char === 0xfeff || char >= 0xfffe;
}

/** Whether a plain scalar may start so; of what starts so rarely, the full parser knows more. */
function startsPlain(char: number): boolean {
  return isLetterOrDigit(char) || char >= 0xa0 || plainStarts.has(char);
}

/** Plain words in flow collections: no blanks, colons or characters that mean something there. */
function isFlowWord(char: number): boolean {
  return isLetterOrDigit(char) || flowWordSigns.has(char);
}

/** Blanks, and the line feeds among them: text with line feeds folds, other text stays as it is. */
const blanks = / +(?:\n[ \n]*)?|\n[ \n]*/g;

/** Folds the lines of a plain or single-quoted scalar. */
function foldLines(raw: string): string {
  return raw.replaceAll(blanks, foldBlanks);
}

function foldBlanks(text: string): string {
  const lineFeeds = countLineFeeds(text);
  if (lineFeeds === 0) return text;
  return lineFeeds === 1 ? ' ' : '\n'.repeat(lineFeeds - 1);
}

function countLineFeeds(text: string): number {
  return text.split('\n').length - 1;
}

/** The letter of an escape, and what it means. */
const escapes = new Map(
  ['""', '\\\\', 'n\n', 't\t', 'r\r', '0\0', 'a\u0007', 'b\b', 'e\u001B', 'f\f', 'v\v', '  '].map(
    (pair) => [pair.charAt(0), pair.charAt(1)] as const,
  ),
);

/** Blanks as above, escaped line breaks, escapes of code points, and escapes of one character. */
const doubleQuotedSpecial =
  / +(?:\n[ \n]*)?|\n[ \n]*|\\\n[ \n]*|\\x[\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\U[\da-fA-F]{8}|\\[^]/g;

function unescapeDouble(raw: string): string {
  return raw.replaceAll(doubleQuotedSpecial, (special) => {
    if (!special.startsWith('\\')) return foldBlanks(special);
    const code = special.charAt(1);
    if (code === '\n') return '\n'.repeat(countLineFeeds(special) - 1);
    if (special.length > 2) return codePointText(Number.parseInt(special.slice(2), 16));
    const char = escapes.get(code);
    if (char === undefined) throw unsure;
    return char;
  });
}

/** Halves of surrogate pairs are left to the full parser. */
function codePointText(code: number): string {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw unsure;
  return String.fromCodePoint(code);
}
