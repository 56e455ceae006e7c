import type { answerFindings } from '../../base/findings/answers.ts';
import { nameSome } from '../../base/join-words.ts';
import type { WordsOf } from './rows.ts';

/** How many parts of a difference its one line has. */
const mostParts = 5;

const parts = (what: readonly string[]): string =>
  what.length > mostParts
    ? `${what.slice(0, mostParts).join('; ')}; and ${what.length - mostParts} more`
    : what.join('; ');

const acceptHelp = ({ accept }: { readonly accept: string }): string | undefined =>
  accept === '' ? undefined : `if this is intended: ${accept}`;

export const answerWords: WordsOf<typeof answerFindings> = {
  'service-differs': ({ servicePort, change, what, golden }) => [
    `${servicePort} ${change}${what.length === 0 ? '' : `: ${parts(what)}`}`,
    golden && acceptHelp(golden),
  ],
  'state-differs': ({ what, golden }) => [
    `${golden ? `${golden.folder} differs` : 'what belongs to no Service differs'}: ${parts(what)}`,
    golden && acceptHelp(golden),
  ],
  'unexpected-packet': ({ packet, faults }) => `${packet}: ${faults.join('; ')}`,
  'packets-differ': ({ cause, ways, services, advice }) => [
    `${cause}: ${parts(ways)}${services.length === 0 ? '' : ` (${nameSome(services, mostParts)})`}`,
    advice.length === 0 ? undefined : advice.join('; '),
  ],
};
