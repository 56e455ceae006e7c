import type { answerFindings } from '../../base/findings/answers.ts';
import { formatCount, nameSome } from '../../base/printable.ts';
import type { WordsOf } from './rows.ts';

/** How many parts of a difference its one line has. */
const mostParts = 5;

function parts(what: readonly string[], more = 0): string {
  const rest = more + Math.max(0, what.length - mostParts);
  return [...what.slice(0, mostParts), ...(rest > 0 ? [`and ${formatCount(rest)} more`] : [])].join('; ');
}

function onNode(golden: { readonly node?: string | undefined } | undefined): string {
  return golden?.node === undefined ? '' : ` on ${golden.node}`;
}

const acceptHelp = ({ accept }: { readonly accept?: string | undefined }): string | undefined =>
  accept === undefined ? undefined : `if this is intended: ${accept}`;

export const answerWords: WordsOf<typeof answerFindings> = {
  'answer-assumes': ({ of }) => `assumed: ${of.join(', ')}`,
  'service-differs': ({ servicePort, change, what, more, golden }) => [
    `${servicePort} ${change}${onNode(golden)}${what.length === 0 ? '' : `: ${parts(what, more)}`}`,
    golden && acceptHelp(golden),
  ],
  'state-differs': ({ what, more, golden }) => [
    `${golden ? `${golden.folder} differs${onNode(golden)}` : 'what belongs to no Service differs'}: ${parts(what, more)}`,
    golden && acceptHelp(golden),
  ],
  'unexpected-packet': ({ packet, faults }) => `${packet}: ${faults.join('; ')}`,
  'packets-differ': ({ cause, ways, services, nodes, advice }) => {
    const whose = services.length === 0 ? '' : ` (${nameSome(services, mostParts)})`;
    const where = nodes.length === 0 ? '' : `, on ${nameSome(nodes, mostParts)}`;
    return [`${cause}: ${parts(ways)}${whose}${where}`, advice.length === 0 ? undefined : advice.join('; ')];
  },
};
