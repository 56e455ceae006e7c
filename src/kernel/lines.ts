/** Yields the lines of a text. A list would cost more than the text if most lines are empty. */
export function* linesOf(text: string): Generator<string, void> {
  let start = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
    yield text.slice(start, end);
    start = end + 1;
  }
  yield text.slice(start);
}

/** A line by number, from 1; '' if there is none. */
export function lineOf(text: string, number: number): string {
  let left = number;
  for (const line of linesOf(text)) if (--left === 0) return line;
  return '';
}

/** The number of lines: one more than line ends. */
export function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/**
 * A list of lines in which empty lines cost nothing.
 * Test: the empty lines of a dump cost no more than their characters.
 */
export class LineList {
  /** Lines, and runs of empty lines as one text. */
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

  /** Joined by line ends, these give the lines. */
  parts(): readonly string[] {
    this.#endEmpty();
    return this.#parts;
  }

  #endEmpty(): void {
    if (this.#empty > 0) this.#parts.push('\n'.repeat(this.#empty - 1));
    this.#empty = 0;
  }
}
