import { row, type Lists, type Texts, type Weighing } from './rows.ts';

/** The bundle or golden that was to be the same, and the command that writes it again; '' if nothing can. */
type Golden = Texts<'folder' | 'accept'>;

const byGolden: Weighing<{ readonly golden: Golden | undefined }> = {
  among: ['error', 'note'],
  weigh: ({ golden }) => (golden ? 'error' : 'note'),
};

/** What answers find, for the formats that show it in a pull request. */
export const answerFindings = {
  /** `golden`: undefined where two sides are compared, neither of which has to be like the other. */
  'service-differs': row<Texts<'servicePort' | 'change'> & Lists<'what'> & { readonly golden: Golden | undefined }>(
    byGolden,
  ),
  /** What belongs to no Service, or a folder as a whole. */
  'state-differs': row<Lists<'what'> & { readonly golden: Golden | undefined }>(byGolden),
  'unexpected-packet': row<Texts<'packet'> & Lists<'faults'>>('error'),
  'packets-differ': row<Texts<'cause' | 'effect'> & Lists<'ways' | 'services' | 'advice'>>({
    among: ['error', 'warning', 'note'],
    weigh: ({ effect }) =>
      effect === 'breaks' ? 'error' : effect === 'unknown' || effect === 'changes' ? 'warning' : 'note',
  }),
};
