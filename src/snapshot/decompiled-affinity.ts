import { groupBy } from '../cluster/grouping.ts';

/** A rule that sends the clients in a list to the chain of the endpoint that they used before. */
export interface Lookup {
  readonly chain: string;
  readonly list: string;
  readonly seconds: number;
}

/**
 * Returns the seconds of session affinity that a chain gives: 0 unless each endpoint's clients are both written to its list and looked up
 * there. `drawn`: the endpoints' chains that the chain chooses by chance. `writes`: whether a chain adds to a list, as far as shown.
 */
export function affinityOf(
  drawn: readonly string[],
  lookups: readonly Lookup[],
  writes: (chain: string, list: string) => boolean,
): number {
  const byChain = groupBy(lookups, ({ chain }) => chain);
  const kept = drawn.map((name) => byChain.get(name)?.find(({ list }) => writes(name, list))?.seconds ?? 0);
  return kept.length === 0 ? 0 : kept.reduce((least, seconds) => Math.min(least, seconds));
}
