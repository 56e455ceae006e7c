import { formatCount } from './printable.ts';
import { endOfQuoted } from './json/locate.ts';

/**
 * How much kpc reads of one input: what it holds costs memory, not its bytes. 10,000 Services with 10 endpoints are 820,000 lines of YAML,
 * and as many values.
 */
export const mostLines = 5_000_000;
/** Values of JSON and YAML: the items of lists, and the fields of objects. */
export const mostItems = 5_000_000;
/** Words and signs of YAML that is not plain, a million lines of a key and its value. Longer texts are lists, which are read in pieces. */
export const mostWords = 8_000_000;

/** Bytes of all texts of one input, as far as they are ASCII: V8 holds them all. */
const mostBytes = 2 ** 30;

/** For what is counted again once it is read. */
export const bytesAlone = { lines: Number.POSITIVE_INFINITY, bytes: mostBytes };

/** A bound that an input exceeds. */
export interface Exceeded {
  readonly of: Bounded;
  readonly most: number;
}

/** Counts what the texts of one input have together: bytes, and lines that are not empty, as empty ones cost nothing. */
export class TextBudget {
  readonly #most: { readonly lines: number; readonly bytes: number };
  #lines = 0;
  #bytes = 0;
  /** Texts whose lines are not counted yet: together they are too short to hold too many. */
  readonly #waiting: string[] = [];
  #isCounting = false;

  constructor(most = { lines: mostLines, bytes: mostBytes }) {
    this.#most = most;
  }

  /** Adds a text. Gives the bound that the input exceeds with it; undefined if it may have it, too. */
  add(text: string): Exceeded | undefined {
    const { lines, bytes } = this.#most;
    this.#bytes += text.length;
    if (this.#bytes > bytes) return { of: 'bytes', most: bytes };
    this.#waiting.push(text);
    // A line that is not empty has a character and an end.
    this.#isCounting ||= this.#bytes > 2 * lines;
    if (this.#isCounting) for (const each of this.#waiting.splice(0)) this.#count(each);
    return this.#lines > lines ? { of: 'lines', most: lines } : undefined;
  }

  #count(text: string): void {
    for (let start = 0; start < text.length && this.#lines <= this.#most.lines;) {
      const end = text.indexOf('\n', start);
      if (end < 0) break;
      if (end > start + 1 || (end > start && text[start] !== '\r')) this.#lines++;
      start = end + 1;
    }
  }
}

/** The first of some texts with which they are together more than an input may have; undefined if they are not. */
export function findExcess<T extends { readonly text: string }>(
  texts: Iterable<T>,
): (Exceeded & { readonly at: T }) | undefined {
  const budget = new TextBudget();
  for (const at of texts) {
    const exceeded = budget.add(at.text);
    if (exceeded) return { ...exceeded, at };
  }
  return undefined;
}

/** Thrown for a text with more than the bound. The message is a clause about the text: "too long: kpc reads …". */
export class TooLong extends Error {
  constructor({ of, most }: Exceeded) {
    super(describeBound(of, most));
    this.name = 'TooLong';
  }
}

/**
 * As JSON.parse, for a text that anybody may have written: throws a TooLong for one with more values than the bound.
 * Test: only what kpc-apply itself wrote, and a piece of what was counted, is parsed without a bound.
 */
export function parseJson(text: string, most: number = mostItems): unknown {
  if (holdsMoreItems(text, most)) throw new TooLong({ of: 'values', most });
  return JSON.parse(text);
}

/** Whether a JSON text has more values than the bound. What begins as JSON may be none. */
export function holdsMoreItems(text: string, most: number): boolean {
  if (text.length <= 2 * most) return false;
  let items = 1;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === 0x22) at = (endOfQuoted(text, at) ?? text.length) - 1;
    else if (character === 0x2c || character === 0x5b || character === 0x7b) {
      if (++items > most) return true;
    }
  }
  return false;
}

/** What has a bound; `words`: words and signs of a YAML document that is not plain. */
export type Bounded = 'bytes' | 'lines' | 'values' | 'words';

/** What is said of an input with more, as a clause about it. */
export function describeBound(of: Bounded, most: number): string {
  const places = {
    bytes: 'bytes of one input',
    lines: 'lines of one input',
    values: 'values of one text',
    words: 'words and signs of YAML in this form',
  };
  const usual = { bytes: mostBytes, lines: mostLines, values: mostItems, words: mostWords };
  const heap =
    most < usual[of] ? `, as Node has little memory here: NODE_OPTIONS=--max-old-space-size=4096 gives it 4 GB` : '';
  return `too long: kpc reads no more than ${formatCount(most)} ${places[of]}${heap}`;
}
