import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  dash,
  dot,
  doubleQuote,
  endOfText,
  greater,
  openBrace,
  openBracket,
  pipe,
  singleQuote,
  space,
  tab,
} from '../characters.ts';
import { refuse } from '../syntax-fault.ts';
import { Cursor, isBlank, isBreak, isSpaceOrEnd } from './cursor.ts';
import type { Mark } from './cursor.ts';
import { scanAnchor, scanDirective, scanTag } from './scan-properties.ts';
import { atDocumentMarker, refuseTab, scanBlockScalar, scanPlain, scanQuoted } from './scan-scalars.ts';
import type { SignKind, Token } from './tokens.ts';

const percent = 0x25;
const ampersand = 0x26;
const asterisk = 0x2a;
const question = 0x3f;
const exclamation = 0x21;

/** A key without "?" is one line of at most so many characters. */
const maxKeyLength = 1024;

/** Something that is a key if a colon comes after it. */
interface PossibleKey {
  readonly mark: Mark;
  /** Of its first token, counted from the start of the text. */
  readonly token: number;
  /** Whether only a key can stand there. */
  readonly required: boolean;
  /** Whether the colon can still come, as far as is known. */
  possible: boolean;
}

/** The block around the position, or a flow collection in it. */
interface Level {
  key: PossibleKey | undefined;
  /** Of the last possible key, or of the collection itself before the first one. */
  token: number;
}

/** What starts no plain scalar unless something certain follows. */
const indicators: ReadonlySet<number> = new Set(Array.from('-?:,[]{}#&*!|>\'"%@`', (char) => char.charCodeAt(0)));

/**
 * Makes tokens of a text, as the scanner of go-yaml v2 does, which is that of libyaml: what is a key shows only at its
 * colon, so a token waits until it is known whether a key begins with it. The text ends with a line feed.
 */
export class Scanner {
  readonly #cursor: Cursor;
  /** Tokens that were not taken yet, from #head on. */
  #queue: Token[] = [];
  #head = 0;
  /** How many tokens were taken. */
  #taken = 0;
  readonly #block: Level = { key: undefined, token: 0 };
  /** The flow collections around the position, the outermost first. */
  readonly #flows: Level[] = [];
  /** The possible keys whose first token waits for them. */
  readonly #keysByToken = new Map<number, PossibleKey>();
  #keyAllowed = true;
  /** The column of the block collection around the position, -1 where there is none, and those around that. */
  #indent = -1;
  readonly #indents: number[] = [];
  #ended = false;

  constructor(text: string) {
    this.#cursor = new Cursor(text);
  }

  /** The next token. */
  peek(): Token {
    while (this.#needsMore()) this.#fetch();
    const token = this.#queue[this.#head];
    return token ?? { kind: 'text-end', start: this.#cursor.offset, end: this.#cursor.offset };
  }

  /** Moves on to the token after the one that was peeked at. */
  take(): void {
    this.#taken++;
    this.#head++;
    if (this.#head === this.#queue.length) {
      this.#queue = [];
      this.#head = 0;
    }
  }

  get #inFlow(): boolean {
    return this.#flows.length > 0;
  }

  get #level(): Level {
    return this.#flows.at(-1) ?? this.#block;
  }

  /** The number of the token that comes next into the queue. */
  get #nextToken(): number {
    return this.#taken + this.#queue.length - this.#head;
  }

  #needsMore(): boolean {
    if (this.#ended) return false;
    if (this.#head === this.#queue.length) return true;
    const key = this.#keysByToken.get(this.#taken);
    return key !== undefined && this.#isValid(key);
  }

  /** Whether the colon of the key can still come. */
  #isValid(key: PossibleKey): boolean {
    if (!key.possible) return false;
    const { line, index } = this.#cursor;
    if (key.mark.line === line && key.mark.index + maxKeyLength >= index) return true;
    if (key.required) refuseLonelyKey(key);
    key.possible = false;
    return false;
  }

  #push(token: Token): void {
    this.#queue.push(token);
  }

  /** Puts a token before the one with that number; to the end, as libyaml does, where that one is taken. */
  #insert(number: number, token: Token): void {
    if (number < this.#taken) this.#push(token);
    else this.#queue.splice(this.#head + number - this.#taken, 0, token);
  }

  #pushSign(kind: SignKind, length: number): void {
    const start = this.#cursor.offset;
    this.#cursor.skipMany(length);
    this.#push({ kind, start, end: start + length });
  }

  #fetch(): void {
    const cursor = this.#cursor;
    this.#skipToToken();
    this.#closeBlocks(cursor.column);
    const code = cursor.peek();
    if (code === endOfText) return this.#fetchEnd();
    if (cursor.column === 0 && code === percent) return this.#fetchDirective();
    if (atDocumentMarker(cursor)) return this.#fetchDocumentMarker(code === dot ? 'document-end' : 'document-start');
    const startsWord = !isSpaceOrEnd(cursor.peek(1));
    switch (code) {
      case openBracket:
        return this.#fetchFlowStart('flow-sequence-start');
      case openBrace:
        return this.#fetchFlowStart('flow-mapping-start');
      case closeBracket:
        return this.#fetchFlowEnd('flow-sequence-end');
      case closeBrace:
        return this.#fetchFlowEnd('flow-mapping-end');
      case comma:
        this.#forgetKey();
        this.#keyAllowed = true;
        return this.#pushSign('flow-entry', 1);
      case dash:
        if (!startsWord) return this.#fetchEntry();
        break;
      case question:
        if (this.#inFlow || !startsWord) return this.#fetchKey();
        break;
      case colon:
        if (this.#inFlow || !startsWord) return this.#fetchValue();
        break;
      case asterisk:
      case ampersand:
        this.#saveKey();
        return this.#push(scanAnchor(cursor, code === asterisk ? 'alias' : 'anchor'));
      case exclamation:
        this.#saveKey();
        return this.#push(scanTag(cursor));
      case pipe:
      case greater:
        if (!this.#inFlow) return this.#fetchBlockScalar();
        break;
      case singleQuote:
      case doubleQuote:
        return this.#fetchQuoted();
    }
    this.#fetchPlain(code);
  }

  /** Moves over blanks, comments and line ends. Tabs are no indentation, and so no blanks where a key can begin. */
  #skipToToken(): void {
    const cursor = this.#cursor;
    for (;;) {
      while (cursor.peek() === space || (cursor.peek() === tab && (this.#inFlow || !this.#keyAllowed))) cursor.skip();
      cursor.skipComment();
      if (!isBreak(cursor.peek())) return;
      cursor.readBreak();
      if (!this.#inFlow) this.#keyAllowed = true;
    }
  }

  /** Notes that a key may begin here. */
  #saveKey(): void {
    if (this.#keyAllowed) {
      const cursor = this.#cursor;
      const required = !this.#inFlow && this.#indent === cursor.column;
      this.#forgetKey();
      const token = this.#nextToken;
      const key: PossibleKey = { mark: cursor.mark(), token, required, possible: true };
      this.#level.key = key;
      this.#level.token = token;
      this.#keysByToken.set(token, key);
    }
    this.#keyAllowed = false;
  }

  #forgetKey(): void {
    const { key } = this.#level;
    if (!key?.possible) return;
    if (key.required) refuseLonelyKey(key);
    this.#dropKey(key);
  }

  #dropKey(key: PossibleKey): void {
    key.possible = false;
    this.#keysByToken.delete(key.token);
  }

  /** Opens a block collection in a column that is further in than the one around it. */
  #openBlock(column: number, kind: SignKind, start: number, token?: number): void {
    if (this.#inFlow || this.#indent >= column) return;
    this.#indents.push(this.#indent);
    this.#indent = column;
    const sign = { kind, start, end: start };
    if (token === undefined) this.#push(sign);
    else this.#insert(token, sign);
  }

  #closeBlocks(column: number): void {
    if (this.#inFlow) return;
    const { offset } = this.#cursor;
    while (this.#indent > column) {
      this.#push({ kind: 'block-end', start: offset, end: offset });
      this.#indent = this.#indents.pop() ?? -1;
    }
  }

  #fetchEnd(): void {
    this.#closeBlocks(-1);
    this.#forgetKey();
    this.#ended = true;
    this.#pushSign('text-end', 0);
  }

  #fetchDirective(): void {
    this.#closeBlocks(-1);
    this.#forgetKey();
    this.#keyAllowed = false;
    this.#push(scanDirective(this.#cursor));
  }

  #fetchDocumentMarker(kind: 'document-start' | 'document-end'): void {
    this.#closeBlocks(-1);
    this.#forgetKey();
    this.#keyAllowed = false;
    this.#pushSign(kind, 3);
  }

  #fetchFlowStart(kind: SignKind): void {
    this.#saveKey();
    this.#flows.push({ key: undefined, token: this.#nextToken });
    this.#keyAllowed = true;
    this.#pushSign(kind, 1);
  }

  #fetchFlowEnd(kind: SignKind): void {
    this.#forgetKey();
    // Of a collection without a possible key, libyaml forgets that the collection may be one, and does not wait for the colon.
    const level = this.#flows.pop();
    if (level) this.#keysByToken.delete(level.token);
    this.#keyAllowed = false;
    this.#pushSign(kind, 1);
  }

  #fetchEntry(): void {
    if (!this.#inFlow) {
      const { column, offset } = this.#cursor;
      if (!this.#keyAllowed) refuse(offset, { problem: 'list-on-this-line' });
      this.#openBlock(column, 'block-sequence-start', offset);
    }
    this.#forgetKey();
    this.#keyAllowed = true;
    this.#pushSign('block-entry', 1);
  }

  #fetchKey(): void {
    if (!this.#inFlow) {
      const { column, offset } = this.#cursor;
      if (!this.#keyAllowed) refuse(offset, { problem: 'mapping-here' });
      this.#openBlock(column, 'block-mapping-start', offset);
    }
    this.#forgetKey();
    this.#keyAllowed = !this.#inFlow;
    this.#pushSign('key', 1);
  }

  #fetchValue(): void {
    const { key } = this.#level;
    if (key && this.#isValid(key)) {
      const { offset, column } = key.mark;
      this.#insert(key.token, { kind: 'key', start: offset, end: offset });
      this.#openBlock(column, 'block-mapping-start', offset, key.token);
      this.#dropKey(key);
      this.#keyAllowed = false;
    } else {
      if (!this.#inFlow) {
        const { column, offset } = this.#cursor;
        if (!this.#keyAllowed) {
          refuse(offset, { problem: 'mapping-on-this-line' });
        }
        this.#openBlock(column, 'block-mapping-start', offset);
      }
      this.#keyAllowed = !this.#inFlow;
    }
    this.#pushSign('value', 1);
  }

  #fetchBlockScalar(): void {
    this.#forgetKey();
    this.#keyAllowed = true;
    const start = this.#cursor.offset;
    const value = scanBlockScalar(this.#cursor, this.#indent);
    this.#push({ kind: 'scalar', value, isPlain: false, start, end: this.#cursor.offset });
  }

  #fetchQuoted(): void {
    this.#saveKey();
    const start = this.#cursor.offset;
    const value = scanQuoted(this.#cursor);
    this.#push({ kind: 'scalar', value, isPlain: false, start, end: this.#cursor.offset });
  }

  #fetchPlain(first: number): void {
    const cursor = this.#cursor;
    const start = cursor.offset;
    if (!this.#startsPlain(first)) {
      if (first === tab) refuseTab(start);
      refuse(start, { problem: 'first-character', character: String.fromCharCode(first) });
    }
    this.#saveKey();
    const { value, end, broken } = scanPlain(cursor, this.#indent, this.#inFlow);
    if (broken) this.#keyAllowed = true;
    this.#push({ kind: 'scalar', value, isPlain: true, start, end });
  }

  #startsPlain(first: number): boolean {
    if (!indicators.has(first)) return !isSpaceOrEnd(first);
    const second = this.#cursor.peek(1);
    if (first === dash) return !isBlank(second);
    return !this.#inFlow && (first === question || first === colon) && !isSpaceOrEnd(second);
  }
}

function refuseLonelyKey({ mark }: PossibleKey): never {
  refuse(mark.offset, { problem: 'no-key-with-colon' });
}
