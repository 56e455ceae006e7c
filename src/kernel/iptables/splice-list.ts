/** How long a piece gets before it is cut in two: short enough to be moved at no cost. */
const longest = 512;

/** A list that takes items anywhere: not all that follow are moved, as an array moves them. */
export class SpliceList<T> {
  readonly #pieces: T[][] = [];

  constructor(items: readonly T[]) {
    for (let at = 0; at < items.length; at += longest) this.#pieces.push(items.slice(at, at + longest));
  }

  /** Puts an item before the one that stands at `index`; past the last item, at the end. */
  insert(index: number, item: T): void {
    let left = index;
    for (const [i, piece] of this.#pieces.entries()) {
      if (left > piece.length) {
        left -= piece.length;
        continue;
      }
      piece.splice(left, 0, item);
      if (piece.length > longest) this.#pieces.splice(i + 1, 0, piece.splice(longest / 2));
      return;
    }
    this.#pieces.push([item]);
  }

  toArray(): T[] {
    return this.#pieces.flat();
  }
}
