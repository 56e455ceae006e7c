/** A plain scalar of a mapping that was read: where it stands in the text, and the keys and indexes that lead to it. */
interface Leaf {
  readonly start: number;
  readonly end: number;
  readonly path: readonly (string | number)[];
}

/** Notes the plain scalars of one mapping while it is read. */
export class LeafRecorder {
  readonly leaves: Leaf[] = [];
  /** Set for a mapping that holds what a pattern cannot stand for. */
  isOdd = false;
  readonly #path: (string | number)[] = [];

  enter(step: string | number): void {
    this.#path.push(step);
  }

  leave(): void {
    this.#path.pop();
  }

  /** A plain scalar that begins and ends on one line, with nothing after it. */
  add(start: number, end: number): void {
    this.leaves.push({ start, end, path: [...this.#path] });
  }
}

/** What to make a collection from. */
interface Mould {
  /** Of a mapping; undefined for a list. */
  readonly keys: readonly string[] | undefined;
  readonly parts: Part[];
}

/** What an entry is in each value that is made. */
type Part =
  /** The same. */
  | { readonly kind: 'fixed'; readonly value: unknown }
  /** One of the scalars of the text, by their order there. */
  | { readonly kind: 'scalar'; readonly value: number }
  /** A collection that holds such scalars. */
  | { readonly kind: 'mould'; readonly value: Mould };

/** After so many mappings in a row that it does not fit, a pattern is given up. */
const startingCredit = 16;
const mostCredit = 64;

/**
 * A mapping as it was written once, for reading those that are written the same but for some of their plain scalars: its
 * text is `literals[0]`, a scalar, `literals[1]`, a scalar and so on. Keys, indentation and whatever is not a plain
 * scalar are in the literals, so what fits has the same structure, and needs no reading but for the scalars.
 */
export class Pattern {
  /** Where the mapping stood: a text means the same only there. */
  readonly column: number;
  readonly depth: number;
  /** One more than there are scalars that may differ. */
  readonly literals: readonly string[];
  readonly #value: object;
  readonly #texts: readonly string[];
  readonly #paths: readonly Leaf['path'][];
  /** What stands around all plain scalars, whether they may differ or not. */
  readonly #between: readonly string[];
  readonly #varies: readonly boolean[];
  readonly #mould: Mould;
  #credit = startingCredit;

  private constructor(
    at: Pick<Pattern, 'column' | 'depth'>,
    value: object,
    texts: readonly string[],
    paths: readonly Leaf['path'][],
    between: readonly string[],
    varies: readonly boolean[],
  ) {
    this.column = at.column;
    this.depth = at.depth;
    this.#value = value;
    this.#texts = texts;
    this.#paths = paths;
    this.#between = between;
    this.#varies = varies;
    this.literals = joinFixed(texts, between, varies);
    this.#mould = mouldOf(
      value,
      paths.filter((_, i) => varies[i]),
    );
  }

  /** The pattern that fits what was recorded of the mapping between two offsets of a text, and nothing else. */
  static of(
    at: Pick<Pattern, 'column' | 'depth'>,
    value: object,
    text: string,
    start: number,
    end: number,
    { leaves }: LeafRecorder,
  ): Pattern {
    const between = [];
    let from = start;
    for (const leaf of leaves) {
      between.push(text.slice(from, leaf.start));
      from = leaf.end;
    }
    between.push(text.slice(from, end));
    return new Pattern(
      at,
      value,
      leaves.map((leaf) => text.slice(leaf.start, leaf.end)),
      leaves.map(({ path }) => path),
      between,
      leaves.map(() => false),
    );
  }

  /** The pattern that fits both; undefined where they differ in more than plain scalars. */
  merge(other: Pattern): Pattern | undefined {
    if (this.column !== other.column || this.depth !== other.depth) return undefined;
    if (!areEqual(this.#between, other.#between)) return undefined;
    const varies = this.#varies.map((is, i) => is || other.#varies[i] === true || this.#texts[i] !== other.#texts[i]);
    return new Pattern(this, this.#value, this.#texts, this.#paths, this.#between, varies);
  }

  /** The value with these scalars. What has none of them below it is the same object in every value. */
  make(scalars: readonly unknown[]): unknown {
    this.#credit = mostCredit;
    return fill(this.#mould, scalars);
  }

  /** Notes that a mapping did not fit; false when that was so too often. */
  miss(): boolean {
    return --this.#credit > 0;
  }
}

function areEqual(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}

function joinFixed(texts: readonly string[], between: readonly string[], varies: readonly boolean[]): string[] {
  const literals: string[][] = [[]];
  for (const [i, text] of texts.entries()) {
    literals.at(-1)?.push(between[i] ?? '');
    if (varies[i] === true) literals.push([]);
    else literals.at(-1)?.push(text);
  }
  literals.at(-1)?.push(between.at(-1) ?? '');
  // Joined, a text is in one piece in memory; added up, V8 would keep it in many, and compare it slowly.
  return literals.map((pieces) => pieces.join(''));
}

/** A mould of the value in which the scalars at the paths are left open. */
function mouldOf(value: object, paths: readonly Leaf['path'][]): Mould {
  const mould = fixedMould(value);
  for (const [scalar, path] of paths.entries()) leaveOpen(mould, path, scalar);
  return mould;
}

function fixedMould(value: object): Mould {
  return {
    keys: Array.isArray(value) ? undefined : Object.keys(value),
    parts: Object.values(value).map((part: unknown) => ({ kind: 'fixed', value: part })),
  };
}

function leaveOpen({ keys, parts }: Mould, [step = '', ...rest]: Leaf['path'], scalar: number): void {
  const index = keys ? keys.indexOf(String(step)) : Number(step);
  if (rest.length === 0) {
    parts[index] = { kind: 'scalar', value: scalar };
    return;
  }
  let part = parts[index];
  if (part?.kind !== 'mould') parts[index] = part = { kind: 'mould', value: fixedMould(part?.value as object) };
  leaveOpen(part.value, rest, scalar);
}

/** The value with these scalars. To copy a value and change the copy takes twice as long. */
function fill({ keys, parts }: Mould, scalars: readonly unknown[]): unknown {
  if (!keys) return fillList(parts, scalars);
  const made: Record<string, unknown> = {};
  for (let i = 0; i < parts.length; i++) made[keys[i] as string] = fillPart(parts[i] as Part, scalars);
  return made;
}

function fillList(parts: readonly Part[], scalars: readonly unknown[]): unknown[] {
  const only = parts[0];
  // An endpoint has one address.
  return only && parts.length === 1 ? [fillPart(only, scalars)] : parts.map((part) => fillPart(part, scalars));
}

function fillPart({ kind, value }: Part, scalars: readonly unknown[]): unknown {
  switch (kind) {
    case 'fixed':
      return value;
    case 'scalar':
      return scalars[value];
    case 'mould':
      return fill(value, scalars);
  }
}
