/** A rule that sends clients in a list on to the endpoint's chain that they had. */
export interface Lookup {
  readonly chain: string;
  readonly list: string;
  readonly seconds: number;
}

/**
 * The seconds for which a chain gives session affinity: 0 unless each endpoint's clients are both written to its list and looked up there.
 * `drawn`: the endpoints' chains that it chooses by chance. `writes`: whether a chain adds to a list, as far as that is shown.
 */
export function affinityOf(
  drawn: readonly string[],
  lookups: readonly Lookup[],
  writes: (chain: string, list: string) => boolean,
): number {
  const isKept = (name: string): boolean => lookups.some(({ chain, list }) => chain === name && writes(chain, list));
  return drawn.every(isKept) ? (lookups[0]?.seconds ?? 0) : 0;
}
