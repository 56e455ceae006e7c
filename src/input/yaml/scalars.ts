// The values of scalars: plain ones (cached, because they recur), quoted ones, and literal blocks.
import { unsure, beyondAscii, type PlainText } from './lines.ts';

/** Words whose value is not a text: null, true, false, infinities and NaN. */
const words: ReadonlyMap<string, boolean | number | null> = new Map<string, boolean | number | null>([
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
  ...['.nan', '.NaN', '.NAN'].map((word) => [word, Number.NaN] as const),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((word) => [word, Infinity] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((word) => [word, -Infinity] as const),
]);

const longestWord = 'false'.length;

const floatPattern = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

/**
 * Returns the value of a plain scalar in YAML 1.1, like go-yaml v2 under sigs.k8s.io/yaml. `yes` and `on` are true, 010 and 0o10 are 8,
 * 0x10 is 16 and 1_000 is 1000; 1:20 and dates stay text.
 */
export function resolvePlainScalar(text: string): string | number | boolean | null {
  // Try this first: most scalars are longer than these words, or are addresses or small numbers. No number has two dots.
  if (text.length > longestWord && (isLetter(text.charCodeAt(0)) || /^\d+\.\d+\./.test(text))) return text;
  if (/^(?:0|[1-9]\d{0,14})$/.test(text)) return Number(text);
  const word = words.get(text);
  return word === undefined ? (resolveNumber(text) ?? text) : word;
}

function isLetter(code: number): boolean {
  return (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
}

function resolveNumber(text: string): number | undefined {
  const first = text.charCodeAt(0);
  const isDigit = first >= 48 && first <= 57;
  // These are '.', '+' and '-'.
  if (!isDigit && first !== 46 && first !== 43 && first !== 45) return undefined;
  const integer = resolveInteger(text);
  if (integer !== undefined) return Number(integer);
  // Only in this form must underscores be between digits, as in Go.
  if (first === 46 && /_(?!\d)|(?<!\d)_/.test(text)) return undefined;
  const plain = text.replaceAll('_', '');
  const value = floatPattern.test(plain) ? Number(plain) : Infinity;
  return Number.isFinite(value) ? value : undefined;
}

/**
 * Parses an integer like Go's ParseInt with base 0: a sign, then 0x, 0o, 0b, or a leading zero for octal. As in go-yaml, 0b-11 is -3.
 * Returns a bigint if a JavaScript number would be inexact; undefined beyond 64 bits.
 */
export function resolveInteger(text: string): number | bigint | undefined {
  const plain = text.replaceAll('_', '');
  const binary = /^0b([-+])([01]+)$/.exec(plain);
  if (binary) return integerOf(binary[1], `0b${binary[2]}`);
  const match = /^([-+]?)(?:(0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+)|0([0-7]+)|(0|[1-9]\d*))$/.exec(plain);
  if (!match) return undefined;
  const [, sign, prefixed, octal, decimal = ''] = match;
  return integerOf(sign, prefixed?.toLowerCase() ?? (octal === undefined ? decimal : `0o${octal}`));
}

const mostSigned = 2n ** 63n;

function integerOf(sign: string | undefined, digits: string): number | bigint | undefined {
  const value = Number(digits);
  // Avoids -0, because Go's integers have none.
  if (Number.isSafeInteger(value)) return sign === '-' && value !== 0 ? -value : value;
  const magnitude = BigInt(digits);
  if (sign === '-') return magnitude > mostSigned ? undefined : -magnitude;
  return magnitude >= (sign === '+' ? mostSigned : 2n * mostSigned) ? undefined : magnitude;
}

/** The full parser allows keys of up to 1024 characters, but counts characters differently. */
const maxKeyLength = 512;

/**
 * Returns a key; undefined for a key that the full parser must read: '<<' may merge, and '__proto__' must not become a prototype. `length`:
 * the key's length as written.
 */
export function plainKey(scalar: unknown, length: number): string | undefined {
  const isPlain = typeof scalar === 'string' && scalar !== '__proto__' && scalar !== '<<' && length <= maxKeyLength;
  return isPlain ? scalar : undefined;
}

export function unquoteScalar(written: string): string {
  if (written.startsWith("'")) return written.slice(1, -1).replaceAll("''", "'");
  return written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
}

/** Throws `unsure` for a number that JSON lacks, because it is a mistake. */
export function requireFinite(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw unsure;
  return value;
}

export function resolveFinite(text: string): unknown {
  return requireFinite(resolvePlainScalar(text));
}

/** Returns the text of a literal block below a key or dash in `column`; undefined if its indentation is irregular. */
export function readLiteral(written: string, column: number): string | undefined {
  const [header = '', ...lines] = written.split('\n');
  const [indent = ''] = /^ */.exec(lines.find((line) => /[^ ]/.test(line)) ?? '') ?? [];
  // Blanks beyond the indentation are content or, before the first line, an error.
  const isRegular = lines.every((line) => (/[^ ]/.test(line) ? line.startsWith(indent) : line.length <= indent.length));
  if (!isRegular || !/^\|[-+]?\n/.test(written) || !written.endsWith('\n') || indent.length <= column) return undefined;
  const content = lines.map((line) => line.slice(indent.length)).join('\n');
  let end = content.length;
  while (content[end - 1] === '\n') end--;
  return content.slice(0, header === '|+' ? undefined : header === '|' ? end + 1 : end);
}

const slots = 4096;
/** The longest word to cache. Longer words rarely recur. */
const longest = 32;

/** A cache of recent plain scalars. Keys and most values recur, and need not be copied and resolved again. */
export class Words {
  /** The bytes of each word, at its slot times `longest`. */
  readonly #bytes = new Uint8Array(slots * longest);
  readonly #lengths = new Uint8Array(slots);
  readonly #values = Array.from<unknown>({ length: slots });

  resolve({ text, bytes }: PlainText, start: number, end: number): unknown {
    const length = end - start;
    // Addresses and times rarely recur either.
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
    // Do not cache words beyond ASCII, because different ones can have the same bytes.
    this.#lengths[slot] = isAscii ? end - start : 0;
  }
}

function slotOf(bytes: Uint8Array, start: number, end: number): number {
  const ends = (bytes[start] as number) * 7 + (bytes[end - 1] as number);
  const middle = (bytes[(start + end) >>> 1] as number) * 3 + (bytes[(start * 3 + end) >>> 2] as number);
  return (ends * 31 + middle * 5 + (end - start) * 101) & (slots - 1);
}

function isDigitByte(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
