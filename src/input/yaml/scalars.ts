/** A number as YAML 1.1 writes it. `exact` is there for an integer that no JavaScript number is. */
export type YamlNumber =
  | { readonly kind: 'integer'; readonly value: number; readonly exact?: bigint }
  | { readonly kind: 'float'; readonly value: number };

const booleans: Readonly<Record<string, boolean>> = Object.fromEntries([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
]);

const floatPattern = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

/**
 * What a plain (unquoted) scalar is to Kubernetes: YAML 1.1 as go-yaml v2 has it, under sigs.k8s.io/yaml. `yes` and
 * `on` are true, 010 and 0o10 are 8, 0x10 is 16 and 1_000 is 1000; 1:20 and dates stay text.
 */
export function resolvePlainScalar(text: string): string | number | boolean | null {
  switch (text) {
    case '':
    case '~':
    case 'null':
    case 'Null':
    case 'NULL':
      return null;
  }
  if (Object.hasOwn(booleans, text)) return booleans[text] ?? text;
  return resolveNumber(text)?.value ?? text;
}

/** The number that a plain scalar is; undefined for what is none. */
export function resolveNumber(text: string): YamlNumber | undefined {
  const first = text.charCodeAt(0);
  const isDigit = first >= 48 && first <= 57;
  // '.', '+' and '-'
  if (!isDigit && first !== 46 && first !== 43 && first !== 45) return undefined;
  const special = resolveSpecial(text);
  if (special !== undefined) return { kind: 'float', value: special };
  // Here alone underscores count as in Go: between digits.
  if (first === 46) return /_(?!\d)|(?<!\d)_/.test(text) ? undefined : resolveFloat(text.replaceAll('_', ''));
  const plain = text.replaceAll('_', '');
  return resolveInteger(plain) ?? resolveFloat(plain) ?? resolveSignedBinary(plain);
}

function resolveSpecial(text: string): number | undefined {
  switch (text) {
    case '.nan':
    case '.NaN':
    case '.NAN':
      return Number.NaN;
    case '.inf':
    case '.Inf':
    case '.INF':
    case '+.inf':
    case '+.Inf':
    case '+.INF':
      return Number.POSITIVE_INFINITY;
    case '-.inf':
    case '-.Inf':
    case '-.INF':
      return Number.NEGATIVE_INFINITY;
  }
  return undefined;
}

/** What is too large for 64 bits stays text. */
function resolveFloat(text: string): YamlNumber | undefined {
  if (!floatPattern.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? { kind: 'float', value } : undefined;
}

/** Go's ParseInt with base 0: a sign, then 0x, 0o, 0b or a leading zero for octal. */
function resolveInteger(text: string): YamlNumber | undefined {
  const match = /^([-+]?)(?:(0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+)|0([0-7]+)|(0|[1-9]\d*))$/.exec(text);
  if (!match) return undefined;
  const [, sign = '', prefixed, octal, decimal = ''] = match;
  const digits = prefixed?.toLowerCase() ?? (octal === undefined ? decimal : `0o${octal}`);
  return integerOf(sign, digits);
}

/** As go-yaml has it after all else has failed: 0b-11 is -3. */
function resolveSignedBinary(text: string): YamlNumber | undefined {
  const [, sign, digits] = /^0b([-+])([01]+)$/.exec(text) ?? [];
  return sign === undefined || digits === undefined ? undefined : integerOf(sign, `0b${digits}`);
}

const mostSigned = 2n ** 63n;

/** An integer of 64 bits, without a sign up to twice as large; what is larger is none. */
function integerOf(sign: string, digits: string): YamlNumber | undefined {
  const value = Number(digits);
  // Not -0: Go's integers have none.
  if (Number.isSafeInteger(value)) return { kind: 'integer', value: sign === '-' && value !== 0 ? -value : value };
  const magnitude = BigInt(digits);
  const limits: Readonly<Record<string, bigint>> = { '-': mostSigned, '+': mostSigned - 1n };
  if (magnitude > (limits[sign] ?? 2n * mostSigned - 1n)) return undefined;
  const exact = sign === '-' ? -magnitude : magnitude;
  return { kind: 'integer', value: Number(exact), exact };
}
