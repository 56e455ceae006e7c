import { carriageReturn, endOfText, isDigit, lineFeed, space, tab } from '../characters.ts';

/** A position in a text. Lines and columns count from 0; `index` and `column` count characters, not UTF-16 units. */
export interface Mark {
  readonly offset: number;
  readonly index: number;
  readonly line: number;
  readonly column: number;
}

const nextLine = 0x85;
const lineSeparator = 0x2028;
const paragraphSeparator = 0x2029;

/** Walks over a text character by character and knows its line and column, as the YAML parser of kubectl counts them. */
export class Cursor {
  readonly text: string;
  #offset = 0;
  #index = 0;
  #line = 0;
  #column = 0;

  constructor(text: string) {
    this.text = text;
  }

  get offset(): number {
    return this.#offset;
  }

  get column(): number {
    return this.#column;
  }

  get line(): number {
    return this.#line;
  }

  get index(): number {
    return this.#index;
  }

  mark(): Mark {
    return { offset: this.#offset, index: this.#index, line: this.#line, column: this.#column };
  }

  /** The code of the UTF-16 unit so many after the current one. */
  peek(ahead = 0): number {
    const at = this.#offset + ahead;
    return at < this.text.length ? this.text.charCodeAt(at) : endOfText;
  }

  /** Moves over one character, which does not end a line. */
  skip(): void {
    // A character is one unit, or a pair of them.
    this.#offset += (this.text.codePointAt(this.#offset) ?? 0) > 0xffff ? 2 : 1;
    this.#index++;
    this.#column++;
  }

  skipMany(count: number): void {
    for (let i = 0; i < count; i++) this.skip();
  }

  /** Moves over blanks: spaces and tabs. */
  skipBlanks(): void {
    while (isBlank(this.peek())) this.skip();
  }

  /** Moves over a comment, if one begins here, to the end of its line. */
  skipComment(): void {
    if (this.peek() !== 0x23) return;
    while (!isBreakOrEnd(this.peek())) this.skip();
  }

  /**
   * Moves over what ends a line, if the line ends here, and returns what it stands for in a scalar: a line feed, or the
   * separator itself.
   */
  readBreak(): string {
    const code = this.peek();
    if (!isBreak(code)) return '';
    // kubectl takes the carriage return off each line before its parser sees another one with the line feed.
    let length = 1;
    if (code === carriageReturn && this.peek(1) === lineFeed) length = 2;
    else if (code === carriageReturn && this.peek(1) === carriageReturn && this.peek(2) === lineFeed) length = 3;
    this.#offset += length;
    this.#index += length;
    this.#line++;
    this.#column = 0;
    return code === lineSeparator || code === paragraphSeparator ? String.fromCharCode(code) : '\n';
  }
}

/** Whether a line ends with the character, to YAML 1.1. */
export function isBreak(code: number): boolean {
  return (
    code === lineFeed ||
    code === carriageReturn ||
    code === nextLine ||
    code === lineSeparator ||
    code === paragraphSeparator
  );
}

export function isBreakOrEnd(code: number): boolean {
  return code === endOfText || isBreak(code);
}

export function isBlank(code: number): boolean {
  return code === space || code === tab;
}

/** White space after an indicator, or the end of the text. */
export function isSpaceOrEnd(code: number): boolean {
  return isBlank(code) || isBreakOrEnd(code);
}

/** What the names of anchors, directives and the handles of tags are made of. */
export function isNameCharacter(code: number): boolean {
  const letter = code | 0x20;
  return isDigit(code) || (letter >= 0x61 && letter <= 0x7a) || code === 0x5f || code === 0x2d;
}
