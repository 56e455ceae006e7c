/** How many powers of ten the suffix of a decimal quantity stands for. */
const decimals: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
/** How many powers of two that of a binary one stands for. */
const binaries: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };

const shape = /^\+?(\d{1,30})?(?:\.(\d{0,30}))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?$/;

/**
 * A Kubernetes quantity, such as "4", "3920m" or "1e3", in billionths, what is less rounded up, as the API server does.
 * Undefined for what is none, and for a negative one.
 */
export function parseQuantity(text: string): bigint | undefined {
  const [, whole = '', fraction = '', suffix = '', exponent] = shape.exec(text) ?? [];
  if (whole + fraction === '') return undefined;
  const binary = binaries[suffix];
  const tens = exponent === undefined ? (decimals[suffix] ?? 0) : Number(exponent);
  const digits = BigInt(whole + fraction) << BigInt(binary ?? 0);
  const power = tens - fraction.length + 9;
  if (power >= 0) return digits * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (digits + divisor - 1n) / divisor;
}
