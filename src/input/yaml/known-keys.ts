/** Longer mappings are hardly ever written alike. */
const maxPatternLength = 4096;
/** How many patterns are kept for mappings in one place. */
const maxPatterns = 6;
/** So many mappings in one place are tried as patterns; after that only one now and then. */
const eagerTries = 16;
/** How many keys are remembered after one another, and in all. More are read just as well, only slower. */
const maxKnownNext = 12;
const maxKnownKeys = 4096;

/**
 * The keys that mappings had so far, in their order, and how mappings in each place were written: what comes next is nearly
 * always what came next before, and comparing with that is cheaper than reading it anew. It makes reading many documents
 * faster and changes no result; but values that are written the same may be the same object.
 */
export class KnownKeys {
  readonly key: string;
  /** The key as it is written, perhaps in quotes. */
  readonly written: string;
  /** How mappings whose first key comes after this one were written. */
  patterns: readonly Pattern[] = [];
  /** Keys seen after this one in the same mapping. */
  readonly next: KnownKeys[] = [];
  /** The first keys of this key's own mapping, or of the mappings in its list. */
  #inner: KnownKeys | undefined;
  /** How many more keys may be remembered in all. */
  readonly #room: { left: number };
  #misses = 0;

  constructor(key = '', written = key, room = { left: maxKnownKeys }) {
    this.key = key;
    this.written = written;
    this.#room = room;
  }

  /** The key after this one, remembered if there is room. */
  follow(key: string, written: string): KnownKeys {
    if (this.#room.left === 0 || this.next.length === maxKnownNext) return new KnownKeys(key, written, { left: 0 });
    this.#room.left--;
    const known = new KnownKeys(key, written, this.#room);
    this.next.push(known);
    return known;
  }

  get inner(): KnownKeys {
    return (this.#inner ??= new KnownKeys('', '', this.#room));
  }

  /**
   * Whether a mapping of that length, which no pattern fits, is worth a pattern. If all are written differently, hardly
   * one is.
   */
  wantsPattern(length: number): boolean {
    if (this.#room.left === 0 || length > maxPatternLength) return false;
    const misses = ++this.#misses;
    return misses <= eagerTries || (misses & (misses - 1)) === 0;
  }

  /** Takes over what is new of how a mapping is written: into the pattern that differs in scalars alone, or as another one. */
  learn(example: Example): void {
    const merged = this.patterns.map((pattern) => pattern.merge(example) ?? pattern);
    if (merged.some((pattern, i) => pattern !== this.patterns[i])) this.patterns = merged;
    else this.patterns = [...this.patterns.slice(1 - maxPatterns), new Pattern(example, [])];
  }
}

/** A plain scalar of an example: where it is in the text, and what it is. */
export class Leaf {
  readonly start: number;
  readonly end: number;
  readonly value: unknown;

  constructor(start: number, end: number, value: unknown) {
    this.start = start;
    this.end = end;
    this.value = value;
  }
}

/** A mapping that was read: in its value, a Leaf replaces each plain scalar. */
export interface Example {
  /** Its column: a text means the same only there. */
  readonly column: number;
  readonly value: unknown;
  /** In the order of the text. */
  readonly leaves: readonly Leaf[];
  /** The leaves as they are written, and the text around them. */
  readonly texts: readonly string[];
  readonly between: readonly string[];
}

/** What a part of the mapping is in each value that is made. */
type Part =
  /** The same. */
  | { readonly kind: 'fixed'; readonly value: unknown }
  /** One of the scalars of the text, by their order there. */
  | { readonly kind: 'scalar'; readonly value: number }
  /** A list, or a mapping with these keys, that holds such scalars. */
  | { readonly kind: 'mould'; readonly keys: readonly string[] | undefined; readonly value: readonly Part[] };

/**
 * A mapping as it was written once, to read those that differ from it only in some of their plain scalars: its
 * text is `literals[0]`, a scalar, `literals[1]`, a scalar and so on. Keys, indentation and whatever is not a plain
 * scalar are in the literals, so what fits has the same structure, and needs no reading except for the scalars.
 */
export class Pattern {
  readonly column: number;
  /** One more than there are scalars that may differ. */
  readonly literals: readonly string[];
  readonly #example: Example;
  readonly #varying: readonly Leaf[];
  readonly #part: Part;

  constructor(example: Example, varying: readonly Leaf[]) {
    const { column, leaves, texts, between, value } = example;
    this.column = column;
    this.#example = example;
    this.#varying = varying;
    const literals = [[between[0] ?? '']];
    for (const [i, leaf] of leaves.entries()) {
      if (varying.includes(leaf)) literals.push([]);
      else literals.at(-1)?.push(texts[i] ?? '');
      literals.at(-1)?.push(between[i + 1] ?? '');
    }
    // Joined, a text is in one piece in memory; added up, V8 would keep it in many, and compare it slowly.
    this.literals = literals.map((pieces) => pieces.join(''));
    this.#part = partOf(value, varying);
  }

  /** The pattern that fits the example, too; undefined if it differs in more than plain scalars. */
  merge({ column, texts, between }: Example): Pattern | undefined {
    const own = this.#example;
    if (column !== own.column || between.length !== own.between.length) return undefined;
    if (!between.every((text, i) => text === own.between[i])) return undefined;
    const varying = own.leaves.filter((leaf, i) => this.#varying.includes(leaf) || texts[i] !== own.texts[i]);
    return new Pattern(own, varying);
  }

  /** The value with these scalars. What has none of them below it is the same object in every value. */
  make(scalars: readonly unknown[]): unknown {
    return fill(this.#part, scalars);
  }
}

function partOf(value: unknown, varying: readonly Leaf[]): Part {
  if (value instanceof Leaf) {
    const index = varying.indexOf(value);
    return index < 0 ? { kind: 'fixed', value: value.value } : { kind: 'scalar', value: index };
  }
  if (typeof value !== 'object' || value === null) return { kind: 'fixed', value };
  const parts = Object.values(value).map((each) => partOf(each, varying));
  const mould = { kind: 'mould', keys: Array.isArray(value) ? undefined : Object.keys(value), value: parts } as const;
  return parts.every(({ kind }) => kind === 'fixed') ? { kind: 'fixed', value: fill(mould, []) } : mould;
}

/** The value with these scalars. To copy a value and change the copy takes twice as long. */
function fill(part: Part, scalars: readonly unknown[]): unknown {
  if (part.kind === 'mould') return fillMould(part.keys, part.value, scalars);
  return part.kind === 'fixed' ? part.value : scalars[part.value];
}

function fillMould(keys: readonly string[] | undefined, parts: readonly Part[], scalars: readonly unknown[]): object {
  const first = parts[0];
  // An endpoint has one address.
  if (!keys) return first && parts.length === 1 ? [fill(first, scalars)] : parts.map((part) => fill(part, scalars));
  const made: Record<string, unknown> = {};
  for (let i = 0; i < parts.length; i++) made[keys[i] as string] = fill(parts[i] as Part, scalars);
  return made;
}
