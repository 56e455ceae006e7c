import { refuse, refuseTab } from '../syntax-fault.ts';
import { scalarSign, type Lexeme } from './lex.ts';

/** What is before the place on a line where a key or an item of a block may begin: go-yaml takes no tab there. */
const beforeKey = /^(?!---)[-?: ]*$/;

/** Escapes in double quotes that go-yaml does not know, or takes otherwise: one of a line end before a blank line, too. */
const oddEscape =
  /(?<!\\)(?:\\\\)*(\\(?:\/|[uU](?:0000)?[dD][89a-fA-F][\da-fA-F]{2}|U(?!000[\da-fA-F]|0010).{8}|\r?\n[ \t]*\r?\n))/;

/** Longer ones are machines' work, who write JSON: that is read otherwise, and has no such limit. */
export const mostInFlows = 400_000;

/** Refuses what go-yaml means otherwise than the package, or does not take, as far as single lexemes show it. */
export class LexemeChecker {
  readonly #text: string;
  readonly #mostInFlows: number;
  #flows = 0;
  /** Lexemes in brackets, of which the package makes the most of all for each character. */
  #inFlows = 0;
  #lineStart = 0;
  /** Whether a plain scalar or a block of text comes next. */
  #atScalar = false;
  /** Whether the last lexeme with content in it was a plain scalar in brackets. */
  #afterPlain = false;

  constructor(text: string, most: number) {
    this.#text = text;
    this.#mostInFlows = most;
  }

  /** Throws a Refusal. */
  check(lexeme: Lexeme): void {
    this.#check(lexeme);
    const { source, offset } = lexeme;
    const lineFeed = source.lastIndexOf('\n');
    if (lineFeed >= 0) this.#lineStart = offset + lineFeed + 1;
  }

  #check({ source, offset }: Lexeme): void {
    if (this.#flows > 0 && ++this.#inFlows > this.#mostInFlows) refuse(offset, { problem: 'long-flow' });
    if (source === scalarSign) {
      this.#atScalar = true;
    } else if (this.#atScalar) {
      this.#atScalar = false;
      this.#afterPlain = this.#flows > 0;
      const odd = this.#flows > 0 ? source.search(/^:|\?/) : -1;
      if (odd >= 0) refuse(offset + odd, { problem: 'odd-word', character: source.charAt(odd) });
    } else {
      this.#checkSign(source, offset);
      if (!/^[ \t\r\n]*$/.test(source)) this.#afterPlain = false;
    }
  }

  #checkSign(source: string, offset: number): void {
    const after = this.#text.charAt(offset + source.length);
    switch (source.charAt(0)) {
      case '[':
      case '{':
        this.#flows++;
        return;
      case ']':
      case '}':
        this.#flows--;
        return;
      case ' ':
      case '\t':
        return this.#checkTab(source, offset);
      case ':':
        if (this.#afterPlain && /[,[\]{}]/.test(after)) refuse(offset, { problem: 'no-space-after-colon' });
        return;
      case '%':
        if (!/^%YAML[ \t]+1\.1$/.test(source)) refuse(offset, { problem: 'directive' });
        return;
      case '&':
      case '*':
        if (!/^.[\w-]+$/.test(source)) refuse(offset, { problem: 'bad-anchor-name' });
        return;
      case '!':
        if (!/^!(?:!?[\w./:-]*|<[\w.,/:-]+>)$/.test(source) || !/^\s?$/.test(after))
          refuse(offset, { problem: 'odd-tag' });
        return;
      case '"': {
        const escape = oddEscape.exec(source);
        if (!escape) return;
        const [all, written = ''] = escape;
        const at = offset + escape.index + all.length - written.length;
        refuse(at, { problem: 'escape', escape: written.trim() });
      }
    }
  }

  #checkTab(source: string, offset: number): void {
    const tab = source.indexOf('\t');
    if (tab < 0) return;
    const before = this.#text.slice(this.#lineStart, offset + tab);
    const isOdd = this.#flows === 0 ? beforeKey.test(before) : this.#afterPlain && /^ *$/.test(before);
    if (isOdd) refuseTab(offset + tab);
  }
}
