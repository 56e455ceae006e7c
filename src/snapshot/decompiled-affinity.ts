import { groupBy } from '../cluster/grouping.ts';

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
  const byChain = groupBy(lookups, ({ chain }) => chain);
  const kept = drawn.map((name) => byChain.get(name)?.find(({ list }) => writes(name, list))?.seconds ?? 0);
  return kept.length === 0 ? 0 : kept.reduce((least, seconds) => Math.min(least, seconds));
}
