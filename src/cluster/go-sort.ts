/**
 * Sorts in the order that Go's sort.Sort leaves, equal items included. That sort (a pattern-defeating quicksort) is not
 * stable, so equal items change places, but always in the same way: a kube-proxy that sorts with it and then takes the
 * first of two equal items has one answer, and only the same steps find it.
 */
export function sortAsGo<T>(items: readonly T[], compare: (a: T, b: T) => number): T[] {
  const sorter = new Sorter([...items], compare);
  sorter.sort(0, items.length, bitLength(items.length));
  return sorter.items;
}

/** Up to this many items are put in place one by one, which keeps equal ones in order. */
const fewItems = 12;
/** From this many items on, each candidate for the pivot is the median of three neighbours. */
const manyItems = 50;
/** How many swaps choosing a pivot takes at most: it takes all of them if the items are in falling order. */
const mostPivotSwaps = 12;
const mostRepairs = 5;

class Sorter<T> {
  readonly items: T[];
  readonly #compare: (a: T, b: T) => number;

  constructor(items: T[], compare: (a: T, b: T) => number) {
    this.items = items;
    this.#compare = compare;
  }

  /** Sorts items from..to (exclusive); `patience` is how many bad pivots it takes before it sorts by a heap. */
  sort(from: number, to: number, patience: number): void {
    let balanced = true;
    let inOrder = true;
    while (to - from > fewItems) {
      if (patience === 0) return this.#sortByHeap(from, to);
      if (!balanced) {
        this.#scatter(from, to);
        patience--;
      }
      const choice = this.#choosePivot(from, to);
      let { pivot } = choice;
      let rising = choice.swaps === 0;
      if (choice.swaps === mostPivotSwaps) {
        this.#reverse(from, to);
        pivot = to - 1 - (pivot - from);
        rising = true;
      }
      if (balanced && inOrder && rising && this.#repair(from, to)) return;
      if (from > 0 && !this.#less(from - 1, pivot)) {
        from = this.#gatherEqual(from, to, pivot);
        continue;
      }
      const { middle, untouched } = this.#partition(from, to, pivot);
      inOrder = untouched;
      const left = middle - from;
      const right = to - middle;
      const least = Math.floor((to - from) / 8);
      if (left < right) {
        balanced = left >= least;
        this.sort(from, middle, patience);
        from = middle + 1;
      } else {
        balanced = right >= least;
        this.sort(middle + 1, to, patience);
        to = middle;
      }
    }
    this.#insertEach(from, to);
  }

  #less(a: number, b: number): boolean {
    return this.#compare(this.items[a] as T, this.items[b] as T) < 0;
  }

  #swap(a: number, b: number): void {
    const item = this.items[a] as T;
    this.items[a] = this.items[b] as T;
    this.items[b] = item;
  }

  #insertEach(from: number, to: number): void {
    for (let i = from + 1; i < to; i++) {
      for (let j = i; j > from && this.#less(j, j - 1); j--) this.#swap(j, j - 1);
    }
  }

  #sortByHeap(from: number, to: number): void {
    const size = to - from;
    for (let root = Math.floor((size - 1) / 2); root >= 0; root--) this.#sift(from, root, size);
    for (let last = size - 1; last >= 0; last--) {
      this.#swap(from, from + last);
      this.#sift(from, 0, last);
    }
  }

  #sift(first: number, start: number, size: number): void {
    let root = start;
    for (let child = 2 * root + 1; child < size; child = 2 * root + 1) {
      if (child + 1 < size && this.#less(first + child, first + child + 1)) child++;
      if (!this.#less(first + root, first + child)) return;
      this.#swap(first + root, first + child);
      root = child;
    }
  }

  /** The items smaller than the pivot to its left, the others to its right. */
  #partition(from: number, to: number, pivot: number): { readonly middle: number; readonly untouched: boolean } {
    this.#swap(from, pivot);
    let low = from + 1;
    let high = to - 1;
    let untouched = true;
    for (;;) {
      while (low <= high && this.#less(low, from)) low++;
      while (low <= high && !this.#less(high, from)) high--;
      if (low > high) break;
      this.#swap(low++, high--);
      untouched = false;
    }
    this.#swap(high, from);
    return { middle: high, untouched };
  }

  /** The items equal to the pivot to the left; gives where the greater ones begin. */
  #gatherEqual(from: number, to: number, pivot: number): number {
    this.#swap(from, pivot);
    let low = from + 1;
    let high = to - 1;
    for (;;) {
      while (low <= high && !this.#less(from, low)) low++;
      while (low <= high && this.#less(from, high)) high--;
      if (low > high) return low;
      this.#swap(low++, high--);
    }
  }

  /** Puts a few items of a list that is nearly sorted in place; false if that is not enough. */
  #repair(from: number, to: number): boolean {
    let at = from + 1;
    for (let repairs = 0; repairs < mostRepairs; repairs++) {
      while (at < to && !this.#less(at, at - 1)) at++;
      if (at === to) return true;
      if (to - from < manyItems) return false;
      this.#swap(at, at - 1);
      if (at - from >= 2) for (let j = at - 1; j >= 1 && this.#less(j, j - 1); j--) this.#swap(j, j - 1);
      if (to - at >= 2) for (let j = at + 1; j < to && this.#less(j, j - 1); j++) this.#swap(j, j - 1);
    }
    return false;
  }

  /** Moves three items from the middle elsewhere, always the same for a length. */
  #scatter(from: number, to: number): void {
    const length = to - from;
    let random = BigInt(length);
    const mask = (1n << BigInt(bitLength(length))) - 1n;
    const middle = from + Math.floor(length / 4) * 2;
    for (let at = middle - 1; at <= middle + 1; at++) {
      random ^= BigInt.asUintN(64, random << 13n);
      random ^= random >> 7n;
      random ^= BigInt.asUintN(64, random << 17n);
      const other = Number(random & mask);
      this.#swap(at, from + (other >= length ? other - length : other));
    }
  }

  #choosePivot(from: number, to: number): { readonly pivot: number; readonly swaps: number } {
    const length = to - from;
    const quarter = Math.floor(length / 4);
    let swaps = 0;
    const order = (a: number, b: number): readonly [number, number] => {
      if (!this.#less(b, a)) return [a, b];
      swaps++;
      return [b, a];
    };
    const median = (a: number, b: number, c: number): number => {
      const [low, high] = order(a, b);
      const [middle] = order(high, c);
      return order(low, middle)[1];
    };
    const candidates = [1, 2, 3].map((n) => from + quarter * n);
    const [a, b, c] = length >= manyItems ? candidates.map((at) => median(at - 1, at, at + 1)) : candidates;
    return { pivot: median(a ?? 0, b ?? 0, c ?? 0), swaps };
  }

  #reverse(from: number, to: number): void {
    for (let low = from, high = to - 1; low < high; low++, high--) this.#swap(low, high);
  }
}

/** How many bits a number has: 0 for 0, 4 for 8 to 15. */
function bitLength(number: number): number {
  return number === 0 ? 0 : Math.floor(Math.log2(number)) + 1;
}
