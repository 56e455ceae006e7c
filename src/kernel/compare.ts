/** Compares strings as Go does. For ASCII names and addresses, Go's order of bytes is the same as JavaScript's order of characters. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export function compareNamed(a: { readonly name: string }, b: { readonly name: string }): number {
  return compareText(a.name, b.name);
}

export interface Split<Change> {
  readonly additions: readonly Change[];
  readonly removals: readonly Change[];
}

export function partition<Change>(changes: readonly Change[], isRemoval: (change: Change) => boolean): Split<Change> {
  const additions: Change[] = [];
  const removals: Change[] = [];
  for (const change of changes) (isRemoval(change) ? removals : additions).push(change);
  return { additions, removals };
}

/** An item before and after a change: `from` is undefined for a new item, `to` for a removed one. */
export type Pair<T> =
  | { readonly from: undefined; readonly to: T }
  | { readonly from: T; readonly to: T }
  | { readonly from: T; readonly to: undefined };

export function itemOf<T>({ from, to }: { readonly from: T | undefined; readonly to: T | undefined }): T {
  // At least one of them is set.
  return (to ?? from) as T;
}

/** Pairs items with the same key. The items of `to` come first, in their order; then come the items that only `from` has. */
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

export function isSameList<T>(a: readonly T[], b: readonly T[], meaningOf: (item: T) => string): boolean {
  const isSame = (item: T, other: T | undefined): boolean =>
    item === other || (other !== undefined && meaningOf(item) === meaningOf(other));
  return a === b || (a.length === b.length && a.every((item, i) => isSame(item, b[i])));
}

export function diffByKey<T>(from: readonly T[], to: readonly T[], keyOf: (item: T) => string) {
  if (from === to) return { added: [], removed: [] };
  const left = new Map(from.map((item) => [keyOf(item), item]));
  const added = to.filter((item) => !left.delete(keyOf(item)));
  return { added, removed: [...left.values()] };
}
