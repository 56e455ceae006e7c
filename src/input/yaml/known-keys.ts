import type { Pattern } from './pattern.ts';

/** Longer mappings are hardly ever written alike. */
const maxPatternLength = 4096;
/** How many patterns are kept for mappings in one place. */
const maxPatterns = 6;
/** So many mappings in one place are tried as patterns; after that only one now and then. */
const eagerTries = 16;
/** How many keys are remembered after one another, and in all. More are read just as well, only slower. */
const maxKnownNext = 12;
const maxKnownKeys = 4096;

/** What reads a text, and moves over what fits a pattern. */
interface PatternReader {
  fits(pattern: Pattern): boolean;
}

interface Room {
  left: number;
}

/** Of keys that are not remembered, nor any below them: where there is no room, and where they would not be looked for. */
const noRoom: Room = Object.freeze({ left: 0 });

/**
 * The keys that mappings had so far, in their order, and how mappings in each place were written: what comes next is nearly
 * always what came next before, and comparing with that is cheaper than reading it anew. It makes reading many documents
 * faster and changes no result; but values that are written the same may be the same object.
 */
export class KnownKeys {
  readonly key: string;
  /** How mappings whose first key comes after this one were written. */
  #patterns: readonly Pattern[] = [];
  /** Keys seen after this one in the same mapping; plain ones only. */
  readonly next: KnownKeys[] = [];
  /** The first keys of this key's own mapping, or of the mappings in its list. */
  #inner: KnownKeys | undefined;
  /** How many more keys may be remembered in all. */
  readonly #room: Room;
  #misses = 0;

  constructor(key = '', room: Room = { left: maxKnownKeys }) {
    this.key = key;
    this.#room = room;
  }

  /** A key that is read as if none were known. */
  static forgotten(key: string): KnownKeys {
    return new KnownKeys(key, noRoom);
  }

  /** The key `text` after this one, remembered if there is room. */
  follow(text: string): KnownKeys {
    if (this.#room.left === 0 || this.next.length === maxKnownNext) return KnownKeys.forgotten(text);
    this.#room.left--;
    const known = new KnownKeys(text, this.#room);
    this.next.push(known);
    return known;
  }

  get inner(): KnownKeys {
    return (this.#inner ??= new KnownKeys('', this.#room));
  }

  /** The pattern that the reader finds its text to fit, of those for where it is. Gives up what hardly ever fits. */
  findPattern(column: number, depth: number, reader: PatternReader): Pattern | undefined {
    const patterns = this.#patterns;
    for (let i = 0; i < patterns.length; i++) {
      const pattern = patterns[i] as Pattern;
      if (pattern.column !== column || pattern.depth !== depth) continue;
      if (reader.fits(pattern)) return pattern;
      if (!pattern.miss()) this.#patterns = this.#patterns.filter((other) => other !== pattern);
    }
    return undefined;
  }

  /**
   * Whether a mapping of that length, which no pattern fits, is worth a pattern. Where all are written differently, hardly
   * one is.
   */
  wantsPattern(length: number): boolean {
    if (this.#room === noRoom || length > maxPatternLength) return false;
    const misses = ++this.#misses;
    return misses <= eagerTries || (misses & (misses - 1)) === 0;
  }

  /** Takes over what is new of a pattern: into the one that differs in scalars alone, or as another one. */
  learn(pattern: Pattern): void {
    for (const known of this.#patterns) {
      const merged = known.merge(pattern);
      if (!merged) continue;
      this.#patterns = this.#patterns.map((other) => (other === known ? merged : other));
      return;
    }
    this.#patterns = [...this.#patterns.slice(this.#patterns.length < maxPatterns ? 0 : 1), pattern];
  }
}
