// Describes how packets of one kind end on a side, and why their end may be unknown.
import { count, percent } from '../../base/printable.ts';
import { nameSome } from '../words/rows.ts';
import type { End, SeenSource } from '../../ask/equivalence/ends.ts';
import type { Unsettled } from '../../ask/equivalence/compare.ts';
import { reasonSentence, reasonWords } from './reason.ts';
import { stopConditionWords } from './stop.ts';

export function nameOfSide(name: string): string {
  return name === '-' ? 'stdin' : name;
}

/** Says why a packet's outcome is unknown on a side, and what would settle it. */
export function lackWords(lacks: readonly Unsettled[]): string | undefined {
  const [first] = lacks;
  return first && `${nameOfSide(first.scene.side.name)}: ${nameSome(unsettledWords(lacks), mostReasons)}`;
}

export function unsettledWords(lacks: readonly Unsettled[]): readonly string[] {
  return [...new Set(lacks.map(({ reason, family, scene }) => reasonSentence(reasonWords(reason, family, scene))))];
}

const mostReasons = 2;

export function fateWords(end: End): string {
  const { verdict, chosen, answer, sources, loses, isUndetected } = end;
  const where = chosen === undefined ? '' : chosenWords(chosen);
  const what =
    verdict === 'unknown' && where !== ''
      ? 'unknown for some connections; the others are delivered'
      : answer === undefined
        ? endWords[verdict]
        : `answered with ${answer}`;
  const seen = sources === undefined ? '' : `, with ${sourcesWords(sources)} as source`;
  const why = isUndetected ? ', because no setting tells kube-proxy which clients are pods' : '';
  return `${what}${where}${seen}${lossWords[loses]}${stopConditionWords(end)}${why}`;
}

const lossWords = { all: ', but the connection fails', some: ', with some connections lost', none: '' } as const;

const endWords: { readonly [V in End['verdict']]: string } = {
  delivered: 'delivered',
  refused: 'refused',
  dropped: 'dropped',
  local: 'left to the node itself',
  forwarded: 'left to routing',
  unknown: 'not known',
};

const sourceWords: { readonly [S in SeenSource]: string } = {
  client: "the client's address",
  node: "the node's address",
  service: 'the address of the Service',
};

export function sourcesWords(sources: readonly SeenSource[]): string {
  return sources
    .map((each) => sourceWords[each])
    .sort()
    .join(' or ');
}

const placeWords = {
  unknown: 'other endpoints',
  'this-node': 'endpoints on this node',
  'other-nodes': 'endpoints on other nodes',
  'all-nodes': 'endpoints on this and other nodes',
} as const;

/** Describes the chosen endpoints, or the share of connections that each endpoint gets. */
function chosenWords(chosen: NonNullable<End['chosen']>): string {
  if (chosen.kind === 'endpoints') return ` to ${placeWords[chosen.on]}`;
  const shares = chosen.shares.map(percent);
  const [first = '', ...others] = new Set(shares);
  const ofEach = others.length === 0 && shares.length > 1 ? ' each' : '';
  const listed = others.length === 0 ? first : nameSome(shares, mostShares);
  return ` to ${count(shares.length, 'endpoint')} (${listed} of connections${ofEach})`;
}

const mostShares = 5;
