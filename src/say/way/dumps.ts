// What dumps do not show.
import type { Doubt } from '../../dumps/dump.ts';
import type { Unlisted } from '../../kernel/ipvs/ipvs.ts';

/** "KUBE-CLUSTER-IP names 10.96.0.1,tcp:80, but the dump lists no virtual server for it …". */
export function unlistedWords({ by, entry, lacks }: Unlisted): string {
  const or = lacks === 'address' ? 'something removed it' : 'kube-proxy could not make all of them';
  return `${by} names ${entry}, but the dump lists no ${lacks} for it: the list is cut off, or ${or}`;
}

/** A sentence for each unused output, from another node or time than the first of its kind. */
export function describeSkippedListings(doubts: readonly Doubt[]): readonly string[] {
  return doubts.flatMap((doubt) =>
    doubt.kind === 'second-listing'
      ? [
          `${doubt.file} holds ${doubt.output} from another node or time, which is skipped: this answer is about the first listing`,
        ]
      : [],
  );
}
