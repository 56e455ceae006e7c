/** The words' nearest neighbour that is a plausible misspelling of it, `most` letters away, or undefined. */
export function findNearest(
  word: string,
  words: readonly string[],
  most: number = Number.POSITIVE_INFINITY,
): string | undefined {
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.min(most, Math.max(1, Math.floor(word.length / 3))) + 1;
  for (const candidate of words) {
    // They are at least that far apart, and a key of the input may be very long.
    if (Math.abs(word.length - candidate.length) >= bestDistance) continue;
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Levenshtein's distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitution));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
