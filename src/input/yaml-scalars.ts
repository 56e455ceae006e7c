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
  if (Object.hasOwn(booleans, text)) return booleans[text] ?? text;
  return resolveNumber(text);
}

function resolveNumber(text: string): string | number {
  const first = text.charCodeAt(0);
  const isDigit = first >= 48 && first <= 57;
  // '.', '+' and '-'
  if (!isDigit && first !== 46 && first !== 43 && first !== 45) return text;
  if (first === 46) return floatPattern.test(text) ? Number(text) : text;
  const plain = text.replaceAll('_', '');
  const integer = resolveInteger(plain);
  if (integer !== undefined) return integer;
  return floatPattern.test(plain) ? Number(plain) : text;
}

/** Go's ParseInt with base 0: a sign, then 0x, 0o, 0b or a leading zero for octal. */
function resolveInteger(text: string): number | undefined {
  const match = /^([-+]?)(?:(0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+)|0([0-7]+)|(\d+))$/.exec(text);
  if (!match) return undefined;
  const [, sign, prefixed, octal, decimal] = match;
  let value: number;
  if (prefixed !== undefined) value = Number(prefixed.toLowerCase());
  else if (octal !== undefined) value = Number.parseInt(octal, 8);
  else if (decimal !== undefined && (decimal === '0' || !decimal.startsWith('0'))) value = Number(decimal);
  else return undefined;
  return sign === '-' ? -value : value;
}
