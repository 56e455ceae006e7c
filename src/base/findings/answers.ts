import { row, type Lists, type Numbers, type Strings, type Weighing } from './rows.ts';

type Golden = Strings<'folder'> & { readonly node?: string | undefined; readonly accept?: string | undefined };

type Differing = Lists<'what'> & Numbers<'more'>;

/**
 * Differences that belong to no known Service, in report order. `foreign`: objects that are not kube-proxy's, which are compared only on
 * request. `dead` and `live`: chains of a mode that the dump's node no longer runs; packets still reach the `live` ones. `unaccounted`:
 * objects that may be kube-proxy's or not.
 */
export const otherParts = ['base', 'foreign', 'dead', 'live', 'unaccounted'] as const;

export type OtherPart = (typeof otherParts)[number];

const byGolden: Weighing<{ readonly golden: Golden | undefined }> = {
  among: ['error', 'note'],
  weigh: ({ golden }) => (golden ? 'error' : 'note'),
};

export const answerFindings = {
  'answer-assumes': row<Lists<'of'>>('note'),
  /**
   * The parts that are not compared, and how many classes of packets are unknown on both sides, with reasons. `beside` names other things
   * that affect the packet.
   */
  'answer-lacks': row<
    Lists<'notCompared' | 'reasons'> & Numbers<'unknown' | 'unknownOnOne'> & Partial<Lists<'changed' | 'beside'>>
  >('note'),
  /** `golden` is undefined if two sides are compared without a reference. */
  'service-differs': row<Strings<'servicePort' | 'change'> & Differing & { readonly golden: Golden | undefined }>(
    byGolden,
  ),
  'state-differs': row<Differing & { readonly part?: OtherPart | undefined; readonly golden: Golden | undefined }>(
    byGolden,
  ),
  'unexpected-packet': row<Strings<'packet'> & Lists<'faults'>>('error'),
  /** `nodes` has the nodes where the difference was found; empty if only one node was compared. */
  'packets-differ': row<Strings<'cause' | 'effect'> & Lists<'ways' | 'services' | 'nodes' | 'advice'>>({
    among: ['error', 'warning', 'note'],
    weigh: ({ effect }) =>
      effect === 'breaks' ? 'error' : effect === 'unknown' || effect === 'changes' ? 'warning' : 'note',
  }),
};
