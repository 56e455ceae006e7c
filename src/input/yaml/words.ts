import { beyondAscii, type PlainText } from './plain-text.ts';
import { resolvePlainScalar } from './scalars.ts';

/** How many are kept: a power of two. */
const slots = 4096;
/** Longer words are hardly ever the same. */
const longest = 32;

/** Plain scalars that were read lately: keys and most values come again and again, and need not be copied and looked at again. */
export class Words {
  /** The bytes of each word, from its slot times `longest` on. */
  readonly #bytes = new Uint8Array(slots * longest);
  readonly #lengths = new Uint8Array(slots);
  readonly #values = Array.from<unknown>({ length: slots });

  /** What resolvePlainScalar makes of a stretch of a text. */
  resolve({ text, bytes }: PlainText, start: number, end: number): unknown {
    const length = end - start;
    // Nor are addresses and times.
    if (length > longest || (length > 5 && isDigitByte(bytes[start] as number)))
      return resolvePlainScalar(text.slice(start, end));
    const slot = slotOf(bytes, start, end);
    if (this.#lengths[slot] === length && this.#isIn(slot, bytes, start, end)) return this.#values[slot];
    const value = resolvePlainScalar(text.slice(start, end));
    this.#keep(slot, bytes, start, end);
    this.#values[slot] = value;
    return value;
  }

  #isIn(slot: number, bytes: Uint8Array, start: number, end: number): boolean {
    const known = this.#bytes;
    let at = start;
    for (let i = slot * longest; at < end && known[i] === bytes[at]; i++) at++;
    return at === end;
  }

  #keep(slot: number, bytes: Uint8Array, start: number, end: number): void {
    let isAscii = true;
    for (let i = 0; i < end - start; i++) {
      const byte = bytes[start + i] as number;
      this.#bytes[slot * longest + i] = byte;
      isAscii &&= byte !== beyondAscii;
    }
    // Other words with characters beyond ASCII have the same bytes.
    this.#lengths[slot] = isAscii ? end - start : 0;
  }
}

/** Words that differ in length, or at either end or in the middle, have slots of their own. */
function slotOf(bytes: Uint8Array, start: number, end: number): number {
  const ends = (bytes[start] as number) * 7 + (bytes[end - 1] as number);
  const middle = (bytes[(start + end) >>> 1] as number) * 3 + (bytes[(start * 3 + end) >>> 2] as number);
  return (ends * 31 + middle * 5 + (end - start) * 101) & (slots - 1);
}

function isDigitByte(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
