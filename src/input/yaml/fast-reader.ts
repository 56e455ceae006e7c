import type { Span } from '../documents/text-file.ts';
import { KnownPatterns } from './patterns.ts';
import { resolvePlainScalar } from './scalars.ts';

/** Deeper nesting is for the full parser, and a document made to exhaust the stack. */
const maxDepth = 64;
/** The full parser takes keys of up to 1024 characters, counted its own way. */
const maxKeyLength = 512;
/** Thrown within this file for whatever only the full parser can decide; it carries nothing, so one is enough. */
const unsure = new Error('left to the full YAML parser');

/** What YAML takes nowhere, or ends a line in some YAML versions only; and tabs. */
const odd = /[^\n -~\u00a0-\u2027\u202a-\ufefe\uff00-\ufffd]/;

/** What is on a line of a plain scalar: behind a colon, a blank makes a key of it, and "#" begins a comment behind a blank. */
const plainRest = /(?:[^ \n:#]|:(?![ \n]|$)|(?<![ \n])#| +(?![ \n#]|:[ \n]|:?$))+/y;
/** Of what starts with another sign, the full parser knows more. */
const plain =
  /(?=[A-Za-z0-9$()+./;\\^_~\u00a0-\uffff]|[-:](?![ \n]|$))(?:[^ \n:#]|:(?![ \n]|$)|(?<![ \n])#| +(?![ \n#]|:[ \n]|:?$))+/y;
const doubleQuoted = /"(?:[^"\\]|\\[^])*"/y;
const singleQuoted = /'(?:[^']|'')*'/y;
const flowWord = /(?:[A-Za-z0-9+./_~]|-(?=[\d.]))[\w+./~-]*/y;
const spaces = / */y;
const keyColon = /:(?=[ \n]|$)/y;
const dash = /-(?=[ \n]|$)/y;
const flowColon = /: /y;
const quotedFlowColon = /:/y;
const flowComma = /, */y;
const blockHeader = /[|>][-+]? *(?=\n)/y;
/** A line of a block scalar, from the line feed before it: its blanks, and what is behind them. */
const blockLine = /\n( *)([^ \n].*)?/y;
const lineEnd = /(?: +#.*| *)(?=\n|$)/y;
/** From the end of a line to the next content. */
const emptyLines = /(?:\n *(?:#.*)?)*/y;
/** The line that starts a document, or begins it with nothing but a comment. */
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
    if (error === unsure) return undefined;
    throw error;
  }
}

/**
 * One pass over a text. Each method that reads a value in a block starts with `pos` on its first character and ends with
 * `pos` on the first character of the next line that holds anything, and that line's indentation in `column`.
 */
class FastReader {
  readonly #text: string;
  readonly #known: KnownPatterns;
  #pos = 0;
  /** Of the first character at `pos` in its line; -1 at the end of the document. */
  #column = 0;
  #depth = 0;
  /** Where the last line ended that held anything. */
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

  /** Moves over what the pattern fits. Patterns see no more than the document, which ends where its text does. */
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

  /** A mapping or a sequence that starts at `pos`, the value of that key. */
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
        // In the same column the mapping goes on, further in its last value does.
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
      addKey(mapping, key, this.#readMappingValue(column, key));
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

  /** Reads a key with its colon. */
  #readKey(): string {
    const start = this.#pos;
    const key = this.#wordPattern() === plain ? resolveFinite(this.#take(plain)) : this.#readQuoted(-1);
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
    const isKey = this.#skip(this.#wordPattern()) && this.#at(keyColon);
    this.#pos = start;
    return isKey;
  }

  #wordPattern(): RegExp {
    const first = this.#text.charAt(this.#pos);
    return first === '"' ? doubleQuoted : first === "'" ? singleQuoted : plain;
  }

  /** A value that starts on the line of its key or dash, which is in `column`. */
  #readInline(column: number): unknown {
    const first = this.#text.charAt(this.#pos);
    if (first === '|' || first === '>') return this.#readBlockScalar(column);
    if (!/["'{[]/.test(first)) return this.#readPlain(column);
    const value = first === '{' || first === '[' ? this.#readFlow() : this.#readQuoted(column);
    this.#endLine();
    return value;
  }

  /** A plain scalar, which goes on in lines that are indented deeper than `column`. */
  #readPlain(column: number): unknown {
    const start = this.#pos;
    const word = this.#take(plain);
    let end = this.#pos;
    this.#endLine();
    if (this.#column <= column) return resolveFinite(word);
    while (this.#column > column) {
      // A comment ends it.
      if (this.#text.slice(end, this.#pos).includes('#')) throw unsure;
      this.#take(plainRest);
      end = this.#pos;
      this.#endLine();
    }
    return resolveFinite(foldLines(this.#text.slice(start, end)));
  }

  /** A quoted scalar; `pos` is then after it. It may go on in lines that are indented deeper than `column`, if not -1. */
  #readQuoted(column: number): string {
    const isDouble = this.#text.charAt(this.#pos) === '"';
    const raw = this.#take(isDouble ? doubleQuoted : singleQuoted).slice(1, -1);
    if (raw.includes('\n')) {
      const indents = Array.from(raw.matchAll(/\n( *)(?![ \n])/g), ([, blanks = '']) => blanks.length);
      if (column < 0 || indents.some((indent) => indent <= column)) throw unsure;
    }
    return isDouble ? unescapeDouble(raw) : foldLines(raw).replaceAll("''", "'");
  }

  /** A flow mapping or sequence on one line; `pos` is then after it. */
  #readFlow(): unknown {
    this.#enter();
    const isMapping = this.#text.charAt(this.#pos++) === '{';
    const close = isMapping ? '}' : ']';
    const mapping: Record<string, unknown> = {};
    const items: unknown[] = [];
    this.#skip(spaces);
    while (this.#text.charAt(this.#pos) !== close) {
      if (isMapping) addKey(mapping, this.#readFlowKey(), this.#readFlowValue());
      else items.push(this.#readFlowValue());
      this.#skip(spaces);
      if (!this.#skip(flowComma) && this.#text.charAt(this.#pos) !== close) throw unsure;
    }
    this.#pos++;
    this.#depth--;
    return isMapping ? mapping : items;
  }

  #readFlowKey(): string {
    const start = this.#pos;
    const isQuoted = this.#wordPattern() !== plain;
    const key = isQuoted ? this.#readQuoted(-1) : resolveFinite(this.#take(flowWord));
    if (typeof key !== 'string' || this.#pos - start > maxKeyLength) throw unsure;
    if (!this.#skip(isQuoted ? quotedFlowColon : flowColon)) throw unsure;
    this.#skip(spaces);
    return key;
  }

  #readFlowValue(): unknown {
    if (this.#wordPattern() !== plain) return this.#readQuoted(-1);
    return /[{[]/.test(this.#text.charAt(this.#pos)) ? this.#readFlow() : resolveFinite(this.#take(flowWord));
  }

  /** A block scalar below a key or dash in `column`, without an indentation indicator. */
  #readBlockScalar(column: number): string {
    const header = this.#take(blockHeader);
    const isLiteral = header.startsWith('|');
    const lines = this.#readBlockLines(column, isLiteral).join('\n');
    this.#toContent();
    let end = lines.length;
    while (lines[end - 1] === '\n') end--;
    if (end === 0) throw unsure;
    const content = lines.slice(0, end);
    const value = isLiteral ? content : content.replaceAll(/(?<=[^\n])\n+/g, foldBlanks);
    if (header.includes('-')) return value;
    return `${value}\n${header.includes('+') ? lines.slice(end) : ''}`;
  }

  /** The lines of a block scalar, without their indentation; `pos` is then on the line feed after the last one. */
  #readBlockLines(column: number, isLiteral: boolean): string[] {
    const text = this.#text;
    const lines: string[] = [];
    let indent = -1;
    let widestBlank = 0;
    while (this.#pos + 1 < text.length) {
      blockLine.lastIndex = this.#pos;
      const [line, blanks = '', content] = blockLine.exec(text) ?? [];
      if (line === undefined) throw unsure;
      const width = blanks.length;
      if (content === undefined) {
        if (blockLine.lastIndex === text.length) throw unsure;
        widestBlank = Math.max(widestBlank, width);
        lines.push('');
      } else {
        if (width <= column) break;
        if (indent < 0) indent = width;
        if (width < indent || (!isLiteral && width > indent)) throw unsure;
        lines.push(line.slice(1 + indent));
      }
      this.#pos = blockLine.lastIndex;
    }
    // Blanks beyond the indentation are content, or an error before the first line.
    if (widestBlank > indent) throw unsure;
    return lines;
  }

  /** After a value: blanks, a comment, and on to the next line with content. */
  #endLine(): void {
    if (!this.#skip(lineEnd)) throw unsure;
    this.#toContent();
  }

  /** From the end of a line to the next one that holds anything. */
  #toContent(): void {
    this.#contentEnd = this.#pos;
    this.#skip(emptyLines);
    this.#startLine(this.#text.lastIndexOf('\n', this.#pos - 1) + 1);
  }

  /** A line that begins like the end or the start of a document is hardly ever a key or an item. */
  #startLine(start: number): void {
    this.#column = this.#pos < this.#text.length ? this.#pos - start : -1;
    if (this.#column === 0 && /^(?:---|\.\.\.)/.test(this.#text.slice(start, start + 3))) throw unsure;
  }
}

/** A key that comes twice is an error, '<<' may merge, and '__proto__' must not become a prototype. */
function addKey(mapping: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__' || key === '<<' || Object.hasOwn(mapping, key)) throw unsure;
  mapping[key] = value;
}

/** What JSON has no number for is a mistake. */
function resolveFinite(text: string): unknown {
  const value = resolvePlainScalar(text);
  if (typeof value === 'number' && !Number.isFinite(value)) throw unsure;
  return value;
}

/** Blanks, and the line feeds among them: text with line feeds folds, other text stays as it is. */
const blanks = / +(?:\n[ \n]*)?|\n[ \n]*/g;

/** Folds the lines of a plain or quoted scalar. */
function foldLines(raw: string): string {
  return raw.includes('\n') ? raw.replaceAll(blanks, foldBlanks) : raw;
}

function foldBlanks(text: string): string {
  const lineFeeds = countLineFeeds(text);
  if (lineFeeds === 0) return text;
  return lineFeeds === 1 ? ' ' : '\n'.repeat(lineFeeds - 1);
}

function countLineFeeds(text: string): number {
  return text.split('\n').length - 1;
}

/** Blanks as above, escaped line breaks, escapes of code points, and escapes of one character. */
const doubleQuotedSpecial =
  / +(?:\n[ \n]*)?|\n[ \n]*|\\\n[ \n]*|\\x[\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\U[\da-fA-F]{8}|\\[^]/g;

function unescapeDouble(raw: string): string {
  if (!raw.includes('\\')) return foldLines(raw);
  return raw.replaceAll(doubleQuotedSpecial, (special) => {
    if (!special.startsWith('\\')) return foldBlanks(special);
    const code = special.charAt(1);
    if (code === '\n') return '\n'.repeat(countLineFeeds(special) - 1);
    if (code === ' ') return code;
    if (special.length > 2) return codePointText(Number.parseInt(special.slice(2), 16));
    if (!/["\\bfnrt]/.test(code)) throw unsure;
    return JSON.parse(`"${special}"`) as string;
  });
}

/** Halves of surrogate pairs are left to the full parser. */
function codePointText(code: number): string {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw unsure;
  return String.fromCodePoint(code);
}
