import { countLines, linesOf } from './lines.ts';

/** A line of a tool's output that kpc cannot read; line counts from 1. */
export interface UnreadLine {
  readonly line: number;
  readonly text: string;
  readonly reason: string;
  /** What the reader said of where it is, such as the table. */
  readonly place?: string | undefined;
  /** How many lines with this reason and place follow it that are not listed. */
  readonly more?: number | undefined;
}

/** How many lines of one reason are listed: the others are counted, for a damaged file may have millions. */
const mostListed = 300;

/** Collects lines that cannot be read. Test: keeps some hundred lines of one reason, and counts the others. */
export class UnreadLines {
  readonly #listed: UnreadLine[] = [];
  readonly #lasts = new Map<string, { count: number; last: { more?: number } }>();

  get all(): readonly UnreadLine[] {
    return this.#listed;
  }

  /** `text` gives the line if it is listed. */
  add(line: number, text: () => string, reason: string, place?: string): void {
    const key = place === undefined ? reason : `${place} ${reason}`;
    const known = this.#lasts.get(key);
    if (known && known.count >= mostListed) {
      known.last.more = (known.last.more ?? 0) + 1;
      return;
    }
    const last: UnreadLine & { more?: number } = {
      line,
      text: text(),
      reason,
      ...(place === undefined ? {} : { place }),
    };
    this.#listed.push(last);
    this.#lasts.set(key, { count: (known?.count ?? 0) + 1, last });
  }
}

/** How many lines there are, the listed and the others. */
export function countUnread(lines: readonly UnreadLine[]): number {
  return lines.reduce((sum, { more = 0 }) => sum + 1 + more, 0);
}

/**
 * Calls `read` with each line, trimmed, except empty ones and comments. Returns the lines for which `read` gave a
 * reason why it cannot read them, with the place that `placeOf` gives then.
 */
export function readLines(
  lines: string | Iterable<string>,
  comments: readonly string[],
  read: (line: string) => string | undefined,
  placeOf?: () => string | undefined,
): readonly UnreadLine[] {
  const unread = new UnreadLines();
  let [number, next] = [1, 1];
  for (const raw of typeof lines === 'string' ? linesOf(lines) : lines) {
    number = next;
    // One that was joined of several counts as these.
    next += countLines(raw);
    const line = raw.trim();
    if (line === '' || comments.includes(line.charAt(0))) continue;
    const reason = read(line);
    if (reason !== undefined) unread.add(number, () => raw, reason, placeOf?.());
  }
  return unread.all;
}
