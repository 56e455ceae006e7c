import { resolvePlainScalar } from './scalars.ts';

/** How many are kept: a power of two. */
const slots = 4096;
/** Longer words are hardly ever the same. */
const longest = 32;

/** Plain scalars that were read lately: keys and most values come again and again, and need not be copied and looked at again. */
export class Words {
  readonly #texts = Array.from({ length: slots }, () => '');
  readonly #values = Array.from<unknown>({ length: slots });

  /** What resolvePlainScalar makes of a stretch of a text. */
  resolve(text: string, start: number, end: number): unknown {
    const length = end - start;
    // Nor are addresses and times.
    if (length > longest || (length > 5 && isDigit(text.charCodeAt(start))))
      return resolvePlainScalar(text.slice(start, end));
    const slot = slotOf(text, start, end);
    const known = this.#texts[slot] as string;
    if (known.length === length) {
      let i = 0;
      while (i < length && known.charCodeAt(i) === text.charCodeAt(start + i)) i++;
      if (i === length) return this.#values[slot];
    }
    const word = text.slice(start, end);
    const value = resolvePlainScalar(word);
    this.#texts[slot] = word;
    this.#values[slot] = value;
    return value;
  }
}

/** Words that differ in length, or at either end or in the middle, have slots of their own. */
function slotOf(text: string, start: number, end: number): number {
  const ends = text.charCodeAt(start) * 7 + text.charCodeAt(end - 1);
  const middle = text.charCodeAt((start + end) >>> 1) * 3 + text.charCodeAt((start * 3 + end) >>> 2);
  return (ends * 31 + middle * 5 + (end - start) * 101) & (slots - 1);
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
