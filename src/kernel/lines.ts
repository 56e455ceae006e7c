/** Yields the lines of a text. An array would take more memory than the text if most lines are empty. */
export function* linesOf(text: string): Generator<string, void> {
  let start = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
    yield text.slice(start, end);
    start = end + 1;
  }
  yield text.slice(start);
}

export function lineOf(text: string, number: number): string {
  let left = number;
  for (const line of linesOf(text)) if (--left === 0) return line;
  return '';
}

export function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** A list of lines that keeps a run of empty lines as one part. Test: input/bounds.test.ts. */
export class LineList {
  readonly #parts: string[] = [];
  #empty = 0;

  push(line: string): void {
    if (line === '') {
      this.#empty++;
      return;
    }
    this.#endEmpty();
    this.#parts.push(line);
  }

  parts(): readonly string[] {
    this.#endEmpty();
    return this.#parts;
  }

  #endEmpty(): void {
    if (this.#empty > 0) this.#parts.push('\n'.repeat(this.#empty - 1));
    this.#empty = 0;
  }
}

/** The reason for not reading a line. */
export type LineFault =
  | 'control-character'
  | 'duplicate'
  | 'elided'
  | 'fragments'
  | 'long-line'
  | 'mark-server'
  | 'named-address'
  | 'no-head'
  | 'no-json'
  | 'no-name'
  | 'no-prefix'
  | 'no-scheduler'
  | 'not-numeric'
  | 'open-brace'
  | 'open-quote'
  | 'other-hook'
  | 'other-line'
  | 'other-object'
  | 'other-part'
  | 'other-policy'
  | 'other-property'
  | 'other-table'
  | 'own-policy'
  | 'past-end'
  | 'scheduler-flags'
  | 'short-server'
  | 'too-long'
  | 'wrapped';

/** A line that was not read. Lines count from 1. */
export interface UnreadLine {
  readonly line: number;
  readonly text: string;
  readonly reason: LineFault;
  readonly place?: string | undefined;
  /** The number of further lines with this reason and place, which are not listed. */
  readonly more?: number | undefined;
}

/** The most lines to list for one reason. A damaged file may have millions, so the rest are only counted. */
const mostListed = 300;

/** Lists unreadable lines up to the limit mostListed for each reason. Test: input/bounds.test.ts. */
export class UnreadLines {
  readonly #listed: UnreadLine[] = [];
  readonly #lasts = new Map<string, { count: number; last: { more?: number } }>();

  get all(): readonly UnreadLine[] {
    return this.#listed;
  }

  /** Calls `text` only if the line is listed. */
  add(line: number, text: () => string, reason: LineFault, place?: string): void {
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

export function countUnread(lines: readonly UnreadLine[]): number {
  return lines.reduce((sum, { more = 0 }) => sum + 1 + more, 0);
}

/** Calls `read` with each trimmed line that is neither empty nor a comment. Returns the lines that `read` refused by returning a reason. */
export function readLines(
  lines: string | Iterable<string>,
  comments: readonly string[],
  read: (line: string) => LineFault | undefined,
  placeOf?: () => string | undefined,
): readonly UnreadLine[] {
  const unread = new UnreadLines();
  let [number, next] = [1, 1];
  for (const raw of typeof lines === 'string' ? linesOf(lines) : lines) {
    number = next;
    // A line that joins several lines counts as several.
    next += countLines(raw);
    const line = raw.trim();
    if (line === '' || comments.includes(line.charAt(0))) continue;
    const reason = read(line);
    if (reason !== undefined) unread.add(number, () => raw, reason, placeOf?.());
  }
  return unread.all;
}

/** How many characters to join at once: few enough for the processor's cache. */
const enough = 1 << 15;

/** Builds a long text from pieces. V8 would keep a concatenation as a tree that takes several times the memory. */
export class LongText {
  readonly #joined: string[] = [];
  #pieces: string[] = [];
  #length = 0;

  add(piece: string): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#length >= enough) this.#join();
  }

  pieces(): readonly string[] {
    this.#join();
    return this.#joined;
  }

  toString(): string {
    return this.pieces().join('');
  }

  #join(): void {
    if (this.#pieces.length === 0) return;
    this.#joined.push(this.#pieces.join(''));
    this.#pieces = [];
    this.#length = 0;
  }
}

export function joinPieces(texts: readonly string[]): readonly string[] {
  const long = new LongText();
  texts.forEach((text) => long.add(text));
  return long.pieces();
}
