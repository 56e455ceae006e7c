import type { Span } from '../documents/text-file.ts';
import { type Counts, countValue, type ParsedValue, parseYamlValue } from './parse.ts';
import { Refusal } from '../documents/syntax-fault.ts';
import { resolvePlainScalar } from './scalars.ts';
import { Words } from './words.ts';

/** Deeper nesting is for the full parser, and a document made to exhaust the stack. */
const maxDepth = 64;
/** The full parser takes keys of up to 1024 characters, counted its own way. */
const maxKeyLength = 512;
/** Thrown within this file for whatever only the full parser can decide; it carries nothing, so one is enough. */
const unsure = new Error('left to the full YAML parser');

/** Characters that YAML forbids, or that end a line only in some YAML versions; and tabs. */
const odd = /[^\n -~\u00a0-\u2027\u202a-\ufefe\uff00-\ufffd]/;

/** A quoted string that ends on its line, with only the escapes that mean the same in JSON. */
const quoted = /"[^"\\\n]*(?:\\["\\bfnrt][^"\\\n]*)*"|'[^'\n]*(?:''[^'\n]*)*'/y;
/** A word that means the same in brackets as elsewhere. */
const flowWord = /(?:[\w+./~]|-(?=[\d.]))[\w+./~-]*/y;
const comma = /, */y;
/** After a key in brackets. */
const wordColon = /: +/y;
const quotedColon = /: */y;
const spaces = / */y;
/** A first line without content: "---", a comment, or nothing. */
const firstLine = /(?:---(?: +#.*| *)| *(?:#.*)?)(?=\n)/y;

const lineFeed = 0x0a;
const space = 0x20;
const doubleQuote = 0x22;
const hash = 0x23;
const singleQuote = 0x27;
const dash = 0x2d;
const dot = 0x2e;
const colon = 0x3a;
const openBracket = 0x5b;
const pipe = 0x7c;
const openBrace = 0x7b;
const greater = 0x3e;

/**
 * Reads one YAML document (without directives, with or without its "---" line) from a stretch of a text, for speed:
 * a document of the plain kind that kubectl prints and people write. The value is the full parser's, of
 * parseYamlValue, for whatever is accepted; undefined means that the full parser has to be asked, because the document
 * holds something rarer, or a mistake. The only error that is found here is that it holds too much.
 */
export function readYamlFast(
  text: string,
  { start, end }: Span = { start: 0, end: text.length },
  words = new Words(),
  counts: Counts = { values: 0, copies: 0 },
): ParsedValue | undefined {
  const document = text.slice(start, end);
  // Lines that end as on Windows mean what they do without the carriage return, in any kind of scalar.
  const lines = document.includes('\r\n') ? document.replaceAll('\r\n', '\n') : document;
  if (odd.test(lines)) return undefined;
  const { values } = counts;
  try {
    // Of a stretch that is a string of its own, each character takes longer to reach.
    const isPart = lines === document && lines.endsWith('\n');
    const ended = lines.endsWith('\n') ? lines : `${lines}\n`;
    const reader = isPart
      ? new FastReader(text, { start, end }, words, counts)
      : new FastReader(ended, { start: 0, end: ended.length }, words, counts);
    return { kind: 'value', value: reader.readDocument() };
  } catch (error) {
    if (error instanceof Refusal) return { kind: 'faults', faults: [error.fault] };
    // V8 limits backtracking in a regular expression to 64 MB: too little for some lines of millions of characters.
    if (error !== unsure && !(error instanceof RangeError)) throw error;
    counts.values = values;
    return undefined;
  }
}

/**
 * One pass over a text that ends with a line feed, which is where each search stops. Each method that reads a block value starts
 * with `pos` on its first character and ends with `pos` on the first character of the next line with content, and that line's
 * indentation in `column`.
 */
class FastReader {
  readonly #text: string;
  readonly #end: number;
  readonly #words: Words;
  readonly #counts: Counts;
  #pos: number;
  /** Of the first character at `pos` in its line; -1 at the end of the document. */
  #column = 0;
  #depth = 0;
  /** Line feeds between the last two lines with content, and whether a comment was there. */
  #lineFeeds = 0;
  #passedComment = false;
  /** Where the plain scalar that was gone over last ends. */
  #wordEnd = 0;

  constructor(text: string, { start, end }: Span, words: Words, counts: Counts) {
    this.#text = text;
    this.#pos = start;
    this.#end = end;
    this.#words = words;
    this.#counts = counts;
  }

  readDocument(): unknown {
    if (this.#skip(firstLine)) this.#toContent();
    else {
      const start = this.#pos;
      this.#skip(spaces);
      this.#startLine(start);
    }
    if (this.#column < 0) return null;
    const value = this.#readBlock();
    if (this.#column >= 0) throw unsure;
    return value;
  }

  /** Skips what the pattern matches. Patterns see only the document: the text ends where it does. */
  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#pos;
    const fits = pattern.test(this.#text);
    if (fits) this.#pos = pattern.lastIndex;
    return fits;
  }

  #at(code: number): boolean {
    return this.#text.charCodeAt(this.#pos) === code;
  }

  /** Whether a blank follows the sign at that offset. */
  #isBlankBehind(at: number): boolean {
    const next = this.#text.charCodeAt(at + 1);
    return next === space || next === lineFeed;
  }

  #atDash(): boolean {
    return this.#at(dash) && this.#isBlankBehind(this.#pos);
  }

  #readBlock(): unknown {
    return this.#atDash() ? this.#readSequence() : this.#readMapping();
  }

  #readMapping(): Record<string, unknown> {
    const column = this.#column;
    const mapping: Record<string, unknown> = {};
    this.#enter();
    do {
      const key = this.#readKey();
      // A repeated key is an error.
      if (Object.hasOwn(mapping, key)) throw unsure;
      countValue(this.#counts);
      mapping[key] = this.#readMappingValue(column);
    } while (this.#column === column);
    this.#leave(column);
    return mapping;
  }

  #readSequence(): unknown[] {
    const column = this.#column;
    this.#enter();
    // An array that grows from empty reserves room for sixteen; most hold one item.
    const items = [this.#readItem(column)];
    while (this.#column === column && this.#atDash()) items.push(this.#readItem(column));
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

  #readKey(): string {
    const start = this.#pos;
    let key: unknown;
    if (this.#atQuote()) {
      if (!this.#skip(quoted)) throw unsure;
      key = unquote(this.#text.slice(start, this.#pos));
    } else {
      this.#pos = this.#passPlain(start);
      if (this.#pos > this.#wordEnd) throw unsure;
      key = this.#resolveWord(start);
    }
    if (typeof key !== 'string' || isOddKey(key) || this.#pos - start > maxKeyLength) throw unsure;
    if (!this.#at(colon) || !this.#isBlankBehind(this.#pos)) throw unsure;
    this.#pos++;
    return key;
  }

  #atQuote(): boolean {
    return this.#at(doubleQuote) || this.#at(singleQuote);
  }

  #readMappingValue(column: number): unknown {
    if (!this.#passSpaces()) return this.#readInline(column);
    this.#toContent();
    if (this.#column > column) return this.#readBlock();
    return this.#column === column && this.#atDash() ? this.#readSequence() : null;
  }

  #readItem(column: number): unknown {
    const start = this.#pos++;
    countValue(this.#counts);
    if (this.#passSpaces()) {
      this.#toContent();
      return this.#column > column ? this.#readBlock() : null;
    }
    this.#column = column + this.#pos - start;
    if (this.#atDash()) return this.#readSequence();
    return this.#atKey() ? this.#readMapping() : this.#readInline(column);
  }

  /** Moves to the next sign on the line; whether there is none but a comment. */
  #passSpaces(): boolean {
    while (this.#at(space)) this.#pos++;
    return this.#at(lineFeed) || this.#at(hash);
  }

  /** Whether there is a key with its colon at `pos`. */
  #atKey(): boolean {
    const start = this.#pos;
    if (!this.#atQuote())
      return mayBeginPlain(this.#text, start) && this.#text.charCodeAt(this.#passPlain(start)) === colon;
    const isKey = this.#skip(quoted) && this.#at(colon) && this.#isBlankBehind(this.#pos);
    this.#pos = start;
    return isKey;
  }

  /**
   * Goes over the plain scalar that begins at `start`, on its line: up to the end of the line, a comment, or a colon before a
   * blank. Returns where it stops; blanks before that are no part of the scalar.
   */
  #passPlain(start: number): number {
    if (!mayBeginPlain(this.#text, start)) throw unsure;
    return this.#passRest(start);
  }

  /** As passPlain, for a later line of a scalar, which may begin with any sign. */
  #passRest(start: number): number {
    const text = this.#text;
    let at = start;
    for (; ; at++) {
      let code = text.charCodeAt(at);
      while (code > hash && code !== colon) code = text.charCodeAt(++at);
      if (code === lineFeed) break;
      if (code === colon && this.#isBlankBehind(at)) break;
      if (code === hash && text.charCodeAt(at - 1) === space) break;
    }
    let end = at;
    while (end > start && text.charCodeAt(end - 1) === space) end--;
    this.#wordEnd = end;
    return at;
  }

  /** What the scalar that was gone over last is. What JSON has no number for is a mistake. */
  #resolveWord(start: number): unknown {
    const value = this.#words.resolve(this.#text, start, this.#wordEnd);
    if (typeof value === 'number' && !Number.isFinite(value)) throw unsure;
    return value;
  }

  /** A value that starts on the line of its key or dash, which is in `column`. */
  #readInline(column: number): unknown {
    const start = this.#pos;
    switch (this.#text.charCodeAt(start)) {
      case doubleQuote:
      case singleQuote: {
        if (!this.#skip(quoted)) break;
        const written = this.#text.slice(start, this.#pos);
        if (this.#endLine()) return unquote(written);
        break;
      }
      case openBrace:
      case openBracket: {
        const flow = this.#readFlow(maxDepth - this.#depth);
        if (flow !== undefined && this.#endLine()) return flow;
        break;
      }
      case pipe:
      case greater:
        break;
      default:
        return this.#readPlain(column);
    }
    this.#pos = start;
    return this.#readOther(column);
  }

  #readPlain(column: number): unknown {
    const start = this.#pos;
    this.#pos = this.#passPlain(start);
    if (this.#at(colon)) throw unsure;
    const value = this.#resolveWord(start);
    const end = this.#wordEnd;
    this.#toContent();
    return this.#column > column ? this.#readFolded(this.#text.slice(start, end), column) : value;
  }

  /** Reads the further lines of a plain scalar, from `pos`. */
  #readFolded(first: string, column: number): unknown {
    let folded = first;
    while (this.#column > column) {
      // A comment ends the scalar.
      if (this.#passedComment) throw unsure;
      const start = this.#pos;
      folded += this.#lineFeeds === 1 ? ' ' : '\n'.repeat(this.#lineFeeds - 1);
      this.#pos = this.#passRest(start);
      if (this.#at(colon)) throw unsure;
      folded += this.#text.slice(start, this.#wordEnd);
      this.#toContent();
    }
    return resolveFinite(folded);
  }

  /** Reads a list or mapping in brackets on one line, of words and quoted strings; undefined for anything else. */
  #readFlow(levels: number): unknown {
    const open = this.#text.charAt(this.#pos);
    const isMapping = open === '{';
    if (levels === 0 || !(isMapping || open === '[')) return undefined;
    const close = isMapping ? '}' : ']';
    const mapping: Record<string, unknown> = {};
    const items: unknown[] = [];
    this.#pos++;
    this.#skip(spaces);
    for (let isFirst = true; this.#text.charAt(this.#pos) !== close; isFirst = false) {
      if (!isFirst && !this.#skip(comma)) return undefined;
      countValue(this.#counts);
      const key = isMapping ? this.#readFlowKey() : '';
      const value = /[[{]/.test(this.#text.charAt(this.#pos)) ? this.#readFlow(levels - 1) : this.#readFlowScalar();
      if (key === undefined || value === undefined || Object.hasOwn(mapping, key)) return undefined;
      if (isMapping) mapping[key] = value;
      else items.push(value);
      this.#skip(spaces);
    }
    this.#pos++;
    return isMapping ? mapping : items;
  }

  #readFlowKey(): string | undefined {
    const start = this.#pos;
    const after = this.#atQuote() ? quotedColon : wordColon;
    const key = this.#readFlowScalar();
    if (typeof key !== 'string' || isOddKey(key) || this.#pos - start > maxKeyLength) return undefined;
    return this.#skip(after) ? key : undefined;
  }

  #readFlowScalar(): unknown {
    const start = this.#pos;
    if (this.#skip(quoted)) return unquote(this.#text.slice(start, this.#pos));
    return this.#skip(flowWord) ? resolveFinite(this.#text.slice(start, this.#pos)) : undefined;
  }

  /**
   * Reads any other value with the full parser: in brackets, in quotes with escapes, or on several lines. All lines
   * indented deeper than `column` belong to it.
   */
  #readOther(column: number): unknown {
    const start = this.#pos;
    do this.#toContent();
    while (this.#column > column);
    const end = this.#column < 0 ? this.#end : this.#pos - this.#column;
    const lines = this.#text.slice(start, end);
    const literal = lines.startsWith('|') ? readLiteral(lines, column) : undefined;
    if (literal !== undefined) return literal;
    // The full parser must see the whole document to know what aliases mean, and whether it is too large or deep.
    if (/^[[{]/.test(lines) && /[\s,[{:][&*]/.test(lines)) throw unsure;
    const parsed = parseYamlValue(`${' '.repeat(column)}a: ${lines}`);
    if (parsed.kind !== 'value') throw unsure;
    const { a: value } = parsed.value as { readonly a: unknown };
    this.#checkOther(value, maxDepth - this.#depth);
    return value;
  }

  /** Counts the values in a value, and looks how deep they nest. */
  #checkOther(value: unknown, levels: number): void {
    if (typeof value !== 'object' || value === null) return;
    if (levels === 0) throw unsure;
    for (const inner of Object.values(value)) {
      countValue(this.#counts);
      this.#checkOther(inner, levels - 1);
    }
  }

  /** Goes on to the next line with content, if nothing but a comment is left of this one. */
  #endLine(): boolean {
    const start = this.#pos;
    if (!this.#passSpaces() || (this.#at(hash) && this.#pos === start)) return false;
    this.#toContent();
    return true;
  }

  /** Moves to the next line with content, whatever is left of this one. */
  #toContent(): void {
    const text = this.#text;
    let at = this.#pos;
    let lineStart = at;
    let lineFeeds = 0;
    let code = text.charCodeAt(at);
    this.#passedComment = false;
    do {
      if (code === hash) this.#passedComment = true;
      if (code !== lineFeed) at = text.indexOf('\n', at);
      lineStart = at + 1;
      lineFeeds++;
      at = lineStart;
      if (at >= this.#end) break;
      while ((code = text.charCodeAt(at)) === space) at++;
    } while (code === lineFeed || code === hash);
    this.#lineFeeds = lineFeeds;
    this.#pos = at;
    this.#startLine(lineStart);
  }

  /** A line that begins like the end or the start of a document is hardly ever a key or an item. */
  #startLine(start: number): void {
    this.#column = this.#pos < this.#end ? this.#pos - start : -1;
    if (this.#column !== 0 || (!this.#at(dash) && !this.#at(dot))) return;
    if (this.#text.startsWith('---', start) || this.#text.startsWith('...', start)) throw unsure;
  }
}

/** Whether a plain scalar begins at an offset. Those that begin with another sign are left to the full parser. */
function mayBeginPlain(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code === dash || code === colon) {
    const next = text.charCodeAt(at + 1);
    return next !== space && next !== lineFeed;
  }
  return code > 0x7e || beginsPlain[code] === 1;
}

const beginsPlain = Uint8Array.from({ length: 0x7f }, (_, code) =>
  Number(/[A-Za-z0-9$()+./;\\^_~]/.test(String.fromCharCode(code))),
);

/** '<<' may merge, and '__proto__' must not become a prototype. */
function isOddKey(key: string): boolean {
  return key === '__proto__' || key === '<<';
}

function unquote(written: string): string {
  if (written.startsWith("'")) return written.slice(1, -1).replaceAll("''", "'");
  return written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
}

/** What JSON has no number for is a mistake. */
function resolveFinite(text: string): unknown {
  const value = resolvePlainScalar(text);
  if (typeof value === 'number' && !Number.isFinite(value)) throw unsure;
  return value;
}

/** The text of a literal block below a key or dash in that column; undefined if its indentation is irregular. */
function readLiteral(written: string, column: number): string | undefined {
  const [header = '', ...lines] = written.split('\n');
  const [indent = ''] = /^ */.exec(lines.find((line) => /[^ ]/.test(line)) ?? '') ?? [];
  // Blanks beyond the indentation are content, or an error before the first line.
  const isRegular = lines.every((line) => (/[^ ]/.test(line) ? line.startsWith(indent) : line.length <= indent.length));
  if (!isRegular || !/^\|[-+]?\n/.test(written) || !written.endsWith('\n') || indent.length <= column) return undefined;
  const content = lines.map((line) => line.slice(indent.length)).join('\n');
  let end = content.length;
  while (content[end - 1] === '\n') end--;
  return content.slice(0, header === '|+' ? undefined : header === '|' ? end + 1 : end);
}
