import { countLines, linesOf } from './lines.ts';

/** A line of a tool's output that kpc cannot read; lines count from 1. */
export interface UnreadLine {
  readonly line: number;
  readonly text: string;
  readonly reason: string;
  /** Where it is, if the reader said so, such as a table. */
  readonly place?: string | undefined;
  /** Further lines with this reason and place that are counted, not listed. */
  readonly more?: number | undefined;
}

/** Most lines listed for one reason; a damaged file may have millions, so the rest are counted. */
const mostListed = 300;

/**
 * Collects lines that cannot be read.
 * Test: keeps some hundred lines of one reason, and counts the others.
 */
export class UnreadLines {
  readonly #listed: UnreadLine[] = [];
  readonly #lasts = new Map<string, { count: number; last: { more?: number } }>();

  get all(): readonly UnreadLine[] {
    return this.#listed;
  }

  /** `text` is only called if the line is listed. */
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

/** How many lines there are, listed or not. */
export function countUnread(lines: readonly UnreadLine[]): number {
  return lines.reduce((sum, { more = 0 }) => sum + 1 + more, 0);
}

/**
 * Calls `read` with each trimmed line, except empty lines and comments. Returns the lines for which `read` gave a reason why it
 * cannot read them, with the place from `placeOf` at that moment.
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
    // Counts as all the lines it was joined from.
    next += countLines(raw);
    const line = raw.trim();
    if (line === '' || comments.includes(line.charAt(0))) continue;
    const reason = read(line);
    if (reason !== undefined) unread.add(number, () => raw, reason, placeOf?.());
  }
  return unread.all;
}
