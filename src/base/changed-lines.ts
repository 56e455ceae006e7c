/** Lines of an old text in whose place a new one has others. */
export interface ChangedLines {
  /** Where they begin in the old text, or where they would. */
  readonly at: number;
  /** The same in the new text. */
  readonly newAt: number;
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

/** How many lines may have gone and come at one place: most often few, so that many are only looked at where few will not do. */
const furthest = [6, 200] as const;

/** How many places are worth a look one by one. */
const mostPlaces = 200;

/**
 * What differs between two texts that are much alike, from top to bottom: all lines besides are the same, in the same
 * order. Undefined if they are not much alike. What is alike is compared in large pieces and never taken apart.
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
    const next = changes.length === mostPlaces ? undefined : findMeeting(old, at, now, newAt);
    if (!next) return undefined;
    const { removed, added } = next;
    changes.push({ at, newAt, removed, added });
    at += lengthOf(removed, old.length - at);
    newAt += lengthOf(added, now.length - newAt);
  }
}

/** How many characters are the same from there on: large pieces are compared at once. */
function countSame(old: string, at: number, now: string, newAt: number): number {
  const most = Math.min(old.length - at, now.length - newAt);
  let same = 0;
  for (let piece = 1 << 16; piece > 0; piece >>= 4) {
    const isSame = (): boolean =>
      old.slice(at + same, at + same + piece) === now.slice(newAt + same, newAt + same + piece);
    while (same + piece <= most && isSame()) same += piece;
  }
  return same;
}

/** What has gone and come from there to where both texts go on alike. */
function findMeeting(
  old: string,
  at: number,
  now: string,
  newAt: number,
): Pick<ChangedLines, 'removed' | 'added'> | undefined {
  for (const most of furthest) {
    const [gone, come] = [takeLines(old, at, most + 2), takeLines(now, newAt, most + 2)];
    const next = meetAgain(gone, come, most);
    if (next) return { removed: gone.slice(0, next.gone), added: come.slice(0, next.come) };
  }
  return undefined;
}

/** As many lines, without their ends; fewer where the text ends. */
function takeLines(text: string, at: number, most: number): readonly string[] {
  const lines: string[] = [];
  for (let start = at; start < text.length && lines.length < most;) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    lines.push(text.slice(start, end));
    start = end + 1;
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

/** After how many lines both go on alike, for two lines at least, or end; the fewest together, and at most so many. */
function meetAgain(
  gone: readonly string[],
  come: readonly string[],
  most: number,
): { readonly gone: number; readonly come: number } | undefined {
  for (let distance = 1; distance <= most; distance++) {
    for (let first = 0; first <= distance; first++) {
      const second = distance - first;
      if (first > gone.length || second > come.length) continue;
      if (gone[first] === come[second] && gone[first + 1] === come[second + 1]) return { gone: first, come: second };
    }
  }
  return undefined;
}
