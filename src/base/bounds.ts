import { endOfQuoted } from './json/locate.ts';

/** Limits for one input, because its values cost memory. 10,000 Services with 10 endpoints have 820,000 lines of YAML. */
export const mostLines = 5_000_000;
/** Limit for the values of JSON and YAML: items of lists and fields of objects. */
export const mostItems = 5_000_000;
/** The full reader's limit of words and signs in one YAML document, about a million lines. Longer lists are read in pieces. */
export const mostWords = 8_000_000;

/** The limit in bytes for all texts of one input together, which all stay in memory. It assumes ASCII texts. */
const mostBytes = 2 ** 30;

/** Limits that count only bytes, for texts whose lines are counted after reading. */
export const bytesAlone = { lines: Number.POSITIVE_INFINITY, bytes: mostBytes };

export interface Exceeded {
  readonly of: Bounded;
  readonly most: number;
}

export class TextBudget {
  readonly #most: { readonly lines: number; readonly bytes: number };
  #lines = 0;
  #bytes = 0;
  /** Texts whose lines are not yet counted, because all texts together are too short to exceed the limit of lines. */
  readonly #waiting: string[] = [];
  #isCounting = false;

  constructor(most = { lines: mostLines, bytes: mostBytes }) {
    this.#most = most;
  }

  add(text: string): Exceeded | undefined {
    const { lines, bytes } = this.#most;
    this.#bytes += text.length;
    if (this.#bytes > bytes) return { of: 'bytes', most: bytes };
    this.#waiting.push(text);
    // Only non-empty lines count, and each takes at least two bytes, so a shorter text cannot have too many lines.
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

export class TooLong extends Error {
  readonly exceeded: Exceeded;

  constructor(exceeded: Exceeded) {
    super('too long');
    this.name = 'TooLong';
    this.exceeded = exceeded;
  }
}

/** Parses untrusted text like JSON.parse. Throws a TooLong if it has more than `most` values. Test: architecture/json.test.ts. */
export function parseJson(text: string, most: number = mostItems): unknown {
  if (holdsMoreItems(text, most)) throw new TooLong({ of: 'values', most });
  return JSON.parse(text);
}

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

/**
 * The quantity that a limit applies to. `words` counts the words and signs of a YAML document that is not plain. From `file` to `archive`,
 * a limit is in bytes and a multiple of MB.
 */
export type Bounded =
  'bytes' | 'lines' | 'values' | 'words' | 'file' | 'bundle' | 'network' | 'archive' | 'files' | 'name' | 'patterns';

/** Limits that are lower if Node has little memory. */
export const mostOf: { readonly [B in Bounded]?: number } = {
  bytes: mostBytes,
  lines: mostLines,
  values: mostItems,
  words: mostWords,
};
