import { areMadeAlike } from '../../cluster/stale-slices.ts';
import { isLoopback, type Address } from '../../kernel/address.ts';
import { families } from '../../kernel/family.ts';
import { isSameEnd } from '../../packet/explore.ts';
import {
  isArrival,
  isUndecided,
  isUnknownOwn,
  workingShare,
  type Fate,
  type Packet,
  type Way,
} from '../../packet/packet.ts';
import type { Reason } from '../../packet/reason.ts';
import type { AskedSource } from '../../packet/step.ts';
import { healthAnswerOf, healthCheckFinder, isSameAnswer, type HealthAnswer } from '../../snapshot/health-checks.ts';
import { wholeState } from '../trace/knowledge.ts';
import { representatives } from '../trace/address-cells.ts';
import { packetOf } from '../trace/ask.ts';
import type { Destination } from '../trace/question.ts';
import { reasonSentence, reasonWords } from '../../say/way/reason.ts';
import type { Scene } from '../trace/scene.ts';
import { Likeness } from './likeness.ts';
import { portKey, readPortKey, type ProtocolPort, Questions } from './questions.ts';
import type { Only } from './representatives.ts';
import { Clients, existsOn, knownOwnAddresses, type PlacedSender } from './senders.ts';

/** A class of packets that the two sides treat differently, with one packet as an example. */
export interface Difference {
  readonly sender: PlacedSender;
  readonly packet: Packet;
  readonly from: Fate;
  readonly to: Fate;
  /** Whether first packets end alike and only their connections differ. */
  readonly isOfConnection: boolean;
  /** What kube-proxy answers to a health check at an address of the node, if both sides were compiled. */
  readonly answers?: Answers | undefined;
}

interface Answers {
  readonly from: HealthAnswer | undefined;
  readonly to: HealthAnswer | undefined;
}

export interface ClassCounts {
  /** One packet was sent for each class. */
  readonly classes: number;
  /** Classes without an answer on either side, and those with one on one side only. */
  readonly unknown: number;
  readonly unknownOnOne: number;
  /** Sentences on why they are unknown and what would settle it, without repetition. */
  readonly reasons: ReadonlySet<string>;
}

/** A destination, and its turn if each destination is asked separately. */
interface TurnTarget extends Destination {
  readonly turn: number;
}

/** A destination that is equivalent to another. */
export interface Like extends TurnTarget {
  /** Translates an address of the other destination to this one: its endpoint to the endpoint here. Other addresses stay. */
  readonly insteadOf: (address: string) => string;
}

/** Receives a difference with its destination's turn, and the equivalent destinations of other Services. */
type OnDifference = (difference: Difference, alike: readonly Like[], turn: number) => void;

export interface ComparisonOptions {
  /** Skips packets that another node represents. */
  readonly only?: Only | undefined;
  /** Whether to ask each destination separately, even if others are equivalent. */
  readonly isSingle?: boolean;
  /** The limit of destinations that are not equivalent: if there are more, none is asked. */
  readonly most?: number;
}

/**
 * Sends one packet of each class to both sides. Packets are in one class if neither side can distinguish them:
 * destinations and ports are split at every value that occurs, sources at those that rules on the packet's path match.
 * If destinations differ only in their Service, one is asked for all of them; the counts include all.
 */
export function compareScenes(
  from: Scene,
  to: Scene,
  found: OnDifference,
  { only, isSingle = false, most = Infinity }: ComparisonOptions = {},
) {
  const asked = new Questions([wholeState(from.side), wholeState(to.side)]);
  const nodes = knownOwnAddresses([from, to]);
  const clients = new Clients([from, to], asked, nodes);
  const likeness = isSingle ? undefined : Likeness.of([from, to], asked, clients, nodes);
  const answersTo = healthAnswers(from, to);
  const counts = { classes: 0, unknown: 0, unknownOnOne: 0, reasons: new Set<string>() };
  const ask = (member: Member, group?: Group): boolean => {
    const target = targetOfMember(member);
    const answer = compareTarget([from, to], target, clients, nodes, answersTo);
    const isOfAll = group !== undefined && isFirm(answer);
    counts.classes += answer.classes * (isOfAll ? 1 + group.others.length : 1);
    counts.unknown += answer.unknown;
    counts.unknownOnOne += answer.unknownOnOne;
    for (const reason of answer.reasons) counts.reasons.add(reason);
    const alike = isOfAll && answer.differences.length > 0 ? likesOf(group) : none;
    for (const difference of answer.differences) found(difference, alike, target.turn);
    return isOfAll;
  };
  const groups = groupTargets(destinationsOf(asked, nodes, only, healthCheckKeys([from, to])), likeness);
  const isTooMuch = groups.length > most;
  for (const group of isTooMuch ? none : groups) {
    // If the result is uncertain, each destination may have its own reasons.
    if (!ask(group.first, group)) for (const each of group.others) ask(each);
  }
  return { ...counts, isTooMuch };
}

/** A destination, and the addresses that its packets involve. */
interface Member {
  readonly address: Address;
  readonly key: ProtocolPort;
  readonly turn: number;
  readonly addresses: readonly string[];
}

interface Group {
  readonly first: Member;
  readonly others: Member[];
}

function targetOfMember({ address, key, turn }: Member): TurnTarget {
  return { address, ...readPortKey(key), label: undefined, turn };
}

function likesOf({ first, others }: Group): readonly Like[] {
  return others.map((member) => {
    const insteadOf = (text: string) => member.addresses[first.addresses.indexOf(text)] ?? text;
    return { ...targetOfMember(member), insteadOf };
  });
}

/** Equivalent destinations, grouped under the first of them. */
function groupTargets(
  destinations: Iterable<readonly [Address, ReadonlySet<ProtocolPort>]>,
  likeness: Likeness | undefined,
): readonly Group[] {
  const groups = new Map<string, Group>();
  let turn = 0;
  for (const [address, keys] of destinations) {
    const describe = likeness?.at(address);
    for (const key of keys) {
      const { shape, addresses } = describe?.(key) ?? { shape: `${address.text} ${key}`, addresses: none };
      const member = { address, key, turn: turn++, addresses };
      const group = groups.get(shape);
      if (group) group.others.push(member);
      else groups.set(shape, { first: member, others: [] });
    }
  }
  return [...groups.values()];
}

/** The result of all packets to one destination. */
interface ComparedPackets extends ClassCounts {
  readonly differences: readonly Difference[];
}

function isFirm({ unknown, unknownOnOne, differences }: ComparedPackets): boolean {
  return unknown + unknownOnOne === 0 && differences.every(({ from, to }) => isOfLike(from) && isOfLike(to));
}

/** Whether the fate holds for a destination's like: it is known, or unknown as the slices of all of them fit one side only. */
function isOfLike({ verdict, reasons }: Fate): boolean {
  return (
    verdict !== 'unknown' ||
    reasons.every((each) => each.kind === 'missing-listing' && each.missing.kind === 'fitting-slices')
  );
}

function compareTarget(
  scenes: readonly [Scene, Scene],
  target: Destination,
  clients: Clients,
  nodes: ReadonlyMap<string, Address>,
  answersTo: ReturnType<typeof healthAnswers>,
): ComparedPackets {
  const { address } = target;
  const answer = {
    classes: 0,
    unknown: 0,
    unknownOnOne: 0,
    reasons: new Set<string>(),
    differences: [] as Difference[],
  };
  const sources = new Set<AskedSource>();
  const reached = new Map<string, Address>();
  const senders = [...clients.usual[address.family]];
  const done = new Set<string>();
  for (let at = 0; at < senders.length; at++) {
    const sender = senders[at] as PlacedSender;
    if (existsOn(nodes, sender, address)) {
      const packet = packetOf(sender, target);
      const fates = [scenes[0].evaluate(packet), scenes[1].evaluate(packet)] as const;
      answer.classes++;
      const [from, to] = fates;
      const answers = nodes.has(address.text) && !isLoopback(address) ? answersTo?.(packet, fates) : undefined;
      const isAnsweredAlike = !answers || isSameAnswer(answers.from, answers.to);
      const isOfConnection = isAnsweredAlike && endsAlike(fates, nodes) && areKnownAlike(fates, scenes);
      if (!isOfConnection || !workAlike(fates, scenes))
        answer.differences.push({ sender, packet, from, to, isOfConnection, answers });
      else {
        const open = scenes.map((scene, side) =>
          openReasons(fates[side] ?? from, scene).map((each) => reasonWords(each, address.family, scene)),
        );
        const sides = open.filter((reasons) => reasons.length > 0);
        if (sides.length === 2) answer.unknown++;
        if (sides.length === 1) answer.unknownOnOne++;
        for (const reason of sides.flat()) answer.reasons.add(reasonSentence(reason));
      }
      for (const fate of fates) {
        for (const value of fate.sources) sources.add(value);
        // An endpoint cannot answer a packet from its own address.
        for (const each of fate.endpoints) reached.set(each.address.text, each.address);
      }
    }
    // Rules on the way of one sender's packet may distinguish further senders.
    if (at === senders.length - 1) senders.push(...clients.toldApart(address.family, sources, reached, done));
  }
  return answer;
}

/** Finds what each side's kube-proxy answers to a packet that reaches the node itself; undefined if a dump, which shows no readiness, is a side. */
function healthAnswers({ side: old }: Scene, { side: fresh }: Scene) {
  if (old.kind === 'dump' || fresh.kind === 'dump') return undefined;
  const [ofOld, ofFresh] = [old, fresh].map((side) => {
    const find = healthCheckFinder(side);
    return ({ destination: address, port, protocol }: Packet, { verdict }: Fate): HealthAnswer | undefined => {
      const check = verdict === 'local' && protocol === 'tcp' ? find({ address, port }) : undefined;
      return check && healthAnswerOf(check, side);
    };
  });
  return (packet: Packet, [from, to]: readonly [Fate, Fate]): Answers => ({
    from: ofOld?.(packet, from),
    to: ofFresh?.(packet, to),
  });
}

/** The ports of health checks: not in every mode does a rule match them. */
function healthCheckKeys(scenes: readonly Scene[]): readonly ProtocolPort[] {
  return scenes.flatMap(({ side }) => (side.cluster?.healthChecks ?? []).map(({ port }) => portKey('tcp', port)));
}

/** The reasons why the packet's end, or the rest of its connection, is unknown. */
function openReasons(fate: Fate, { side: { routes } }: Scene): readonly Reason[] {
  if (fate.verdict === 'unknown' || (!routes.ipv4 && !routes.ipv6)) return fate.reasons;
  return fate
    .connection()
    .ways.flatMap(({ outcome }) => (outcome.kind === 'unknown' && isUndecided(outcome) ? outcome.reasons : []));
}

/** One address of each class, with ports that represent all its ports. */
function* destinationsOf(
  asked: Questions,
  nodes: ReadonlyMap<string, Address>,
  only: Only | undefined,
  ofNode: readonly ProtocolPort[],
): Generator<readonly [Address, ReadonlySet<ProtocolPort>]> {
  const { destinations, spans, ports: unbound } = asked;
  const known = [...[...destinations.values()].map(({ address }) => address), ...nodes.values()];
  const others = families.flatMap((family) =>
    representatives(family, spans, ({ text }) => destinations.has(text) || nodes.has(text)),
  );
  const free = asked.freePorts();
  const turns = { ipv4: 0, ipv6: 0 };
  const all = new Map([...known, ...others].map((each) => [each.text, each]));
  for (const address of [...all.values()].toSorted((a, b) => a.family.localeCompare(b.family))) {
    const isNode = nodes.has(address.text);
    if (only && !isNode && !only.addresses.has(address.text)) continue;
    const own = destinations.get(address.text);
    const named = [...(own?.ports ?? []), ...(isNode ? [...[...unbound.values()].flat(), ...ofNode] : [])];
    const keys = new Set(only && isNode ? named.filter((key) => only.ports.has(key)) : named);
    // An address that rules match only with certain ports behaves on all other ports like its neighbours.
    const isWhole = own?.isWhole !== false;
    // In kube-proxy's rules, a match on ports without an address only concerns the node's own addresses: elsewhere, one
    // port per chain is enough.
    if (isWhole && !isNode)
      for (const list of unbound.values()) keys.add(list[turns[address.family]++ % list.length] as ProtocolPort);
    if (isNode || isWhole) for (const key of free) keys.add(key);
    if (!own && !isNode) for (const key of asked.foreignPorts) keys.add(key);
    yield [address, keys];
  }
}

/** iptables rounds probabilities. */
const tolerance = 1e-6;

/** Whether a packet ends alike on both sides. The node's own addresses count as one source. */
export function endsAlike([from, to]: readonly [Fate, Fate], nodes: ReadonlyMap<string, Address>): boolean {
  const endOf = ({ verdict, endpoint, source }: Way): string => {
    const where = endpoint ? `${endpoint.address.text} ${endpoint.port}` : '';
    return isArrival(verdict) ? `${verdict} ${where} ${sourceWord(source, nodes)}` : verdict;
  };
  return isSameEnd(from.ways, to.ways, endOf, tolerance);
}

/** Whether both sides know how the packet ends, or lack the same facts to know it. Only manifests show which facts were given. */
function areKnownAlike(fates: readonly [Fate, Fate], scenes: readonly [Scene, Scene]): boolean {
  if (lackOtherEndpoints(fates, scenes)) return false;
  if (scenes.some(({ side }) => side.kind !== 'manifests')) return true;
  const [from, to] = fates.map(({ verdict }) => verdict !== 'unknown');
  return from === to;
}

/** Whether ends depend on endpoints that the sides would make from different fields, and that neither side or only one gives. */
export function lackOtherEndpoints(fates: readonly [Fate, Fate], scenes: readonly [Scene, Scene]): boolean {
  const missing = fates.flatMap(({ verdict, reasons }) =>
    verdict === 'unknown' ? reasons.flatMap((reason) => (reason.kind === 'missing-listing' ? reason.missing : [])) : [],
  );
  if (missing.some(({ kind }) => kind === 'fitting-slices')) return true;
  return (
    fates.every(({ verdict }) => verdict === 'unknown') &&
    missing.some((each) => each.kind === 'endpoint-slices' && !haveSameSources(each.service, scenes))
  );
}

function haveSameSources(service: string, scenes: readonly [Scene, Scene]): boolean {
  const [old, fresh] = scenes.map(({ side }) => side.written.get(service));
  return !old || !fresh || old === fresh || areMadeAlike(old, fresh);
}

/**
 * Whether the share of connections that may work is the same on both sides, as far as known. Without its routes, a side never
 * shows that a connection works.
 */
function workAlike([from, to]: readonly [Fate, Fate], scenes: readonly [Scene, Scene]): boolean {
  if (from.verdict === 'unknown' || scenes.every(({ side: { routes } }) => !routes.ipv4 && !routes.ipv6)) return true;
  const [before, after] = [workingShare(from, isArrival), workingShare(to, isArrival)];
  return before.least <= after.most + tolerance && after.least <= before.most + tolerance;
}

/** The source that receivers see: an address, or "node" for any of the node's own. */
export function sourceWord(source: Fate['source'], nodes: ReadonlyMap<string, Address>): string {
  return source === 'masqueraded' || isUnknownOwn(source) || nodes.has(source.text) ? 'node' : source.text;
}

const none: readonly never[] = [];
