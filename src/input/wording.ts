import { escapeCharacter, unprintable } from '../base/printable.ts';
import type { FieldPath } from '../cluster/objects.ts';

/** What a person calls a field: its own name, with the index of a list's item. */
export function fieldName(path: FieldPath): string {
  const last = path.at(-1);
  if (last === undefined) return 'the document';
  if (typeof last === 'string') return last;
  const parent = path.at(-2);
  return typeof parent === 'string' ? `${parent}[${last}]` : `[${last}]`;
}

/** The words' nearest neighbour that is a plausible misspelling of it, or undefined. */
export function findNearest(word: string, words: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
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

/** A value from the input, in quotes, short, and without anything that could move a terminal's cursor. */
export function quote(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return JSON.stringify(short).replace(unprintable, escapeCharacter);
}

/** A value from the input in a few words. */
export function describeValue(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  return typeof value === 'string' ? quote(value) : String(value);
}
