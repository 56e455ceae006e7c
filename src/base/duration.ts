const unitSeconds: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  μs: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
};

/** Reads a duration like Go's time.ParseDuration ("15m0s", "1.5h", "0") as seconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = /^([-+]?)(?:0|((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+))$/.exec(text);
  if (!match) return undefined;
  const [, sign, parts = ''] = match;
  let seconds = 0;
  for (const [, number, unit = ''] of parts.matchAll(/([\d.]+)([^\d.]+)/gy)) {
    seconds += Number(number) * (unitSeconds[unit] ?? 0);
  }
  // Refuse a longer time, because Go's int64 cannot hold so many nanoseconds.
  if (seconds >= 2 ** 63 / 1e9) return undefined;
  return sign === '-' ? -seconds : seconds;
}
