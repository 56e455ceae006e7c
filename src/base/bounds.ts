import { formatCount } from './format-count.ts';

/**
 * How much kpc reads of one input: what it holds costs memory, not its bytes. 10,000 Services with 10 endpoints are 820,000 lines of YAML,
 * and as many values.
 */
export const mostLines = 5_000_000;
/** Values of JSON and YAML: the items of lists, and the fields of objects. */
export const mostItems = 5_000_000;
/** Words and signs of YAML that is not plain, a million lines of a key and its value. Longer texts are lists, which are read in pieces. */
export const mostWords = 8_000_000;

/** Counts the lines of the texts of one input that are not empty: empty ones cost nothing. */
export class LineBudget {
  readonly #most: number;
  #count = 0;
  #size = 0;
  /** Texts that are not counted yet: together they are too short to hold too many lines. */
  readonly #waiting: string[] = [];

  constructor(most: number = mostLines) {
    this.#most = most;
  }

  /** Whether the input may have this text, too. */
  takes(text: string): boolean {
    this.#waiting.push(text);
    this.#size += text.length;
    // A line that is not empty has a character and an end.
    if (this.#size <= 2 * this.#most) return true;
    for (const each of this.#waiting.splice(0)) this.#add(each);
    return this.#count <= this.#most;
  }

  #add(text: string): void {
    for (let start = 0; start < text.length && this.#count <= this.#most;) {
      const end = text.indexOf('\n', start);
      if (end < 0) break;
      if (end > start + 1 || (end > start && text[start] !== '\r')) this.#count++;
      start = end + 1;
    }
  }
}

/** Whether a JSON text from an offset on has more values than the bound. What begins as JSON may be none. */
export function holdsMoreItems(text: string, most: number = mostItems): boolean {
  if (text.length <= 2 * most) return false;
  let items = 1;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === 0x22) at = endOfString(text, at);
    else if (character === 0x2c || character === 0x5b || character === 0x7b) {
      if (++items > most) return true;
    }
  }
  return false;
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return text.length;
}

/** What has a bound; `words`: words and signs of a YAML document that is not plain. */
export type Bounded = 'lines' | 'values' | 'words';

/** What is said of an input with more, as a clause about it. */
export function describeBound(of: Bounded, most: number): string {
  const places = {
    lines: 'lines of one input',
    values: 'values of one text',
    words: 'words and signs of YAML in this form',
  };
  const usual = { lines: mostLines, values: mostItems, words: mostWords };
  const heap =
    most < usual[of] ? `, as Node has little memory here: NODE_OPTIONS=--max-old-space-size=4096 gives it 4 GB` : '';
  return `too long: kpc reads no more than ${formatCount(most)} ${places[of]}${heap}`;
}
