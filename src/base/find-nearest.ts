/** Returns the word that `wanted` most plausibly misspells, at most `most` letters away; undefined if there is none. */
export function findNearest(
  word: string,
  words: readonly string[],
  most: number = Number.POSITIVE_INFINITY,
): string | undefined {
  const lower = word.toLowerCase();
  let best: string | undefined;
  let limit = Math.min(most, Math.max(1, Math.floor(word.length / 3)));
  for (const candidate of words) {
    const distance = editDistance(lower, candidate.toLowerCase(), limit, false);
    if (distance <= limit) [best, limit] = [candidate, distance - 1];
  }
  return best;
}

/** More suggestions would be a list to search. */
export const mostSuggestions = 3;

/** The names most like the wanted one; none if none is near. */
export function nearest(wanted: string, names: readonly string[]): readonly string[] {
  let limit = Math.max(1, Math.floor(wanted.length / 3));
  let near: string[] = [];
  for (const name of names) {
    const distance = name.includes(wanted) ? 1 : editDistance(wanted, name, limit, true);
    if (distance > limit) continue;
    if (distance < limit) near = [];
    limit = distance;
    near.push(name);
  }
  return near.sort().slice(0, mostSuggestions);
}

/**
 * The number of letters to insert, delete, change or, if `swaps` count as one, swap with the next one; limit + 1 if
 * it is over `limit`.
 */
function editDistance(a: string, b: string, limit: number, swaps: boolean): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let beforeLast: readonly number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = swaps && i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(change, swap, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    if (Math.min(...row) > limit) return limit + 1;
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
