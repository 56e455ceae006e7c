export interface Item {
  readonly line: number;
  /** Each word is a string with its quotes, `{`, `}`, `,` or text between blanks. Inside braces, a line end counts as a blank. */
  readonly words: readonly string[];
  readonly items?: readonly Item[];
}

/** Splits a text into items; tables and their contents are blocks. Drops comments. `open`: the lines where unclosed blocks begin. */
export function cutItems(text: string): {
  readonly items: readonly Item[];
  readonly open: readonly number[];
  /** Lines of omitted statements. Such a statement has a string that is not closed on its line. */
  readonly unclosed: readonly number[];
} {
  const pattern =
    /[ \t\r]+|\\\r?\n|#[^\n]*|(?<=\bcomment )"[^"]*"?|"[^"\n]*"?|[{},;\n]|(?:[^\s{},;"#\\]|\\(?!\r?\n))[^\s{},;"#\\]*(?:\\(?!\r?\n)[^\s{},;"#\\]*)*/g;
  const blocks: Item[][] = [[]];
  const open: number[] = [];
  const unclosed: number[] = [];
  let isClosed = true;
  let words: string[] = [];
  let first = 1;
  let line = 1;
  let braces = 0;
  const end = (items?: Item[]): void => {
    if (!isClosed) unclosed.push(first);
    else if (words.length > 0 || items)
      blocks.at(-1)?.push(items ? { line: first, words, items } : { line: first, words });
    words = [];
    isClosed = true;
  };
  for (const [word] of text.matchAll(pattern)) {
    const start = word.charAt(0);
    if (start === ' ' || start === '\t' || start === '\r' || start === '#') continue;
    if (words.length === 0) first = line;
    if (start === '"') line += word.split('\n').length - 1;
    else if (word.endsWith('\n')) line++;
    if (braces === 0 && (word === '\n' || word === ';')) end();
    else if (braces === 0 && word === '{' && blocks.length < 3) {
      const items: Item[] = [];
      open.push(first);
      end(items);
      blocks.push(items);
    } else if (braces === 0 && word === '}' && blocks.length > 1) {
      end();
      blocks.pop();
      open.pop();
    } else if (start === '"' || !word.endsWith('\n')) {
      if (word === '{') braces++;
      else if (word === '}' && braces > 0) braces--;
      // nft prints strings that span lines, but does not accept them as input.
      if (start === '"' && (!isQuoted(word) || word.includes('\n'))) isClosed = false;
      words.push(word);
    }
  }
  end();
  return { items: blocks[0] ?? [], open, unclosed };
}

export function isQuoted(word: string | undefined): word is string {
  return word !== undefined && word.length >= 2 && word.startsWith('"') && word.endsWith('"');
}

export function unquote(word: string): string {
  return isQuoted(word) ? word.slice(1, -1) : word;
}

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

  next(): string {
    const word = this.peek() ?? '';
    this.position++;
    return word;
  }

  /** If these are the next words, consumes them and returns true. */
  take(...expected: readonly string[]): boolean {
    for (let i = 0; i < expected.length; i++) if (this.peek(i) !== expected[i]) return false;
    this.position += expected.length;
    return true;
  }

  takeRest(): readonly string[] {
    const rest = this.#words.slice(this.position, this.#end);
    this.position = this.#end;
    return rest;
  }

  /** Returns the words consumed since `start`. */
  since(start: number): string {
    return this.#words.slice(start, Math.min(this.position, this.#end)).join(' ');
  }

  takeComment(): string | undefined {
    const comment = this.#words[this.#end - 1];
    if (this.#words[this.#end - 2] !== 'comment' || !isQuoted(comment)) return undefined;
    this.#end -= 2;
    return unquote(comment);
  }
}
