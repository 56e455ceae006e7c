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
    const first = word.charCodeAt(0);
    if (first === newline) tokens.push({ text: word, line: line++ });
    else if (first === backslash && word.endsWith('\n')) line++;
    else if (first !== blank && first !== tab && first !== carriageReturn && first !== hash)
      tokens.push({ text: word, line });
  }
  return tokens;
}

const tab = 9;
const newline = 10;
const carriageReturn = 13;
const blank = 32;
const hash = 35;
const backslash = 92;

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
  position = 0;

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  get done(): boolean {
    return this.position >= this.#words.length;
  }

  peek(ahead = 0): string | undefined {
    return this.#words[this.position + ahead];
  }

  next(): string | undefined {
    return this.#words[this.position++];
  }

  /** Whether the next words are these; then they are taken. */
  take(...expected: readonly string[]): boolean {
    if (!expected.every((word, i) => this.peek(i) === word)) return false;
    this.position += expected.length;
    return true;
  }

  /** All that are left. */
  rest(): readonly string[] {
    return this.#words.slice(this.position);
  }
}
