import { refuse, refuseTab } from '../documents/syntax-fault.ts';

/** A sign of the lexer for the parser is a control character, and not in the text: a plain scalar or a block of text follows. */
const scalarSign = '\u001F';
const signs: ReadonlySet<string> = new Set(['\u0002', '\u0018', scalarSign]);

/** What kubectl reads otherwise than the package, by the sign that it begins with. A pattern sees one character more. */
const odd: Readonly<Record<string, readonly [what: string, pattern: RegExp]>> = {
  '%': ['a line that begins with "%"', /^(?!%YAML[ \t]+1\.1\s?$)/],
  '?': ['a key after "?"', /^/],
  '&': ['this name of an anchor', /^(?!.[\w-]+(?:[\s,[\]{}]|$))/],
  '*': ['this name of an alias', /^(?!.[\w-]+(?:[\s,[\]{}]|$))/],
  '!': ['a tag other than !!str', /^(?!!!str(?:\s|$))/],
  '"': [
    'this escape',
    /(?<!\\)(?:\\\\)*\\(?:\/|[uU](?:0000)?[dD][89a-fA-F][\da-fA-F]{2}|U(?!000[\da-fA-F]|0010).{8}|\r?\n[ \t]*\r?\n)/,
  ],
};

/** What is before the place on a line where a key or an item of a block may begin: go-yaml takes no tab there. */
const beforeKey = /^(?!---)[-?: ]*$/;

/** Longer ones are machines' work, who write JSON: that is read otherwise, and has no such limit. */
export const mostInFlows = 400_000;

/** Refuses what go-yaml takes otherwise than the package, or not at all, as far as single lexemes show it. */
export class LexemeChecker {
  readonly #text: string;
  readonly #mostInFlows: number;
  #offset = 0;
  #flows = 0;
  /** Lexemes in brackets, of which the package makes the most of all for each character. */
  #inFlows = 0;
  #lineStart = 0;
  #atScalar = false;
  /** Whether the last lexeme with content in it was a plain scalar in brackets. */
  #afterPlain = false;

  constructor(text: string, most: number) {
    this.#text = text;
    this.#mostInFlows = most;
  }

  /** Takes the next lexeme of the text. Throws a Refusal. */
  check(source: string): void {
    if (this.#flows > 0 && ++this.#inFlows > this.#mostInFlows)
      refuse(this.#offset, `more than ${mostInFlows} words and signs in brackets`);
    if (signs.has(source)) {
      this.#atScalar = source === scalarSign;
      return;
    }
    if (this.#atScalar) this.#checkScalar(source);
    else this.#checkSign(source);
    const lineFeed = source.lastIndexOf('\n');
    if (lineFeed >= 0) this.#lineStart = this.#offset + lineFeed + 1;
    this.#offset += source.length;
  }

  #checkScalar(source: string): void {
    this.#atScalar = false;
    this.#afterPlain = this.#flows > 0;
    if (this.#flows > 0 && /^:|\?/.test(source)) refuse(this.#offset, 'this word in brackets');
  }

  #checkSign(source: string): void {
    const offset = this.#offset;
    const after = this.#text.charAt(offset + source.length);
    const sign = source.charAt(0);
    if (sign === '[' || sign === '{') this.#flows++;
    if (sign === ']' || sign === '}') this.#flows--;
    if (sign === ' ' || sign === '\t') this.#checkTab(source);
    if (sign === ':' && this.#afterPlain && /[,[\]{}]/.test(after)) refuse(offset, 'this ":" in brackets');
    const [what, pattern] = odd[sign] ?? [];
    const found = pattern?.exec(source + after);
    if (what !== undefined && found) refuse(offset + found.index, what);
    if (!/^[ \t\r\n]*$/.test(source)) this.#afterPlain = false;
  }

  #checkTab(source: string): void {
    const tab = source.indexOf('\t');
    if (tab < 0) return;
    const before = this.#text.slice(this.#lineStart, this.#offset + tab);
    const isOdd = this.#flows === 0 ? beforeKey.test(before) : this.#afterPlain && /^ *$/.test(before);
    if (isOdd) refuseTab(this.#offset + tab);
  }
}
