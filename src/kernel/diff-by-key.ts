/** Changes in two parts: what must be made first, and what must go once that is done. */
export interface Split<Change> {
  readonly additions: readonly Change[];
  readonly removals: readonly Change[];
}

/** Keeps the order of the changes in both parts. */
export function partition<Change>(changes: readonly Change[], isRemoval: (change: Change) => boolean): Split<Change> {
  const additions: Change[] = [];
  const removals: Change[] = [];
  for (const change of changes) (isRemoval(change) ? removals : additions).push(change);
  return { additions, removals };
}

/** One thing as it was and as it should be: `from` is undefined if it is new, `to` if it goes. */
export type Pair<T> =
  | { readonly from: undefined; readonly to: T }
  | { readonly from: T; readonly to: T }
  | { readonly from: T; readonly to: undefined };

/** The thing as it should be, or as it was if it goes. */
export function itemOf<T>({ from, to }: { readonly from: T | undefined; readonly to: T | undefined }): T {
  // A pair has at least one of them.
  return (to ?? from) as T;
}

/** Pairs the items of two lists that have the same key: those of `to` in their order, then what only `from` has. */
export function pairUp<T>(from: Iterable<T>, to: Iterable<T>, keyOf: (item: T) => string): readonly Pair<T>[] {
  const left = new Map<string, T>();
  for (const item of from) left.set(keyOf(item), item);
  const pairs: Pair<T>[] = [];
  for (const item of to) {
    const key = keyOf(item);
    const old = left.get(key);
    pairs.push(old === undefined ? { from: undefined, to: item } : { from: old, to: item });
    left.delete(key);
  }
  for (const item of left.values()) pairs.push({ from: item, to: undefined });
  return pairs;
}

/** What only one of two lists has, by key. */
export function diffByKey<T>(
  from: readonly T[],
  to: readonly T[],
  keyOf: (item: T) => string,
): { readonly added: readonly T[]; readonly removed: readonly T[] } {
  if (from === to) return { added: [], removed: [] };
  const left = new Map(from.map((item) => [keyOf(item), item]));
  const added = to.filter((item) => !left.delete(keyOf(item)));
  return { added, removed: [...left.values()] };
}
