/** Stands for any character beyond ASCII, which YAML's syntax treats like a letter. */
export const beyondAscii = 0xff;

/** Non-ASCII characters that YAML forbids, or that end a line only in some versions of YAML. */
const odd = /[^\0-~\u00a0-\u2027\u202a-\ufefe\uff00-\ufffd]/;

const encoder = new TextEncoder();

/** A document's characters as bytes, which V8 reads much faster than text. */
export class PlainText {
  /** The text, which ends with a line feed so that every search stops there. */
  text = '';
  bytes = new Uint8Array(2 ** 16);

  /** Replaces the document. Returns false if it has an odd character other than a control character. */
  take(document: string): boolean {
    this.text = document.endsWith('\n') ? document : `${document}\n`;
    const { length } = this.text;
    // Leave room after the text, because searches look up to one character beyond its end.
    if (length >= this.bytes.length) this.bytes = new Uint8Array(length * 2);
    const { read, written } = encoder.encodeInto(this.text, this.bytes);
    const isAscii = read === length && written === length;
    if (isAscii ? this.text.includes('\x7f') : odd.test(this.text)) return false;
    if (!isAscii) fill(this.bytes, this.text);
    return true;
  }
}

function fill(bytes: Uint8Array, text: string): void {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    bytes[at] = code < 0x7f ? code : beyondAscii;
  }
}

export const unsure = new Error('unsure');

/** A quoted string that ends on its line, with only the escapes that mean the same in JSON. */
export const quoted = /"[ !#-[\]-\uffff]*(?:\\["\\bfnrt][ !#-[\]-\uffff]*)*"|'[ -&(-\uffff]*(?:''[ -&(-\uffff]*)*'/y;

const lineFeed = 0x0a;
const space = 0x20;
const doubleQuote = 0x22;
const hash = 0x23;
const singleQuote = 0x27;
const dash = 0x2d;
const dot = 0x2e;
const colon = 0x3a;

/**
 * Passes over a document's lines once. Throws `unsure` at a tab or control character, because YAML forbids the character or its versions
 * differ about it.
 */
export class Lines {
  readonly text: string;
  readonly #bytes: Uint8Array;
  readonly #end: number;
  pos = 0;
  column = 0;
  lineFeeds = 0;
  passedComment = false;
  wordEnd = 0;

  constructor({ text, bytes }: PlainText) {
    this.text = text;
    this.#bytes = bytes;
    this.#end = text.length;
  }

  skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.pos;
    const fits = pattern.test(this.text);
    if (fits) this.pos = pattern.lastIndex;
    return fits;
  }

  at(code: number): boolean {
    return this.#bytes[this.pos] === code;
  }

  atDash(): boolean {
    return this.at(dash) && this.#isBlankBehind(this.pos);
  }

  atQuote(): boolean {
    return this.at(doubleQuote) || this.at(singleQuote);
  }

  atColon(): boolean {
    return this.at(colon) && this.#isBlankBehind(this.pos);
  }

  #isBlankBehind(at: number): boolean {
    const next = this.#bytes[at + 1];
    return next === space || next === lineFeed;
  }

  atKey(): boolean {
    const start = this.pos;
    if (this.atQuote()) this.skip(quoted);
    else if (this.#mayBeginPlain(start)) this.pos = this.passRest(start);
    const isKey = this.pos > start && this.atColon();
    this.pos = start;
    return isKey;
  }

  /**
   * Passes the plain scalar that begins at `start`, up to the end of the line, a comment, or a colon before a blank. Returns the position
   * after the scalar. The scalar does not include blanks before that position.
   */
  passPlain(start: number): number {
    if (!this.#mayBeginPlain(start)) throw unsure;
    return this.passRest(start);
  }

  /** Like passPlain, for a later line of a scalar, which may begin with any character. */
  passRest(start: number): number {
    const bytes = this.#bytes;
    let at = start;
    for (; ; at++) {
      let code = bytes[at] as number;
      while (code > hash && code !== colon) code = bytes[++at] as number;
      if (code === lineFeed) break;
      if (code === colon && this.#isBlankBehind(at)) break;
      if (code === hash && bytes[at - 1] === space) break;
      if (code < space) throw unsure;
    }
    let end = at;
    while (end > start && bytes[end - 1] === space) end--;
    this.wordEnd = end;
    return at;
  }

  /** Reports whether a plain scalar may begin here. Scalars with other first characters are left to the full parser. */
  #mayBeginPlain(at: number): boolean {
    const code = this.#bytes[at] as number;
    return code === dash || code === colon ? !this.#isBlankBehind(at) : beginsPlain[code] === 1;
  }

  /** Passes spaces. Returns whether the rest of the line is empty or a comment. */
  passSpaces(): boolean {
    while (this.at(space)) this.pos++;
    return this.at(lineFeed) || this.at(hash);
  }

  endLine(): boolean {
    const start = this.pos;
    if (!this.passSpaces() || (this.at(hash) && this.pos === start)) return false;
    this.toContent();
    return true;
  }

  toContent(): void {
    const bytes = this.#bytes;
    let at = this.pos;
    let lineStart = at;
    let lineFeeds = 0;
    let code = bytes[at] as number;
    this.passedComment = false;
    do {
      if (code === hash) this.passedComment = true;
      for (; code !== lineFeed; code = bytes[++at] as number) if (code < space) throw unsure;
      lineStart = at + 1;
      lineFeeds++;
      at = lineStart;
      if (at >= this.#end) break;
      while ((code = bytes[at] as number) === space) at++;
    } while (code === lineFeed || code === hash);
    this.lineFeeds = lineFeeds;
    this.pos = at;
    this.startLine(lineStart);
  }

  /** Throws `unsure` for a line that looks like a document marker, because such a line is hardly ever a key or an item. */
  startLine(start: number): void {
    this.column = this.pos < this.#end ? this.pos - start : -1;
    if (this.column !== 0 || (!this.at(dash) && !this.at(dot))) return;
    if (this.text.startsWith('---', start) || this.text.startsWith('...', start)) throw unsure;
  }
}

const beginsPlain = Uint8Array.from({ length: 0x100 }, (_, code) =>
  Number(code > 0x7e || /[A-Za-z0-9$()+./;\\^_~]/.test(String.fromCharCode(code))),
);
