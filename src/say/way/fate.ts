// How packets of one kind end, in words, and why their connections fail.
import { count, nameSome, percent } from '../../base/printable.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { sumChances, type Fate, type Packet, type ReachedEndpoint } from '../../packet/packet.ts';
import { connectionWords, decisionWords, stopperWords } from './connection.ts';
import { verdictCondition } from './stop.ts';
import { isUndetectedPod } from '../../ask/trace/obstacles.ts';
import { reasonSentence, reasonWords } from './reason.ts';
import type { HealthAnswer } from '../../snapshot/health-checks.ts';
import { isLocalEndpoint, type Scene } from '../../ask/trace/scene.ts';
import { stopOf, type Stop } from '../../ask/trace/stop.ts';
import type { Sender } from '../../ask/trace/question.ts';

/** A packet and its end on one side. */
interface Met {
  readonly sender: Sender;
  readonly packet: Packet;
  readonly fate: Fate;
  /** Which connections are lost although their first packet arrives. */
  readonly loses: 'all' | 'some' | 'none';
  /** What kube-proxy answers there to a health check. */
  readonly answer?: HealthAnswer | undefined;
}

/** Why connections fail on a side, if they do. */
export function failureWords(fate: Fate, { destination }: Packet, scene: Scene): readonly string[] {
  const { kind, reason } = connectionWords({ fate, target: { address: destination } }, scene);
  return reason === undefined || kind === 'works' || kind === 'unknown' ? [] : [`${nameOfSide(scene)}: ${reason}.`];
}

/** What stops a packet besides kube-proxy. */
export type StopOfNode = Extract<Stop, { readonly kind: 'stranger' | 'kernel' }>;

/** What stops a packet on a side, in a sentence. */
export function stopSentence(stop: StopOfNode, scene: Scene): string {
  const words = stop.kind === 'stranger' ? stopperWords(stop.step) : decisionWords(stop.decision, stop.destination);
  return `${nameOfSide(scene)}: ${words}.`;
}

function nameOfSide({ side: { name } }: Scene): string {
  return name === '-' ? 'stdin' : name;
}

/** Why a packet's outcome is unknown on a side, and what settles it. */
export function lackWords({ reasons }: Fate, { destination: { family } }: Packet, scene: Scene): string | undefined {
  const texts = reasons.map((reason) => reasonSentence(reasonWords(reason, family, scene)));
  return texts.length === 0 ? undefined : `${nameOfSide(scene)}: ${nameSome([...new Set(texts)], mostReasons)}`;
}

const mostReasons = 2;

/** How the sides' choices of endpoints compare: the same endpoints and shares, the same endpoints with other shares, or other endpoints. */
export type Choice = 'same' | 'other-shares' | 'other-endpoints';

const whereWords: { readonly [C in Choice]: (fate: Fate, scenes: readonly Scene[]) => string } = {
  same: () => '',
  'other-shares': whichShares,
  'other-endpoints': whichEndpoints,
};

/** What happens to packets of one kind, in words. The side's own scene comes first. */
export function fateWords(
  met: Met,
  choice: Choice,
  source: string | undefined,
  scenes: readonly [Scene, Scene],
): string {
  const { fate, loses, answer } = met;
  const where = fate.endpoints.length === 0 ? '' : whereWords[choice](fate, scenes);
  const end =
    fate.verdict === 'unknown' && where !== ''
      ? 'unknown for some connections, the others delivered'
      : answer
        ? answerWords(answer)
        : endWords[fate.verdict];
  const seen = source === undefined ? '' : `, with ${source} as source`;
  return `${end}${where}${seen}${lossWords[loses]}${stopClause(met, scenes[0])}`;
}

/** Why a packet is stopped: because of the nodes that kpc chose for Pods, or because settings keep pods from being recognised. */
function stopClause({ sender, packet, fate }: Met, scene: Scene): string {
  const target = { ...packet, address: packet.destination, label: undefined };
  const isUndetected = stopOf(fate) && isUndetectedPod({ sender, target, fate }, scene);
  return `${verdictCondition(target, fate, scene)}${isUndetected ? ', because no setting tells kube-proxy which clients are pods' : ''}`;
}

const lossWords = { all: ', but the connection fails', some: ', with some connections lost', none: '' } as const;

const endWords: { readonly [V in Fate['verdict']]: string } = {
  delivered: 'delivered',
  refused: 'refused',
  dropped: 'dropped',
  local: 'left to the node itself',
  forwarded: 'left to routing',
  unknown: 'not known',
};

function answerWords({ status }: HealthAnswer): string {
  return `answered with ${status === 'unknown' ? '200 or 503' : status}`;
}

/** The share of connections that each endpoint gets, by address. */
function whichShares({ endpoints }: Fate): string {
  const shares = [...sumChances(endpoints, formatSocketAddress).values()].map(percent);
  const [first = '', ...others] = new Set(shares);
  const ofEach = others.length === 0 && shares.length > 1 ? ' each' : '';
  const listed = others.length === 0 ? first : nameSome(shares, mostShares);
  return ` to ${count(shares.length, 'endpoint')} (${listed} of connections${ofEach})`;
}

const mostShares = 5;

/** Describes the endpoints. A dump does not show their nodes, but the other side may. The side's own scene comes first. */
function whichEndpoints({ endpoints }: Fate, scenes: readonly Scene[]): string {
  const placeOf = (each: ReachedEndpoint): boolean | undefined =>
    scenes.map((scene) => isLocalEndpoint(scene, each)).find((isLocal) => isLocal !== undefined);
  const places = new Set(endpoints.map(placeOf));
  if (places.has(undefined)) return ' to other endpoints';
  if (places.size > 1) return ' to endpoints on this and other nodes';
  return places.has(true) ? ' to endpoints on this node' : ' to endpoints on other nodes';
}
