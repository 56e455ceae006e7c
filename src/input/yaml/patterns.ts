import { resolvePlainScalar } from './scalars.ts';

/** In characters: longer mappings are hardly ever written alike. */
const maxLength = 4096;
/** The most patterns kept for mappings in one place, and the most places. */
const maxPatterns = 6;
const maxPlaces = 500;
/** How many mappings in one place are all tried as patterns; of later ones, only one now and then. */
const eagerTries = 16;

/**
 * How mappings were written so far, by the key whose value they are or are listed in: the next one is nearly always
 * written the same, except for some scalars. Speeds up reading many documents and changes no result, but values that
 * are written the same may be the same object.
 */
export class KnownPatterns {
  readonly #places = new Map<string, PatternsOfKey>();

  /** Returns what is known about mappings below a key. */
  below(key: string): PatternsOfKey {
    const known = this.#places.get(key);
    if (known) return known;
    const place = new PatternsOfKey();
    if (this.#places.size < maxPlaces) this.#places.set(key, place);
    return place;
  }

  /** The value of a document that is written like an earlier one, up to the last line feed; undefined if none is. */
  findWhole(text: string): { readonly value: unknown } | undefined {
    const start = text.startsWith('---\n') ? 4 : 0;
    for (const pattern of this.below('').patterns) {
      const found = pattern.column === 0 ? pattern.match(text, start) : undefined;
      if (found && found.end >= text.length - 1) return { value: pattern.make(found.scalars) };
    }
    return undefined;
  }
}

/** The patterns of mappings below one key. */
class PatternsOfKey {
  patterns: readonly Pattern[] = [];
  #misses = 0;

  /**
   * Learns how a mapping that fits no pattern is written: merges it into the pattern that differs only in scalars, or
   * adds a pattern. If all mappings are written differently, hardly any is worth it.
   */
  learn(text: string, column: number, value: unknown): void {
    const misses = ++this.#misses;
    if (text.length > maxLength || (misses > eagerTries && (misses & (misses - 1)) !== 0)) return;
    const example = readExample(text, column, value);
    if (!example) return;
    const merged = this.patterns.map((pattern) => pattern.merge(example) ?? pattern);
    if (merged.some((pattern, i) => pattern !== this.patterns[i])) this.patterns = merged;
    else this.patterns = [...this.patterns.slice(1 - maxPatterns), new Pattern(example, new Set())];
  }
}

/** A scalar on one line that can be read by itself: a plain word, or a quoted string without escapes. */
const scalar = String.raw`[A-Za-z0-9](?:[\w./:-]*[\w./-])?|"[ !#-[\]-~]*"|'[ -&(-~]*'`;
/** Finds them in a text, after a key or a dash. */
const scalars = /(?<=: |- )([A-Za-z0-9](?:[\w./:-]*[\w./-])?|"[ !#-[\]-~]*"|'[ -&(-~]*')(?=\n|$)/;
/** The text between them, if it holds no scalars of another kind. */
const structure = /^(?:[ \n]|-(?= )|[A-Za-z][\w./:-]*:(?=[ \n]|$)|\{\}|\[\])*$/;

/** A mapping that was read: its text, split at its scalars, and its value. */
interface Example {
  /** A text means the same only in the same column. */
  readonly column: number;
  readonly value: unknown;
  /** Text and scalars in turn, beginning with text. */
  readonly pieces: readonly string[];
}

function readExample(text: string, column: number, value: unknown): Example | undefined {
  const pieces = text.split(scalars);
  if (!pieces.every((piece, i) => i % 2 === 1 || structure.test(piece))) return undefined;
  const leaves = leavesOf(value);
  // A scalar that continues on another line is one value, but looks like several.
  const areAlike =
    pieces.length === 2 * leaves.length + 1 && leaves.every((leaf, i) => leaf === resolve(pieces[2 * i + 1] ?? ''));
  return areAlike ? { column, value, pieces } : undefined;
}

/** The scalars in a value, except null, which may be written as nothing. */
function leavesOf(value: unknown): readonly unknown[] {
  if (value === null) return [];
  return typeof value === 'object' ? Object.values(value).flatMap(leavesOf) : [value];
}

function resolve(written: string): unknown {
  return written.startsWith('"') || written.startsWith("'") ? written.slice(1, -1) : resolvePlainScalar(written);
}

/** How a part of the mapping is made. */
type Part =
  /** The same in every value. */
  | { readonly kind: 'fixed'; readonly value: unknown }
  /** One of the varying scalars, by its order in the text, from 1. */
  | { readonly kind: 'scalar'; readonly index: number }
  /** A list, or a mapping with these keys, that holds varying scalars. */
  | { readonly kind: 'mould'; readonly keys: readonly string[] | undefined; readonly parts: readonly Part[] };

/**
 * A mapping as once written, to read mappings that differ from it only in some scalars. The rest of the text is the
 * same, so a match has the same structure, and only those scalars must be read.
 */
class Pattern {
  readonly column: number;
  readonly #text: RegExp;
  readonly #example: Example;
  /** The scalars that may differ, by their index in `pieces`. */
  readonly #varying: ReadonlySet<number>;
  readonly #part: Part;

  constructor(example: Example, varying: ReadonlySet<number>) {
    this.column = example.column;
    this.#example = example;
    this.#varying = varying;
    const source = example.pieces.map((piece, i) => {
      return varying.has(i) ? `(${scalar})` : piece.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
    });
    // A scalar holds no line feed, but one follows it.
    this.#text = new RegExp(`${source.join('')}(?=\n|$)`, 'y');
    const indexes = [...example.pieces.keys()].filter((i) => varying.has(i));
    let piece = -1;
    const partOf = (value: unknown): Part => {
      if (value === null) return { kind: 'fixed', value };
      if (typeof value !== 'object') {
        piece += 2;
        return varying.has(piece) ? { kind: 'scalar', index: indexes.indexOf(piece) + 1 } : { kind: 'fixed', value };
      }
      const parts = Object.values(value).map(partOf);
      if (parts.every(({ kind }) => kind === 'fixed')) return { kind: 'fixed', value };
      return { kind: 'mould', keys: Array.isArray(value) ? undefined : Object.keys(value), parts };
    };
    this.#part = partOf(example.value);
  }

  /** Returns a pattern that also fits the example; undefined if they differ in more than scalars. */
  merge({ column, pieces }: Example): Pattern | undefined {
    const own = this.#example;
    if (column !== own.column || pieces.length !== own.pieces.length) return undefined;
    const others = [...pieces.keys()].filter((i) => pieces[i] !== own.pieces[i]);
    if (others.some((i) => i % 2 === 0)) return undefined;
    return new Pattern(own, new Set([...this.#varying, ...others]));
  }

  /** The end of the mapping that begins at `start`, and its scalars; undefined if it does not fit. */
  match(text: string, start: number): { readonly end: number; readonly scalars: readonly string[] } | undefined {
    this.#text.lastIndex = start;
    const found = this.#text.exec(text);
    return found ? { end: this.#text.lastIndex, scalars: found } : undefined;
  }

  /** The value with these scalars. Parts that hold none of them are the same object in every value. */
  make(written: readonly string[]): unknown {
    return fill(this.#part, written);
  }
}

/** Copying a value and changing the copy takes twice as long. */
function fill(part: Part, written: readonly string[]): unknown {
  switch (part.kind) {
    case 'fixed':
      return part.value;
    case 'scalar':
      return resolve(written[part.index] ?? '');
    case 'mould':
      return fillMould(part.keys, part.parts, written);
  }
}

function fillMould(keys: readonly string[] | undefined, parts: readonly Part[], written: readonly string[]): object {
  const first = parts[0];
  // Most lists have one item: an endpoint has one address.
  if (!keys) return first && parts.length === 1 ? [fill(first, written)] : parts.map((part) => fill(part, written));
  const made: Record<string, unknown> = {};
  for (let i = 0; i < parts.length; i++) made[keys[i] as string] = fill(parts[i] as Part, written);
  return made;
}
