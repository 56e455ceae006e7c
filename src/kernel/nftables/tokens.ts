/**
 * A word of nft's language: a string in double quotes with its quotes, one of `{`, `}`, `,` and `;`, the end of a line, or
 * anything else between blanks.
 */
export interface Token {
  readonly text: string;
  /** Counts from 1. */
  readonly line: number;
}

/** Splits a text into words. Comments, which begin with `#`, are left out, and so is the end of a line after `\`. */
export function scan(text: string): readonly Token[] {
  const tokens: Token[] = [];
  const pattern = /[ \t\r]+|\\\r?\n|#[^\n]*|"[^"\n]*"?|[{},;\n]|(?:[^\s{},;"#\\]|\\(?!\r?\n))+/g;
  let line = 1;
  for (const [word] of text.matchAll(pattern)) {
    const first = word.charAt(0);
    if (first === '\n') tokens.push({ text: word, line: line++ });
    else if (first === '\\' && word.endsWith('\n')) line++;
    else if (first !== ' ' && first !== '\t' && first !== '\r' && first !== '#') tokens.push({ text: word, line });
  }
  return tokens;
}

/** Whether the word is a string in quotes. */
export function isQuoted(word: string | undefined): word is string {
  return word !== undefined && word.length >= 2 && word.startsWith('"') && word.endsWith('"');
}

/** A string without its quotes. */
export function unquote(word: string): string {
  return isQuoted(word) ? word.slice(1, -1) : word;
}

/** Reads words one after the other. */
export class Words {
  readonly #words: readonly string[];
  #end: number;
  position = 0;

  constructor(words: readonly string[]) {
    this.#words = words;
    this.#end = words.length;
  }

  get done(): boolean {
    return this.position >= this.#end;
  }

  peek(ahead = 0): string | undefined {
    const at = this.position + ahead;
    return at < this.#end ? this.#words[at] : undefined;
  }

  /** '' after the last. */
  next(): string {
    const word = this.peek() ?? '';
    this.position++;
    return word;
  }

  /** Whether the next words are these; then they are taken. */
  take(...expected: readonly string[]): boolean {
    if (!expected.every((word, i) => this.peek(i) === word)) return false;
    this.position += expected.length;
    return true;
  }

  /** All that are left. */
  takeRest(): readonly string[] {
    const rest = this.#words.slice(this.position, this.#end);
    this.position = this.#end;
    return rest;
  }

  /** The comment at the end, without its quotes; undefined if there is none. */
  takeComment(): string | undefined {
    const comment = this.#words[this.#end - 1];
    if (this.#words[this.#end - 2] !== 'comment' || !isQuoted(comment)) return undefined;
    this.#end -= 2;
    return unquote(comment);
  }
}
