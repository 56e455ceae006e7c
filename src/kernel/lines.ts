/** The lines of a text, one after the other: a list of them would cost more than the text where most are empty. */
export function* linesOf(text: string): Generator<string, void> {
  let start = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
    yield text.slice(start, end);
    start = end + 1;
  }
  yield text.slice(start);
}

/** A line of a text, counted from 1; '' if there is none. */
export function lineOf(text: string, number: number): string {
  let left = number;
  for (const line of linesOf(text)) if (--left === 0) return line;
  return '';
}

/** How many lines a text has: one more than line ends. */
export function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** A list of lines that costs nothing for empty ones. Test: the empty lines of a dump cost no more than their characters. */
export class LineList {
  /** Lines, and between them texts that are several empty lines. */
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

  /** Joined by line ends, they are the lines. */
  parts(): readonly string[] {
    this.#endEmpty();
    return this.#parts;
  }

  #endEmpty(): void {
    if (this.#empty > 0) this.#parts.push('\n'.repeat(this.#empty - 1));
    this.#empty = 0;
  }
}
