import type { answerFindings, OtherPart } from '../../base/findings/answers.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { count, formatCount, joinPhrases } from '../../base/printable.ts';
import { nameSome, type WordsOf } from './rows.ts';

/** Words for differences that belong to no known Service. There are words for titles, and words for use within sentences. */
export const otherPartWords: { readonly [P in OtherPart]: { readonly title: string; readonly what: string } } = {
  base: { title: 'Objects of no Service', what: 'objects of no Service' },
  foreign: { title: 'Objects of other programs', what: 'objects of other programs' },
  dead: { title: 'Left by iptables mode and no longer reached', what: 'objects that iptables mode left' },
  live: { title: 'Left by iptables mode and still reached by packets', what: 'objects that iptables mode left' },
  unaccounted: {
    title: "Objects that may be kube-proxy's or another program's: the dump does not show which",
    what: "objects that may be kube-proxy's",
  },
};

/** The most parts of a difference that its line names. */
const mostParts = 5;

function parts(what: readonly string[], more = 0): string {
  const rest = more + Math.max(0, what.length - mostParts);
  return [...what.slice(0, mostParts), ...(rest > 0 ? [`and ${formatCount(rest)} more`] : [])].join('; ');
}

function onNode(golden: { readonly node?: string | undefined } | undefined): string {
  return golden?.node === undefined ? '' : ` on ${golden.node}`;
}

export const acceptHelp = ({ accept }: { readonly accept?: string | undefined }): string | undefined =>
  accept === undefined ? undefined : `if this is intended: ${accept}`;

export const nothingLacks: ArgumentsOf<'answer-lacks'> = { notCompared: [], unknown: 0, unknownOnOne: 0, reasons: [] };

type Unknowns = Pick<ArgumentsOf<'answer-lacks'>, 'unknown' | 'unknownOnOne' | 'reasons'>;

/** Returns "what happens to 2 classes of packets is unknown on both sides: the rules of another table". Empty if everything is known. */
export function unknownWords({ unknown, unknownOnOne, reasons }: Unknowns): readonly string[] {
  const of = (classes: number, sides: string) =>
    classes === 0 ? [] : [`what happens to ${count(classes, 'class of packets')} is unknown on ${sides}`];
  const said = [...of(unknown, 'both sides'), ...of(unknownOnOne, 'one side')];
  const why = reasons.length === 0 ? '' : `: ${nameSome(reasons)}`;
  return said.length === 0 ? [] : [`${said.join(', and ')}${why}`];
}

export const answerWords: WordsOf<typeof answerFindings> = {
  'answer-assumes': ({ of }) => `assumed: ${of.join(', ')}`,
  'answer-lacks': ({ notCompared, changed = [], beside = [], ...unknowns }) =>
    [
      ...changed,
      ...unknownWords(unknowns),
      ...(beside.length > 0 ? [parts(beside)] : []),
      // This phrase is last, because its parts may be separated by semicolons too.
      ...(notCompared.length > 0 ? [`not compared: ${joinPhrases(notCompared)}`] : []),
    ].join('; '),
  'service-differs': ({ servicePort, change, what, more, golden }) => [
    `${servicePort} ${change}${onNode(golden)}${what.length === 0 ? '' : `: ${parts(what, more)}`}`,
    golden && acceptHelp(golden),
  ],
  'state-differs': ({ what, more, part = 'base', golden }) => [
    `${golden ? `${golden.folder} differs${onNode(golden)}` : `${otherPartWords[part].what} differ`}: ${parts(what, more)}`,
    golden && acceptHelp(golden),
  ],
  'unexpected-packet': ({ packet, faults }) => `${packet}: ${faults.join('; ')}`,
  'packets-differ': ({ cause, ways, services, nodes, advice }) => {
    const whose = services.length === 0 ? '' : ` (${nameSome(services, mostParts)})`;
    const where = nodes.length === 0 ? '' : `, on ${nameSome(nodes, mostParts)}`;
    return [`${cause}: ${parts(ways)}${whose}${where}`, advice.length === 0 ? undefined : advice.join('; ')];
  },
};
