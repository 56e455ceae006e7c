import { resolvePlainScalar } from './scalars.ts';

/** Longer mappings are hardly ever written alike. */
const maxLength = 4096;
/** How many patterns are kept for mappings in one place, and for how many places. */
const maxPatterns = 6;
const maxPlaces = 500;
/** So many mappings in one place are tried as patterns; after that only one now and then. */
const eagerTries = 16;

/**
 * How mappings were written so far, by the keys whose values they are or are listed in: the next one is nearly always written the
 * same, but for some scalars. It makes reading many documents faster and changes no result; but values that are written
 * the same may be the same object.
 */
export class KnownPatterns {
  readonly #places = new Map<string, Place>();

  /** What is known of mappings below a key. */
  below(key: string): Place {
    const known = this.#places.get(key);
    if (known) return known;
    const place = new Place();
    if (this.#places.size < maxPlaces) this.#places.set(key, place);
    return place;
  }

  /** The value of a document that is written as one before it, up to the last line feed. */
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
class Place {
  patterns: readonly Pattern[] = [];
  #misses = 0;

  /**
   * Takes over how a mapping is written, which no pattern fits: into the pattern that differs in scalars alone, or as another one. If
   * all are written differently, hardly one is worth it.
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

/** A scalar on one line that is read by itself: a plain word, or a text in quotes without escapes. */
const scalar = String.raw`[A-Za-z0-9](?:[\w./:-]*[\w./-])?|"[ !#-[\]-~]*"|'[ -&(-~]*'`;
/** Those in a text, behind a key or a dash. */
const scalars = /(?<=: |- )([A-Za-z0-9](?:[\w./:-]*[\w./-])?|"[ !#-[\]-~]*"|'[ -&(-~]*')(?=\n|$)/;
/** What is between them, if there are no scalars of another kind. */
const structure = /^(?:[ \n]|-(?= )|[A-Za-z][\w./:-]*:(?=[ \n]|$)|\{\}|\[\])*$/;

/** A mapping that was read: its scalars as they are written, each behind the text before it, and their values. */
interface Example {
  /** Its column: a text means the same only there. */
  readonly column: number;
  readonly value: unknown;
  /** A text, a scalar, a text, a scalar and so on. */
  readonly pieces: readonly string[];
}

function readExample(text: string, column: number, value: unknown): Example | undefined {
  const pieces = text.split(scalars);
  if (!pieces.every((piece, i) => i % 2 === 1 || structure.test(piece))) return undefined;
  const leaves = leavesOf(value);
  // A text that goes on in another line is one value, and looks like several.
  const areAlike =
    pieces.length === 2 * leaves.length + 1 && leaves.every((leaf, i) => leaf === resolve(pieces[2 * i + 1] ?? ''));
  return areAlike ? { column, value, pieces } : undefined;
}

/** The scalars in a value, but null: nothing may be written for that. */
function leavesOf(value: unknown): readonly unknown[] {
  if (value === null) return [];
  return typeof value === 'object' ? Object.values(value).flatMap(leavesOf) : [value];
}

function resolve(written: string): unknown {
  return written.startsWith('"') || written.startsWith("'") ? written.slice(1, -1) : resolvePlainScalar(written);
}

/** What a part of the mapping is in each value that is made. */
type Part =
  /** The same. */
  | { readonly kind: 'fixed'; readonly value: unknown }
  /** One of the scalars that differ, by their order in the text. */
  | { readonly kind: 'scalar'; readonly index: number }
  /** A list, or a mapping with these keys, that holds such scalars. */
  | { readonly kind: 'mould'; readonly keys: readonly string[] | undefined; readonly parts: readonly Part[] };

/**
 * A mapping as it was written once, to read those that differ from it only in some of their scalars. All else is the same text,
 * so what fits has the same structure, and needs no reading except for the scalars.
 */
class Pattern {
  readonly column: number;
  readonly #text: RegExp;
  readonly #example: Example;
  /** The scalars that may differ, by their index among the pieces. */
  readonly #varying: ReadonlySet<number>;
  readonly #part: Part;

  constructor(example: Example, varying: ReadonlySet<number>) {
    this.column = example.column;
    this.#example = example;
    this.#varying = varying;
    const source = example.pieces.map((piece, i) => {
      return varying.has(i) ? `(${scalar})` : piece.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
    });
    // A scalar holds no line feed, and one follows it.
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

  /** The pattern that fits the example, too; undefined if it differs in more than scalars. */
  merge({ column, pieces }: Example): Pattern | undefined {
    const own = this.#example;
    if (column !== own.column || pieces.length !== own.pieces.length) return undefined;
    const others = [...pieces.keys()].filter((i) => pieces[i] !== own.pieces[i]);
    if (others.some((i) => i % 2 === 0)) return undefined;
    return new Pattern(own, new Set([...this.#varying, ...others]));
  }

  /** Where the mapping that begins there ends, and its scalars; undefined if it does not fit. */
  match(text: string, start: number): { readonly end: number; readonly scalars: readonly string[] } | undefined {
    this.#text.lastIndex = start;
    const found = this.#text.exec(text);
    return found ? { end: this.#text.lastIndex, scalars: found } : undefined;
  }

  /** The value with these scalars. What has none of them below it is the same object in every value. */
  make(written: readonly string[]): unknown {
    return fill(this.#part, written);
  }
}

/** To copy a value and change the copy takes twice as long. */
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
  // An endpoint has one address.
  if (!keys) return first && parts.length === 1 ? [fill(first, written)] : parts.map((part) => fill(part, written));
  const made: Record<string, unknown> = {};
  for (let i = 0; i < parts.length; i++) made[keys[i] as string] = fill(parts[i] as Part, written);
  return made;
}
