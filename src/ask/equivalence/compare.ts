import { areMadeAlike } from '../../cluster/stale-slices.ts';
import { type Address, addressAfter, families, type Family, isLoopback } from '../../kernel/address.ts';
import { isSameEnd } from '../../packet/explore.ts';
import {
  isArrival,
  isUndecided,
  isUnknownOwn,
  workingShares,
  type Fate,
  type Packet,
  type Way,
} from '../../packet/packet.ts';
import { reasonKey, type Reason } from '../../packet/reason.ts';
import type { AskedSource } from '../../packet/step.ts';
import { healthAnswerOf, healthCheckFinder, isSameAnswer, type HealthAnswer } from '../../snapshot/health-checks.ts';
import { wholeState } from '../trace/knowledge.ts';
import { representatives } from '../trace/address-cells.ts';
import { packetOf } from '../trace/ask.ts';
import type { Destination } from '../trace/question.ts';
import type { Scene } from '../trace/scene.ts';
import { Likeness } from './likeness.ts';
import { portKey, readPortKey, type ProtocolPort, Questions } from './questions.ts';
import type { Only } from './representatives.ts';
import { Clients, existsOn, knownOwnAddresses, type PlacedSender } from './senders.ts';

export interface Difference {
  readonly sender: PlacedSender;
  readonly packet: Packet;
  readonly from: Fate;
  readonly to: Fate;
  /** Whether the first packets end alike and only later packets of their connections end differently. */
  readonly isOfConnection: boolean;
  readonly answers?: Answers | undefined;
}

export interface Answers {
  readonly from: HealthAnswer | undefined;
  readonly to: HealthAnswer | undefined;
}

export interface ClassCounts {
  /** The number of classes compared. One packet is sent for each class. */
  classes: number;
  /** The number of classes whose end is unknown: on both sides (`unknown`), or on only one side. */
  unknown: number;
  unknownOnOne: number;
  /** Whether both sides show what happens to a packet to a Service. */
  knowsServices: boolean;
  /** Reasons, keyed by what would settle them. */
  readonly reasons: Map<string, Unsettled>;
}

export function noCounts(): ClassCounts {
  return { classes: 0, unknown: 0, unknownOnOne: 0, knowsServices: false, reasons: new Map() };
}

export function addCounts(sum: ClassCounts, more: ClassCounts): void {
  sum.classes += more.classes;
  sum.unknown += more.unknown;
  sum.unknownOnOne += more.unknownOnOne;
  sum.knowsServices ||= more.knowsServices;
  for (const [key, reason] of more.reasons) sum.reasons.set(key, reason);
}

/** A reason why it is unknown how a packet ends on one side. */
export interface Unsettled {
  readonly reason: Reason;
  readonly family: Family;
  readonly scene: Scene;
}

export function unsettled(
  reasons: readonly Reason[],
  { destination: { family } }: Packet,
  scene: Scene,
): readonly Unsettled[] {
  return reasons.map((reason) => ({ reason, family, scene }));
}

function keyOfUnsettled({ reason, family, scene: { side } }: Unsettled): string {
  return `${side.kind} ${side.name} ${family} ${reasonKey(reason)}`;
}

/** A destination, with its position (`turn`) among all destinations. */
interface TurnTarget extends Destination {
  readonly turn: number;
}

export interface Like extends TurnTarget {
  /**
   * Maps an address that belongs to the other destination, such as its endpoint's address, to the matching address of this destination.
   * Leaves all other addresses unchanged.
   */
  readonly insteadOf: (address: string) => string;
}

/** Called with a difference, the equivalent destinations of other Services, and the `turn` of the destination that differs. */
type OnDifference = (difference: Difference, alike: readonly Like[], turn: number) => void;

export interface ComparisonOptions {
  readonly only?: Only | undefined;
  readonly isSingle?: boolean;
  /** The greatest number of destinations to trace, not counting equivalent ones. If there are more, none is traced. */
  readonly most?: number;
}

/**
 * Sends one packet of each class to both sides. Packets are in one class if neither side can distinguish them. To find the classes, kpc
 * splits destinations and ports at every value in the rules, and sources at values that rules on the packet's path match. If destinations
 * differ only in their Service, one represents them all, and the counts include all of them.
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
  const counts = noCounts();
  const ask = (member: Member, group?: Group): boolean => {
    const target = targetOfMember(member);
    const answer = compareTarget([from, to], target, clients, nodes, answersTo);
    const isOfAll = group !== undefined && isFirm(answer);
    addCounts(counts, { ...answer, classes: answer.classes * (isOfAll ? 1 + group.others.length : 1) });
    const alike = isOfAll && answer.differences.length > 0 ? likesOf(group) : none;
    for (const difference of answer.differences) found(difference, alike, target.turn);
    return isOfAll;
  };
  const reserved = new Set([from, to].flatMap(({ side }) => firstOfServices(side)));
  const shown = families.filter((family) => [from, to].some(({ asked: side }) => showsFamily(side, family)));
  const all = destinationsOf(asked, shown, nodes, only, healthCheckKeys([from, to]), reserved);
  const groups = groupTargets(all, likeness);
  const isTooMuch = groups.length > most;
  for (const group of isTooMuch ? none : groups) {
    // If the group's result is uncertain, each destination may have reasons of its own.
    if (!ask(group.first, group)) for (const each of group.others) ask(each);
  }
  return { ...counts, isTooMuch };
}

/** Reports whether a side shows anything of a family. The node's own addresses do not count, because a kernel has some in both families. */
function showsFamily(side: Scene['side'], family: Family): boolean {
  if (side.kind !== 'dump') return side.families.includes(family);
  const { coverage, state, ports } = side;
  const objects = [state.nftables, state.virtualServers, ports].flat();
  return coverage.iptables[family].length > 0 || objects.some((each) => each.family === family);
}

/** Returns the first address of each Service network. Service default/kubernetes has this address, even if the input lacks the Service. */
function firstOfServices({ cluster }: Scene['side']): readonly string[] {
  return (cluster?.serviceCidrs ?? []).map(({ network: { address } }) => addressAfter(address, 1).text);
}

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

interface ComparedPackets extends ClassCounts {
  readonly differences: readonly Difference[];
}

function isFirm({ unknown, unknownOnOne, differences }: ComparedPackets): boolean {
  return unknown + unknownOnOne === 0 && differences.every(({ from, to }) => isOfLike(from) && isOfLike(to));
}

/** Reports whether a fate also holds for equivalent destinations: if it is known, or unknown only because slices fit one side. */
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
  const answer = { ...noCounts(), differences: [] as Difference[] };
  const isOfService = scenes.some(({ side }) => {
    const ports = side.claims.servicesAt(address.text);
    return ports.some(({ port, protocol }) => port === target.port && protocol.toLowerCase() === target.protocol);
  });
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
      answer.knowsServices ||= isOfService && fates.every(({ verdict }) => verdict !== 'unknown');
      const [from, to] = fates;
      const answers = answersTo?.(packet, fates);
      const isAnsweredAlike = !answers || isSameAnswer(answers.from, answers.to);
      const isOfConnection = isAnsweredAlike && endsAlike(fates, nodes) && areKnownAlike(fates, scenes);
      if (!isOfConnection || !workAlike(fates, scenes))
        answer.differences.push({ sender, packet, from, to, isOfConnection, answers });
      else {
        const open = scenes.map((scene, side) => unsettled(openReasons(fates[side] ?? from, scene), packet, scene));
        const sides = open.filter((reasons) => reasons.length > 0);
        if (sides.length === 2) answer.unknown++;
        if (sides.length === 1) answer.unknownOnOne++;
        for (const reason of sides.flat()) answer.reasons.set(keyOfUnsettled(reason), reason);
      }
      for (const fate of fates) {
        for (const value of fate.sources) sources.add(value);
        for (const each of fate.endpoints) reached.set(each.address.text, each.address);
      }
    }
    // Rules on the path of this sender's packet may distinguish further senders.
    if (at === senders.length - 1) senders.push(...clients.toldApart(address.family, sources, reached, done));
  }
  return answer;
}

/** Returns how each side's kube-proxy answers a packet to the node itself. Undefined for a dump, which shows no readiness. */
export function healthAnswers({ side: old }: Scene, { side: fresh }: Scene) {
  if (old.kind === 'dump' || fresh.kind === 'dump') return undefined;
  const [ofOld, ofFresh] = [old, fresh].map((side) => {
    const find = healthCheckFinder(side);
    return ({ destination: address, port, protocol }: Packet, { verdict }: Fate): HealthAnswer | undefined => {
      const isReceived = verdict === 'local' && protocol === 'tcp' && !isLoopback(address);
      const check = isReceived ? find({ address, port }) : undefined;
      return check && healthAnswerOf(check, side);
    };
  });
  return (packet: Packet, [from, to]: readonly [Fate, Fate]): Answers => ({
    from: ofOld?.(packet, from),
    to: ofFresh?.(packet, to),
  });
}

/**
 * Returns a function that lists the health check ports at an address. No rule matches these ports in some modes, so rules do not show them.
 * The node's own addresses have all health check ports; a Service's addresses have only that Service's port.
 */
function healthCheckKeys(scenes: readonly Scene[]) {
  const compiled = scenes.filter(({ side }) => side.cluster !== undefined);
  const ofNode = compiled
    .flatMap(({ side }) => side.cluster?.healthChecks ?? [])
    .map(({ port }) => portKey('tcp', port));
  return ({ text }: Address, isNode: boolean): readonly ProtocolPort[] => {
    if (isNode) return ofNode;
    const own = compiled.flatMap(({ side }) => side.addresses.servicesAt(text));
    return own.flatMap(({ healthCheckNodePort: port }) => (port ? portKey('tcp', port) : none));
  };
}

function openReasons(fate: Fate, { side: { routes } }: Scene): readonly Reason[] {
  if (fate.verdict === 'unknown' || (!routes.ipv4 && !routes.ipv6)) return fate.reasons;
  return fate
    .connection()
    .ways.flatMap(({ outcome }) => (outcome.kind === 'unknown' && isUndecided(outcome) ? outcome.reasons : []));
}

function* destinationsOf(
  asked: Questions,
  shown: readonly Family[],
  nodes: ReadonlyMap<string, Address>,
  only: Only | undefined,
  healthChecksAt: ReturnType<typeof healthCheckKeys>,
  reserved: ReadonlySet<string>,
): Generator<readonly [Address, ReadonlySet<ProtocolPort>]> {
  const { destinations, spans, ports: unbound } = asked;
  const known = [...[...destinations.values()].map(({ address }) => address), ...nodes.values()];
  const others = shown.flatMap((family) =>
    representatives(family, spans, ({ text }) => destinations.has(text) || nodes.has(text) || reserved.has(text)),
  );
  const free = asked.freePorts();
  const turns = { ipv4: 0, ipv6: 0 };
  const all = new Map([...known, ...others].map((each) => [each.text, each]));
  const sent = [...all.values()].filter(({ family }) => shown.includes(family));
  for (const address of sent.toSorted((a, b) => a.family.localeCompare(b.family))) {
    const isNode = nodes.has(address.text);
    if (only && !isNode && !only.addresses.has(address.text)) continue;
    const own = destinations.get(address.text);
    const named = [
      ...(own?.ports ?? []),
      ...(isNode ? [...unbound.values()].flat() : []),
      ...healthChecksAt(address, isNode),
    ];
    const keys = new Set(only && isNode ? named.filter((key) => only.ports.has(key)) : named);
    // If rules match an address only together with ports, packets to the address's other ports end like packets to neighbouring addresses.
    const isWhole = own?.isWhole !== false;
    // In kube-proxy's rules, a match on ports alone applies only to the node's own addresses. For any other address, kpc therefore tries
    // only one port from each chain.
    if (isWhole && !isNode)
      for (const list of unbound.values()) keys.add(list[turns[address.family]++ % list.length] as ProtocolPort);
    if (isNode || isWhole) for (const key of free) keys.add(key);
    if (!own && !isNode) for (const key of asked.foreignPorts) keys.add(key);
    yield [address, keys];
  }
}

const tolerance = 1e-6;

/** Reports whether a packet ends alike on both sides. All of the node's own addresses count as the same source. */
export function endsAlike([from, to]: readonly [Fate, Fate], nodes: ReadonlyMap<string, Address>): boolean {
  const endOf = ({ verdict, endpoint, source }: Way): string => {
    const where = endpoint ? `${endpoint.address.text} ${endpoint.port}` : '';
    return isArrival(verdict) ? `${verdict} ${where} ${sourceWord(source, nodes)}` : verdict;
  };
  return isSameEnd(from.ways, to.ways, endOf, tolerance);
}

/**
 * Reports whether both sides know how the packet ends, or neither side does. Returns true if a side is not manifests, because such a side
 * does not show which facts were given.
 */
function areKnownAlike(fates: readonly [Fate, Fate], scenes: readonly [Scene, Scene]): boolean {
  if (lackOtherEndpoints(fates, scenes)) return false;
  if (scenes.some(({ side }) => side.kind !== 'manifests')) return true;
  const [from, to] = fates.map(({ verdict }) => verdict !== 'unknown');
  return from === to;
}

/** Reports whether a verdict is unknown because the input lacks endpoints, and the two sides would derive these from different fields. */
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
 * Reports whether the share of working connections may be the same on both sides, as far as known. A side without routes never shows that a
 * connection works.
 */
function workAlike([from, to]: readonly [Fate, Fate], scenes: readonly [Scene, Scene]): boolean {
  if (from.verdict === 'unknown' || scenes.every(({ side: { routes } }) => !routes.ipv4 && !routes.ipv6)) return true;
  const [before, after] = [workingShares(from, isArrival), workingShares(to, isArrival)];
  const mayBeAlike = (kind: 'working' | 'depending'): boolean =>
    before[kind] <= after[kind] + after.unknown + tolerance && after[kind] <= before[kind] + before.unknown + tolerance;
  return mayBeAlike('working') && mayBeAlike('depending');
}

/** Returns the source that receivers see: an address, or "node" for any address of the node itself. */
export function sourceWord(source: Fate['source'], nodes: ReadonlyMap<string, Address>): string {
  return source === 'masqueraded' || isUnknownOwn(source) || nodes.has(source.text) ? 'node' : source.text;
}

const none: readonly never[] = [];
