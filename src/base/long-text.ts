/** Pieces of about so many characters are put together at once: short enough to be fresh in the processor's cache. */
const enough = 1 << 15;

/**
 * Puts a long text together from short ones. Where texts are added up, V8 keeps the sum as a tree of all of them until
 * the text is read, which takes several times the memory of the text and the garbage collector's time. Joined texts are
 * in one piece.
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

  toString(): string {
    this.#join();
    return this.#joined.join('');
  }

  #join(): void {
    this.#joined.push(this.#pieces.join(''));
    this.#pieces = [];
    this.#length = 0;
  }
}
