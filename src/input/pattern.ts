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

/** A value, and what in a copy of it is not the same. */
interface Copy {
  readonly value: object;
  readonly changes: Change[];
}

interface Change {
  readonly step: string | number;
  /** Undefined for a scalar: a value of the text that is read. */
  readonly below: Copy | undefined;
}

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
  readonly #copy: Copy;
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
    this.#copy = copyOf(
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
    return applyChanges(this.#copy, scalars, { next: 0 });
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

/** The paths are in the order of the text, so those through one collection follow each other. */
function copyOf(value: object, paths: readonly Leaf['path'][]): Copy {
  const copy: Copy = { value, changes: [] };
  for (const path of paths) addChange(copy, path);
  return copy;
}

function addChange({ value, changes }: Copy, [step = '', ...rest]: Leaf['path']): void {
  if (rest.length === 0) {
    changes.push({ step, below: undefined });
    return;
  }
  let last = changes.at(-1);
  if (last?.step !== step) {
    last = { step, below: { value: (value as Readonly<Record<string | number, object>>)[step] ?? {}, changes: [] } };
    changes.push(last);
  }
  if (last.below) addChange(last.below, rest);
}

function applyChanges({ value, changes }: Copy, scalars: readonly unknown[], at: { next: number }): unknown {
  if (changes.length === 0) return value;
  const made = (Array.isArray(value) ? (value as unknown[]).slice() : { ...value }) as Record<string | number, unknown>;
  for (const { step, below } of changes) {
    made[step] = below ? applyChanges(below, scalars, at) : scalars[at.next++];
  }
  return made;
}
