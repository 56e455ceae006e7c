/** Words that are no text: null, true, false, and what is no number or has no end. */
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
 * What a plain (unquoted) scalar is to Kubernetes: YAML 1.1 as go-yaml v2 has it, under sigs.k8s.io/yaml. `yes` and
 * `on` are true, 010 and 0o10 are 8, 0x10 is 16 and 1_000 is 1000; 1:20 and dates stay text.
 */
export function resolvePlainScalar(text: string): string | number | boolean | null {
  // Most scalars are longer than any of the words, or are addresses or small numbers: no number has a second dot.
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
  // '.', '+' and '-'
  if (!isDigit && first !== 46 && first !== 43 && first !== 45) return undefined;
  const integer = resolveInteger(text);
  if (integer !== undefined) return Number(integer);
  // Here alone underscores count as in Go: between digits.
  if (first === 46 && /_(?!\d)|(?<!\d)_/.test(text)) return undefined;
  const plain = text.replaceAll('_', '');
  const value = floatPattern.test(plain) ? Number(plain) : Infinity;
  // What is too large for 64 bits stays text.
  return Number.isFinite(value) ? value : undefined;
}

/**
 * The integer that a plain scalar is, as Go's ParseInt with base 0 has it: a sign, then 0x, 0o, 0b or a leading zero for octal;
 * and after all else has failed, 0b-11 is -3. A bigint if no JavaScript number is as exact, and none beyond 64 bits.
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

/** An integer of 64 bits, or up to twice as large without a sign; anything larger is no integer. */
function integerOf(sign: string | undefined, digits: string): number | bigint | undefined {
  const value = Number(digits);
  // Not -0: Go's integers have none.
  if (Number.isSafeInteger(value)) return sign === '-' && value !== 0 ? -value : value;
  const magnitude = BigInt(digits);
  if (sign === '-') return magnitude > mostSigned ? undefined : -magnitude;
  return magnitude >= (sign === '+' ? mostSigned : 2n * mostSigned) ? undefined : magnitude;
}
