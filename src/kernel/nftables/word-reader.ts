/** Reads words one after the other. */
export class Words {
  readonly #words: readonly string[];
  position = 0;

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  get done(): boolean {
    return this.position >= this.#words.length;
  }

  peek(ahead = 0): string | undefined {
    return this.#words[this.position + ahead];
  }

  next(): string | undefined {
    return this.#words[this.position++];
  }

  /** Whether the next words are these; then they are taken. */
  take(...expected: readonly string[]): boolean {
    if (!expected.every((word, i) => this.peek(i) === word)) return false;
    this.position += expected.length;
    return true;
  }

  /** All that are left. */
  rest(): readonly string[] {
    return this.#words.slice(this.position);
  }
}
