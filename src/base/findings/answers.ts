import { row, type Lists, type Numbers, type Texts, type Weighing } from './rows.ts';

/** The bundle or golden that was to be the same, of this node of several, and the command that writes it again, if one can. */
type Golden = Texts<'folder'> & { readonly node?: string | undefined; readonly accept?: string | undefined };

/** What differs in lines, and how many more lines there are. */
type Differing = Lists<'what'> & Numbers<'more'>;

const byGolden: Weighing<{ readonly golden: Golden | undefined }> = {
  among: ['error', 'note'],
  weigh: ({ golden }) => (golden ? 'error' : 'note'),
};

/** What answers find, for the formats that show it in a pull request. */
export const answerFindings = {
  /** What an answer rests on, in words. */
  'answer-assumes': row<Lists<'of'>>('note'),
  /** `golden`: undefined where two sides are compared, neither of which has to be like the other. */
  'service-differs': row<Texts<'servicePort' | 'change'> & Differing & { readonly golden: Golden | undefined }>(
    byGolden,
  ),
  /** What belongs to no Service, or a folder as a whole. */
  'state-differs': row<Differing & { readonly golden: Golden | undefined }>(byGolden),
  'unexpected-packet': row<Texts<'packet'> & Lists<'faults'>>('error'),
  /** `nodes`: those on which it was found; empty where one was asked. */
  'packets-differ': row<Texts<'cause' | 'effect'> & Lists<'ways' | 'services' | 'nodes' | 'advice'>>({
    among: ['error', 'warning', 'note'],
    weigh: ({ effect }) =>
      effect === 'breaks' ? 'error' : effect === 'unknown' || effect === 'changes' ? 'warning' : 'note',
  }),
};
