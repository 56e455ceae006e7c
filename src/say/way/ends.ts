// Lists first packets that end differently from most, because one of several endpoints is unreachable or no rule leads to it.
import { percent } from '../../base/printable.ts';
import { groupBy } from '../../cluster/grouping.ts';
import type { Family } from '../../kernel/address.ts';
import { formatSocketAddress, type SocketAddress } from '../../kernel/ports-and-marks.ts';
import type { Trace } from '../../ask/trace/question.ts';
import type { Scene } from '../../ask/trace/scene.ts';
import type { Outcome, Verdict } from '../../packet/packet.ts';
import { endOfSteps, outcomeWords } from './connection.ts';

interface OtherEnd {
  readonly verdict: Verdict;
  readonly probability: number;
  /** The endpoint that rules chose for a lost packet. Undefined if they chose none. */
  readonly endpoint: SocketAddress | undefined;
  readonly connection: Outcome['kind'];
  /** A clause that says what decides how the packet ends. '' if nothing more is known. */
  readonly reason: string;
}

/** Lists the ends that differ from the end of most packets, in the order of the rules. Empty if it is unknown how packets end. */
export function otherEnds({ fate: asked, target }: Pick<Trace, 'fate' | 'target'>, scene: Scene): readonly OtherEnd[] {
  const fate = asked.otherwise ?? asked;
  if (fate.verdict === 'unknown') return [];
  const ends = fate
    .connection()
    .ways.filter(({ way }) => way.verdict !== fate.verdict)
    .map(({ way: { verdict, probability }, outcome }) => ({
      verdict,
      probability,
      ...endOf(outcome, target.address.family, scene),
    }));
  return [...groupBy(ends, keyOf).values()].map((own) => ({
    ...own[0],
    probability: own.reduce((sum, each) => sum + each.probability, 0),
  }));
}

function keyOf({ verdict, endpoint, reason }: OtherEnd): string {
  return JSON.stringify([verdict, endpoint && formatSocketAddress(endpoint), reason]);
}

function endOf(outcome: Outcome, family: Family, scene: Scene): Pick<OtherEnd, 'endpoint' | 'connection' | 'reason'> {
  const loss = outcome.kind === 'fails' ? outcome.loss : undefined;
  return {
    connection: outcome.kind,
    ...(loss?.kind === 'first-lost'
      ? { endpoint: loss.endpoint, reason: endOfSteps(loss.steps) }
      : { endpoint: undefined, reason: outcomeWords(outcome, family, scene).join('; ') }),
  };
}

export function otherEndWords({ verdict, probability, endpoint, reason }: OtherEnd): string {
  const to = endpoint ? `${formatSocketAddress(endpoint)}; ` : '';
  return `${percent(probability).padStart(6)}  ${to}${endWords[verdict]}${reason === '' ? '' : `: ${reason}`}`;
}

const endWords: { readonly [V in Verdict]: string } = {
  delivered: 'delivered',
  refused: 'refused',
  dropped: 'dropped',
  local: 'reaches the node itself',
  forwarded: 'left to routing',
  unknown: 'not known',
};
