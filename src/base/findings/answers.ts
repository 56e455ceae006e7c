import { row, type Lists, type Numbers, type Strings, type Weighing } from './rows.ts';

/** The bundle or golden that differs, its node among several, and the command that rewrites it, if any. */
type Golden = Strings<'folder'> & { readonly node?: string | undefined; readonly accept?: string | undefined };

/** The differences as lines, and the number of further lines. */
type Differing = Lists<'what'> & Numbers<'more'>;

/**
 * Differences not known to belong to a Service, in report order. `dead` and `live` are chains of a mode that the dump's node no
 * longer runs; `foreign`, what is not kube-proxy's, is empty unless asked for; `unaccounted` may be either's.
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
   * The parts not compared, and how many classes of packets are unknown on both sides, with reasons. `beside`: other
   * things that affect the packet, in sentences.
   */
  'answer-lacks': row<
    Lists<'notCompared' | 'reasons'> &
      Numbers<'unknown' | 'unknownOnOne'> & { readonly beside?: readonly string[] | undefined }
  >('note'),
  /** `golden` is undefined when comparing two sides without a reference. */
  'service-differs': row<Strings<'servicePort' | 'change'> & Differing & { readonly golden: Golden | undefined }>(
    byGolden,
  ),
  /** Differences not known to belong to a Service; without `part`, a whole folder. */
  'state-differs': row<Differing & { readonly part?: OtherPart | undefined; readonly golden: Golden | undefined }>(
    byGolden,
  ),
  'unexpected-packet': row<Strings<'packet'> & Lists<'faults'>>('error'),
  /** `nodes`: the nodes where it was found; empty if only one node was asked. */
  'packets-differ': row<Strings<'cause' | 'effect'> & Lists<'ways' | 'services' | 'nodes' | 'advice'>>({
    among: ['error', 'warning', 'note'],
    weigh: ({ effect }) =>
      effect === 'breaks' ? 'error' : effect === 'unknown' || effect === 'changes' ? 'warning' : 'note',
  }),
};
