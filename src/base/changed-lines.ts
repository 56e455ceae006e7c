/** Lines of an old text in whose place a new one has others. */
export interface ChangedLines {
  /** Where they begin in the old text, or where they would. */
  readonly at: number;
  /** The same in the new text. */
  readonly newAt: number;
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

/** How many lines may have gone and come at one place. */
const furthest = 200;

/** How many places are worth a look one by one. */
const mostPlaces = 200;

/**
 * What differs between two texts that are much alike, from top to bottom: all lines besides are the same, in the same
 * order. Undefined where they are not much alike. What is alike is compared in large pieces and never taken apart.
 */
export function findChangedLines(old: string, now: string): readonly ChangedLines[] | undefined {
  const changes: ChangedLines[] = [];
  let [at, newAt] = [0, 0];
  for (;;) {
    const same = countSame(old, at, now, newAt);
    if (at + same === old.length && newAt + same === now.length) return changes;
    // Back to where the line begins that differs.
    const start = same === 0 ? 0 : old.lastIndexOf('\n', at + same - 1) + 1 - at;
    [at, newAt] = [at + Math.max(0, start), newAt + Math.max(0, start)];
    const [gone, come] = [takeLines(old, at), takeLines(now, newAt)];
    const next = meetAgain(gone, come);
    if (!next || changes.length === mostPlaces) return undefined;
    const [removed, added] = [gone.slice(0, next.gone), come.slice(0, next.come)];
    changes.push({ at, newAt, removed, added });
    at += lengthOf(removed, old.length - at);
    newAt += lengthOf(added, now.length - newAt);
  }
}

const largestPiece = 1 << 16;

/** How many characters are the same from there on. */
function countSame(old: string, at: number, now: string, newAt: number): number {
  const most = Math.min(old.length - at, now.length - newAt);
  let same = 0;
  for (let piece = largestPiece; piece > 0; piece = piece > 1 ? piece >> 2 || 1 : 0) {
    while (same + piece <= most && isSamePiece(old, at + same, now, newAt + same, piece)) same += piece;
  }
  return same;
}

function isSamePiece(old: string, at: number, now: string, newAt: number, length: number): boolean {
  return length === 1
    ? old.charCodeAt(at) === now.charCodeAt(newAt)
    : old.slice(at, at + length) === now.slice(newAt, newAt + length);
}

/** As many lines as are looked at, without their ends; undefined stands for the end of the text. */
function takeLines(text: string, at: number): readonly string[] {
  const lines: string[] = [];
  while (at <= text.length && lines.length <= furthest + 1) {
    const end = text.indexOf('\n', at);
    if (end < 0) {
      if (at < text.length) lines.push(text.slice(at));
      break;
    }
    lines.push(text.slice(at, end));
    at = end + 1;
  }
  return lines;
}

/** With their ends, as far as the text goes. */
function lengthOf(lines: readonly string[], most: number): number {
  return Math.min(
    most,
    lines.reduce((sum, line) => sum + line.length + 1, 0),
  );
}

/** After how many lines both go on alike, for two lines at least, or end; the fewest together. */
function meetAgain(
  gone: readonly string[],
  come: readonly string[],
): { readonly gone: number; readonly come: number } | undefined {
  for (let distance = 1; distance <= furthest; distance++) {
    for (let first = 0; first <= distance; first++) {
      const second = distance - first;
      if (first > gone.length || second > come.length) continue;
      if (gone[first] === come[second] && gone[first + 1] === come[second + 1]) return { gone: first, come: second };
    }
  }
  return undefined;
}
