/** A version as numbers: "v1.8.9" → [1, 8, 9]. */
export type Version = readonly number[];

/** The first dotted number in a text. Undefined where there is none. */
export function parseVersion(text: string): Version | undefined {
  const match = /(?<!\d)\d+(?:\.\d+)+/.exec(text) ?? /\d+/.exec(text);
  return match ? match[0].split('.').map(Number) : undefined;
}

/** Numbers that are not there count as 0: 1.8 is 1.8.0. */
export function compareVersions(a: Version, b: Version): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
