/** Length, in characters, of the pieces joined at once: they fit in the processor's cache. */
const enough = 1 << 15;

/**
 * Builds a long text from short ones. V8 keeps a concatenation as a tree until it is read. The tree takes several times the
 * memory of the text, and slows the garbage collector; joining leaves one piece.
 */
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

/** The same texts in fewer, longer pieces. */
export function joinPieces(texts: readonly string[]): readonly string[] {
  const long = new LongText();
  texts.forEach((text) => long.add(text));
  return long.pieces();
}
