import { mostItems } from '../../base/bounds.ts';
import type { Span } from '../documents/text-file.ts';
import { parseYamlValue } from './parse.ts';
import { KnownPatterns } from './patterns.ts';
import { resolvePlainScalar } from './scalars.ts';

/** Deeper nesting is for the full parser, and a document made to exhaust the stack. */
const maxDepth = 64;
/** The full parser takes keys of up to 1024 characters, counted its own way. */
const maxKeyLength = 512;
/** Thrown within this file for whatever only the full parser can decide; it carries nothing, so one is enough. */
const unsure = new Error('left to the full YAML parser');

/** Characters that YAML forbids, or that end a line only in some YAML versions; and tabs. */
const odd = /[^\n -~\u00a0-\u2027\u202a-\ufefe\uff00-\ufffd]/;

/**
 * A plain scalar on one line. A colon before a blank makes it a key, and "#" after a blank begins a comment. Scalars
 * that start with another sign are left to the full parser.
 */
const plain =
  /(?=[A-Za-z0-9$()+./;\\^_~\u00a0-\uffff]|[-:](?![ \n]|$))(?:[^ \n:#]|:(?![ \n]|$)|(?<![ \n])#| +(?![ \n#]|:[ \n]|:?$))+/y;
/** The same on a later line of the scalar, which may begin with any sign. */
const plainRest = /(?:[^ \n:#]|:(?![ \n]|$)|(?<![ \n])#| +(?![ \n#]|:[ \n]|:?$))+/y;
/** A quoted string that ends on its line, with only the escapes that mean the same in JSON. */
const quoted = /"[^"\\\n]*(?:\\["\\bfnrt][^"\\\n]*)*"|'[^'\n]*(?:''[^'\n]*)*'/y;
/** A word that means the same in brackets as elsewhere. */
const flowWord = /(?:[\w+./~]|-(?=[\d.]))[\w+./~-]*/y;
const comma = /, */y;
/** After a key in brackets. */
const wordColon = /: +/y;
const quotedColon = /: */y;
const spaces = / */y;
const keyColon = /:(?=[ \n]|$)/y;
const dash = /-(?=[ \n]|$)/y;
const restOfLine = /.*/y;
const lineEnd = /(?: +#.*| *)(?=\n|$)/y;
/** From the end of a line to the next content, at most this many lines at once: millions exhaust the stack. */
const mostEmptyLines = 1000;
const emptyLines = /(?:\n *(?:#.*)?){0,1000}/y;
/** A first line without content: "---", a comment, or nothing. */
const firstLine = /(?:---(?: +#.*| *)| *(?:#.*)?)(?=\n|$)/y;

/**
 * Reads one YAML document (without directives, with or without its "---" line) from a stretch of a text, for speed:
 * a document of the plain kind that kubectl prints and people write. The value is the full parser's, of
 * parseYamlValue, for whatever is accepted; undefined means that the full parser has to be asked, because the document
 * holds something rarer, or a mistake. No error is ever found here.
 */
export function readYamlFast(
  text: string,
  span: Span = { start: 0, end: text.length },
  known = new KnownPatterns(),
): { readonly value: unknown } | undefined {
  const document = text.slice(span.start, span.end);
  const alike = known.findWhole(document);
  if (alike) return alike;
  // Lines that end as on Windows mean what they do without the carriage return, in any kind of scalar.
  const lines = document.includes('\r\n') ? document.replaceAll('\r\n', '\n') : document;
  return odd.test(lines) ? undefined : attempt(lines, known);
}

function attempt(text: string, known: KnownPatterns): { readonly value: unknown } | undefined {
  try {
    return { value: new FastReader(text, known).readDocument() };
  } catch (error) {
    // V8 limits backtracking in a regular expression to 64 MB: too little for some lines of millions of characters.
    if (error === unsure || error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * One pass over a text. Each method that reads a block value starts with `pos` on its first character and ends with
 * `pos` on the first character of the next line with content, and that line's indentation in `column`.
 */
class FastReader {
  readonly #text: string;
  readonly #known: KnownPatterns;
  #pos = 0;
  /** Of the first character at `pos` in its line; -1 at the end of the document. */
  #column = 0;
  #depth = 0;
  /** Values in brackets: others have a line each. */
  #inFlows = 0;
  /** Where the last line with content ended. */
  #contentEnd = 0;

  constructor(text: string, known: KnownPatterns) {
    this.#text = text;
    this.#known = known;
  }

  readDocument(): unknown {
    if (this.#skip(firstLine)) this.#toContent();
    else {
      this.#skip(spaces);
      this.#startLine(0);
    }
    if (this.#column < 0) return null;
    const value = this.#readBlock('');
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

  #take(pattern: RegExp): string {
    const start = this.#pos;
    if (!this.#skip(pattern)) throw unsure;
    return this.#text.slice(start, this.#pos);
  }

  #at(pattern: RegExp): boolean {
    pattern.lastIndex = this.#pos;
    return pattern.test(this.#text);
  }

  /** Reads the mapping or sequence that starts at `pos`, the value of that key. */
  #readBlock(key: string): unknown {
    return this.#at(dash) ? this.#readSequence(key) : this.#readMapping(key);
  }

  #readMapping(key: string): unknown {
    const place = this.#known.below(key);
    const column = this.#column;
    const start = this.#pos;
    for (const pattern of place.patterns) {
      const found = pattern.column === column ? pattern.match(this.#text, start) : undefined;
      if (!found) continue;
      this.#pos = found.end;
      if (this.#at(lineEnd)) {
        this.#endLine();
        // A line in the same column continues the mapping; a deeper one continues its last value.
        if (this.#column < column) return pattern.make(found.scalars);
      }
      this.#pos = start;
      this.#column = column;
    }
    const value = this.#readNewMapping(column);
    place.learn(this.#text.slice(start, this.#contentEnd), column, value);
    return value;
  }

  #readNewMapping(column: number): Record<string, unknown> {
    const mapping: Record<string, unknown> = {};
    this.#enter();
    do {
      const key = this.#readKey();
      const value = this.#readMappingValue(column, key);
      if (isOddKey(mapping, key)) throw unsure;
      mapping[key] = value;
    } while (this.#column === column);
    this.#leave(column);
    return mapping;
  }

  #readSequence(key: string): unknown[] {
    const column = this.#column;
    this.#enter();
    // An array that grows from empty reserves room for sixteen; most hold one item.
    const items = [this.#readItem(column, key)];
    while (this.#column === column && this.#at(dash)) items.push(this.#readItem(column, key));
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
    const key = this.#at(quoted) ? unquote(this.#take(quoted)) : resolveFinite(this.#take(plain));
    if (typeof key !== 'string' || this.#pos - start > maxKeyLength || !this.#skip(keyColon)) throw unsure;
    return key;
  }

  #readMappingValue(column: number, key: string): unknown {
    if (this.#at(lineEnd)) {
      this.#endLine();
      if (this.#column > column) return this.#readBlock(key);
      return this.#column === column && this.#at(dash) ? this.#readSequence(key) : null;
    }
    this.#skip(spaces);
    return this.#readInline(column);
  }

  #readItem(column: number, key: string): unknown {
    const start = this.#pos++;
    if (this.#at(lineEnd)) {
      this.#endLine();
      return this.#column > column ? this.#readBlock(key) : null;
    }
    this.#skip(spaces);
    this.#column = column + this.#pos - start;
    if (this.#at(dash)) return this.#readSequence(key);
    return this.#atKey() ? this.#readMapping(key) : this.#readInline(column);
  }

  /** Whether there is a key with its colon at `pos`. */
  #atKey(): boolean {
    const start = this.#pos;
    const isKey = (this.#skip(quoted) || this.#skip(plain)) && this.#at(keyColon);
    this.#pos = start;
    return isKey;
  }

  /** A value that starts on the line of its key or dash, which is in `column`. */
  #readInline(column: number): unknown {
    const start = this.#pos;
    const flow = this.#readFlow(maxDepth - this.#depth);
    if (flow !== undefined && this.#at(lineEnd)) {
      this.#endLine();
      return flow;
    }
    this.#pos = start;
    const isQuoted = this.#skip(quoted);
    if ((isQuoted || this.#skip(plain)) && this.#at(lineEnd)) {
      const written = this.#text.slice(start, this.#pos);
      this.#endLine();
      if (isQuoted) return unquote(written);
      return this.#column > column ? this.#readFolded(start, written.length, column) : resolveFinite(written);
    }
    this.#pos = start;
    return this.#readOther(column);
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
      if (++this.#inFlows > mostItems || (!isFirst && !this.#skip(comma))) return undefined;
      const key = isMapping ? this.#readFlowKey() : '';
      const value = /[[{]/.test(this.#text.charAt(this.#pos)) ? this.#readFlow(levels - 1) : this.#readFlowScalar();
      if (key === undefined || value === undefined || isOddKey(mapping, key)) return undefined;
      if (isMapping) mapping[key] = value;
      else items.push(value);
      this.#skip(spaces);
    }
    this.#pos++;
    return isMapping ? mapping : items;
  }

  #readFlowKey(): string | undefined {
    const start = this.#pos;
    const colon = this.#at(quoted) ? quotedColon : wordColon;
    const key = this.#readFlowScalar();
    return typeof key === 'string' && this.#pos - start <= maxKeyLength && this.#skip(colon) ? key : undefined;
  }

  #readFlowScalar(): unknown {
    const start = this.#pos;
    if (this.#skip(quoted)) return unquote(this.#text.slice(start, this.#pos));
    return this.#skip(flowWord) ? resolveFinite(this.#text.slice(start, this.#pos)) : undefined;
  }

  /** Reads a plain scalar that has `length` characters on its first line and continues on further lines, from `pos`. */
  #readFolded(start: number, length: number, column: number): unknown {
    let end = start + length;
    while (this.#column > column) {
      // A comment ends the scalar; blanks at its end are not part of it.
      if (this.#text.slice(end, this.#pos).includes('#')) throw unsure;
      this.#take(plainRest);
      end = this.#pos;
      this.#endLine();
    }
    const lines = this.#text.slice(start, end);
    return resolveFinite(
      lines.replaceAll(/ +(?:\n[ \n]*)?|\n[ \n]*/g, (blanks) => {
        const lineFeeds = blanks.split('\n').length - 1;
        return lineFeeds === 0 ? blanks : lineFeeds === 1 ? ' ' : '\n'.repeat(lineFeeds - 1);
      }),
    );
  }

  /**
   * Reads any other value with the full parser: in brackets, in quotes with escapes, or on several lines. All lines
   * indented deeper than `column` belong to it.
   */
  #readOther(column: number): unknown {
    const start = this.#pos;
    if (!/["'[{|>]/.test(this.#text.charAt(start))) throw unsure;
    do {
      this.#skip(restOfLine);
      this.#toContent();
    } while (this.#column > column);
    const end = this.#column < 0 ? this.#text.length : this.#pos - this.#column;
    const lines = this.#text.slice(start, end);
    const literal = lines.startsWith('|') ? readLiteral(lines, column) : undefined;
    if (literal !== undefined) return literal;
    // The full parser must see the whole document to know what aliases mean, and whether it is too large or deep.
    if (/^[[{]/.test(lines) && /[\s,[{:][&*]/.test(lines)) throw unsure;
    const parsed = parseYamlValue(`${' '.repeat(column)}a: ${lines}`);
    if (parsed.kind !== 'value') throw unsure;
    const { a: value } = parsed.value as { readonly a: unknown };
    if (isDeeperThan(maxDepth - this.#depth, value)) throw unsure;
    return value;
  }

  /** After a value: blanks, a comment, and on to the next line with content. */
  #endLine(): void {
    if (!this.#skip(lineEnd)) throw unsure;
    this.#toContent();
  }

  /** Moves from the end of a line to the next line with content. */
  #toContent(): void {
    this.#contentEnd = this.#pos;
    let start: number;
    do {
      start = this.#pos;
      this.#skip(emptyLines);
    } while (this.#pos - start >= mostEmptyLines);
    this.#startLine(this.#text.lastIndexOf('\n', this.#pos - 1) + 1);
  }

  /** A line that begins like the end or the start of a document is hardly ever a key or an item. */
  #startLine(start: number): void {
    this.#column = this.#pos < this.#text.length ? this.#pos - start : -1;
    if (this.#column === 0 && /^(?:---|\.\.\.)/.test(this.#text.slice(start, start + 3))) throw unsure;
  }
}

/** A repeated key is an error, '<<' may merge, and '__proto__' must not become a prototype. */
function isOddKey(mapping: object, key: string): boolean {
  return key === '__proto__' || key === '<<' || Object.hasOwn(mapping, key);
}

function unquote(written: string): string {
  if (written.startsWith("'")) return written.slice(1, -1).replaceAll("''", "'");
  return written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner));
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
