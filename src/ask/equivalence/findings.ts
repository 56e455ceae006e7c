import {
  about,
  listOf,
  number,
  objectOf,
  oneOf,
  optional,
  text as anyText,
  wholeNumber,
  type Schema,
  type Shaped,
} from '../../base/json/schema.ts';
import { nameSome } from '../../base/printable.ts';
import { detectLocalTraffic } from '../../cluster/plan-masquerade.ts';
import { serviceName, type ShownPort } from '../../cluster/model.ts';
import type { EndpointStatus } from '../../cluster/objects.ts';
import { externalPolicyOf, internalPolicyOf } from '../../cluster/plan-traffic.ts';
import { contains, isLoopback, joinHostPort, parseNetwork, type Address } from '../../kernel/address.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import {
  isArrival,
  lostShare,
  sumChances,
  workingShare,
  isUnknownOwn,
  type Fate,
  type Packet,
  type ReachedEndpoint,
} from '../../packet/packet.ts';
import { connectionWords } from '../trace/connection-words.ts';
import { lostJumpOf, lostJumpsOf, type LostJumps } from '../trace/lost-jump.ts';
import { addressKind } from '../trace/port-at.ts';
import { nodeSocketText } from '../trace/question.ts';
import { reasonSentence, reasonWords } from '../trace/reason-words.ts';
import { isLocalEndpoint, type Scene } from '../trace/scene.ts';
import { stopOf } from '../trace/stop.ts';
import { assumedPlace, isUndetectedPod } from '../trace/stop-words.ts';
import { causeIds, causes, type Cause, type CauseId } from './causes.ts';
import { findServiceCause } from './changed-services.ts';
import { compareScenes, sourceWord, type ComparisonOptions, type Difference, type Like } from './compare.ts';
import { ownAddresses, type PlacedSender } from './senders.ts';

/**
 * How a difference affects clients, the worst first: what worked no longer does; it may no longer work; it works in another way;
 * something newly works; or nothing works on either side, and only the failure differs.
 */
export const severities = ['breaks', 'unknown', 'changes', 'opens', 'fails-otherwise'] as const;

export type Severity = (typeof severities)[number];

const severitySchema = about(
  'breaks: what worked no longer does; unknown: whether it still does; changes: it works differently; opens: what failed now works',
  oneOf(...severities),
);

/** The number of endpoints, and the smallest and largest share of connections for one. */
const sharesSchema = objectOf({
  endpoints: wholeNumber(0),
  least: about('the least share of connections that one of them gets', number('a share', 0, 1)),
  most: number('a share', 0, 1),
});

export type EndpointShares = Shaped<typeof sharesSchema>;

const choiceSchema = objectOf({
  from: sharesSchema,
  to: sharesSchema,
  kept: about('endpoints that both choose from', wholeNumber(0)),
  source: optional(about('whose address receivers see, if that differs', objectOf({ from: anyText, to: anyText }))),
  lost: optional(
    about(
      'the share of connections that fail, if any do',
      objectOf({ from: number('a share', 0, 1), to: number('a share', 0, 1) }),
    ),
  ),
});

type Choice = Shaped<typeof choiceSchema>;

const destinationKinds = [
  'cluster-ip',
  'external-ip',
  'load-balancer-ip',
  'unknown',
  'node-port',
  'health-check',
  'ping',
  'unserved-port',
  'unserved-address',
  'node',
] as const;

/** The sender's place, or its relation to the Service. */
const senderKinds = [
  'outside',
  'other-node',
  'pod',
  'node',
  'endpoint',
  'other-endpoint',
  'removed-endpoint',
  'added-endpoint',
  'range',
] as const;

const senderSchema = objectOf({ kind: oneOf(...senderKinds), text: anyText });

export type EffectSender = Shaped<typeof senderSchema>;

export const effectFields = {
  target: about('what the packets are sent to', oneOf(...destinationKinds)),
  senders: listOf(senderSchema),
  from: anyText,
  to: anyText,
  severity: severitySchema,
  classes: wholeNumber(0),
  choice: optional(about('both sides deliver to endpoints, and choose them otherwise', choiceSchema)),
  example: objectOf({
    from: anyText,
    to: anyText,
    protocol: anyText,
    interface: optional(anyText),
    node: about('empty if the side that shows it names none', anyText),
    nodePort: optional(about('sent to this port of every node: the input names no address of one', wholeNumber(0))),
  }),
  shownBy: about('the side whose answer to the example explains the difference', oneOf('old', 'new')),
  lacks: optional(about('why the example is not known on that side, and what settles it', anyText)),
};

const effectSchema = objectOf(effectFields);

/** How packets end on both sides; the same for all these senders. */
export type Effect = Shaped<typeof effectSchema>;

/** A Divergence, with effects of this shape. */
export function findingWith<E>(effect: Schema<E>) {
  return objectOf({
    cause: oneOf(...causeIds),
    title: anyText,
    reasons: about('what each side does, in sentences', listOf(anyText)),
    /** Empty if nothing that works is lost or changed. */
    help: about('what to do, in sentences', listOf(anyText)),
    severity: severitySchema,
    services: about('"namespace/name", sorted', listOf(anyText)),
    servicePorts: about('"namespace/name:port", sorted', listOf(anyText)),
    effects: listOf(effect),
    classes: about('how many classes of packets', wholeNumber(0)),
    /** The traced nodes that have it; '' if there is no Node object. */
    nodes: listOf(anyText),
  });
}

/** All packet classes that differ for one reason. */
export type Divergence = Shaped<ReturnType<typeof findingWith<Effect>>>;

type Sent = Pick<Packet, 'destination' | 'protocol' | 'port'>;

interface Destination {
  readonly kind: (typeof destinationKinds)[number];
  readonly ports: readonly ShownPort[];
}

/** A packet and its end on one side. */
interface Met extends Pick<Difference, 'sender' | 'packet'> {
  readonly fate: Fate;
}

interface Gathered {
  readonly effects: Map<string, Effect>;
  /** By label. */
  readonly ports: Map<string, ShownPort>;
  readonly nodes: Set<string>;
  readonly reasons: Set<string>;
  readonly advice: Set<string>;
  /** The addresses on which only one side serves node ports. */
  readonly served: { readonly old: Set<string>; readonly new: Set<string> };
  /** The equivalent destinations whose Services were added last. */
  alike: readonly Like[];
}

/** Groups differences by cause, node by node. */
export class Findings {
  readonly #byCause = new Map<CauseId, Gathered>();

  /** Returns a callback for the differences between two sides of one node. */
  collector(from: Scene, to: Scene): (difference: Difference, alike?: readonly Like[]) => void {
    let explained: ReturnType<typeof explainer> | undefined;
    const node = nodeOf(from, to);
    return (difference, alike = none) => {
      const { explain, find } = (explained ??= explainer(from, to));
      const { cause, because, ports, effect: found } = explain(difference);
      // Across all Services of a cluster, differences with one cause must not be split by their number of endpoints.
      const effect = { ...found, choice: undefined, classes: 1 + alike.length };
      const known = this.#byCause.get(cause) ?? {
        effects: new Map(),
        ports: new Map(),
        nodes: new Set(),
        reasons: new Set(),
        advice: new Set(),
        served: { old: new Set(), new: new Set() },
        alike: none,
      };
      this.#byCause.set(cause, known);
      for (const port of ports) known.ports.set(port.label, port);
      // All senders to a destination have the same destinations beside it.
      for (const { address, port, protocol } of known.alike === alike ? none : alike)
        for (const each of find({ destination: address, port, protocol }).ports) known.ports.set(each.label, each);
      known.alike = alike;
      for (const reason of [...reasonsOf(cause, from, to), ...because]) known.reasons.add(reason);
      const { advice }: Cause = causes[cause];
      if (advice && needsAdvice(effect.severity)) {
        const { side } = to;
        const { family } = difference.packet.destination;
        const detectsPods = side.kind === 'dump' || detectLocalTraffic(side.settings, side.node, family) !== undefined;
        const text = typeof advice === 'string' ? advice : advice({ place: difference.sender.place, detectsPods });
        if (text !== undefined) known.advice.add(text);
      }
      known.nodes.add(node);
      addTo(known.effects, effect);
      if (cause !== 'node-port-addresses') return;
      const served = known.served[difference.from.endpoints.length > 0 ? 'old' : 'new'];
      for (const { text } of [difference.packet.destination, ...alike.map(({ address }) => address)]) served.add(text);
    };
  }

  /** Sorted by effect on clients, the worst first. */
  list(): readonly Divergence[] {
    const found = causeIds.flatMap((cause): readonly Divergence[] => {
      const known = this.#byCause.get(cause);
      if (!known) return [];
      const effects = [...known.effects.values()].sort(bySeverity);
      const { title }: Cause = causes[cause];
      return [
        {
          cause,
          title,
          reasons: [...known.reasons, ...servedWords(known.served)],
          help: [...known.advice],
          severity: effects[0]?.severity ?? 'fails-otherwise',
          services: [...new Set([...known.ports.values()].map(serviceName))].sort(),
          servicePorts: [...known.ports.keys()].sort(),
          effects,
          classes: effects.reduce((sum, { classes }) => sum + classes, 0),
          nodes: [...known.nodes].sort(),
        },
      ];
    });
    return found.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** The name of the node that both sides are of; '' if there is no Node object. */
export function nodeOf({ side: from }: Scene, { side: to }: Scene): string {
  return from.node?.name ?? to.nodeName;
}

function rank({ severity }: { readonly severity: Severity }): number {
  return severities.indexOf(severity);
}

function bySeverity(a: Effect, b: Effect): number {
  return rank(a) - rank(b) || b.classes - a.classes;
}

/** Merges a class into another one that ends alike. */
function addTo(effects: Map<string, Effect>, effect: Effect): void {
  const key = JSON.stringify([effect.target, effect.severity, effect.from, effect.to, effect.choice]);
  const known = effects.get(key) ?? { ...effect, senders: [], classes: 0 };
  const worst = rank(effect) < rank(known) ? effect : known;
  const added = effect.senders.filter(({ text }) => !known.senders.some((each) => each.text === text));
  const senders = added.length > 0 ? [...known.senders, ...added].sort(byText) : known.senders;
  effects.set(key, { ...worst, senders, classes: known.classes + effect.classes });
}

function byText({ text: a }: EffectSender, { text: b }: EffectSender): number {
  return a < b ? -1 : Number(a > b);
}

function servedWords(served: Gathered['served']): readonly string[] {
  return (['old', 'new'] as const).flatMap((side) => {
    const addresses = [...served[side]].sort().join(', ');
    return addresses === '' ? [] : [`Here only the ${side} side serves them on ${addresses}.`];
  });
}

/** Whether a client loses something, so that there is something to do. */
function needsAdvice(severity: Severity): boolean {
  return severity === 'breaks' || severity === 'changes' || severity === 'unknown';
}

function reasonsOf(cause: CauseId, from: Scene, to: Scene): readonly string[] {
  const { modes }: Cause = causes[cause];
  if (!modes || from.side.mode === to.side.mode) return [];
  return [from, to].flatMap(({ side: { mode } }) => (mode ? [`${modeFacts[mode].title} ${modes[mode]}.`] : []));
}

/** The cause of a difference, with sentences on it, and what it means for clients. */
interface Explained {
  readonly cause: CauseId;
  readonly because: readonly string[];
  readonly ports: readonly ShownPort[];
  readonly effect: Effect;
}

/** Functions that explain differences between two sides of one node, and find the destinations of packets. */
function explainer(...scenes: readonly [Scene, Scene]) {
  const nodes = ownAddresses(scenes);
  const find = destinationFinder(scenes, nodes);
  const served = new Set(scenes.flatMap(servedPorts));
  const known = scenes.map(({ side }) => ({ side, ports: new Set(side.ports.map(portText)) }));
  const [ignores, ignored] = scenes.map(({ side }) => side.settings?.ignoresExternalIPs === true);
  const changesExternalIPs = ignores !== ignored;
  const serviceCause = findServiceCause(...scenes);
  const lostJumps = scenes.map((scene) => ({ name: scene.side.name, jumps: lostJumpsOf(scene) }));
  const explain = (difference: Difference): Explained => {
    const { sender, packet, from, to } = difference;
    const target = find(packet);
    const ownEndpoint = ownEndpointOf(sender, target, known);
    const source = seenSources(from, to, packet, nodes);
    const shownBy = from.verdict === 'unknown' && to.verdict !== 'unknown' ? 'old' : 'new';
    const [fate, scene] = shownBy === 'old' ? [from, scenes[0]] : [to, scenes[1]];
    const isSameChoice = from.verdict !== to.verdict || chancesOf(from.endpoints) === chancesOf(to.endpoints);
    const effect: Effect = {
      target: target.kind,
      senders: [senderOf(sender, target, ownEndpoint)],
      from: fateWords({ sender, packet, fate: from }, isSameChoice, source?.from, scenes),
      to: fateWords({ sender, packet, fate: to }, isSameChoice, source?.to, [scenes[1], scenes[0]]),
      severity: severityOf(from, to, target),
      classes: 1,
      choice: choiceOf(from, to, source),
      example: {
        from: sender.address?.text ?? 'node',
        to: textOf(packet),
        protocol: packet.protocol,
        interface: sender.enters?.interface,
        node: scene.side.nodeName,
        nodePort: isUnknownOwn(packet.destination) ? packet.port : undefined,
      },
      shownBy,
      lacks: fate.verdict === 'unknown' ? lackWords(fate, packet, scene) : undefined,
    };
    const isServed = target.ports.some((each) => served.has(portText(each)));
    const cause = causeOf(difference, target, isServed, ownEndpoint !== undefined, changesExternalIPs, nodes);
    const ofServices = cause === 'not-understood' ? undefined : serviceCause(target.ports);
    // Policies choose among other endpoints, too, for a pod that reaches itself.
    if (ofServices && (cause !== 'hairpin' || ofServices.cause !== 'service-fields'))
      return { ...ofServices, ports: target.ports, effect };
    if (cause === 'connection') {
      const because = [from, to].flatMap((each, at) => failureWords(each, packet, scenes[at] ?? scene));
      return { cause, because, ports: target.ports, effect };
    }
    const lost = isOfService.has(target.kind) && cause !== 'not-understood' ? findLost(difference, lostJumps) : [];
    return { cause: lost.length > 0 ? 'lost-jump' : cause, because: lost, ports: target.ports, effect };
  };
  return { explain, find };
}

/** Why connections fail on a side, if they do. */
function failureWords(fate: Fate, { destination }: Packet, scene: Scene): readonly string[] {
  const { kind, reason } = connectionWords({ fate, target: { address: destination } }, scene);
  return reason === undefined || kind === 'works' || kind === 'unknown' ? [] : [`${nameOf(scene)}: ${reason}.`];
}

function nameOf({ side: { name } }: Scene): string {
  return name === '-' ? 'stdin' : name;
}

function textOf({ destination, protocol, port }: Sent): string {
  if (isUnknownOwn(destination)) return nodeSocketText({ port, protocol });
  return protocol === 'icmp' ? destination.text : joinHostPort(destination.text, port);
}

/** Destinations that Service rules handle. */
const isOfService: ReadonlySet<Destination['kind']> = new Set([
  'cluster-ip',
  'external-ip',
  'load-balancer-ip',
  'unknown',
  'node-port',
]);

/** Sentences on the jump that one side lacks and that keeps the packet from that side's Service rules. */
function findLost(
  { sender, packet, from, to }: Difference,
  [before, after]: readonly { readonly name: string; readonly jumps: LostJumps }[],
): readonly string[] {
  const target = { address: packet.destination };
  const [was, is] = [from, to].map((fate, at) => {
    const side = at === 0 ? before : after;
    const jump = side && lostJumpOf({ sender, target, fate }, side.jumps);
    return jump ? [`${side.name}: nothing in ${jump.from} jumps to ${jump.to}.`] : [];
  });
  return was && is && was.length !== is.length ? [...was, ...is] : [];
}

/** Why a packet's end is unknown on a side, and what settles it. */
function lackWords({ reasons }: Fate, { destination: { family } }: Packet, scene: Scene): string | undefined {
  const texts = reasons.map((reason) => reasonSentence(reasonWords(reason, family, scene)));
  return texts.length === 0 ? undefined : `${nameOf(scene)}: ${nameSome([...new Set(texts)], mostReasons)}`;
}

const mostReasons = 2;

function portText({ label, family }: ShownPort): string {
  return `${label} ${family}`;
}

/** Whether an endpoint that asks its own Service is one on both sides. */
type OwnEndpoint = 'kept' | 'removed' | 'added';

/** Undefined if the sender is no endpoint of the Services that it asks. Those that only one side has keep their endpoints. */
function ownEndpointOf(
  { address }: PlacedSender,
  { ports }: Destination,
  sides: readonly (Pick<Scene, 'side'> & { readonly ports: ReadonlySet<string> })[],
): OwnEndpoint | undefined {
  if (!address) return undefined;
  const asked = ports.map(portText);
  const [old, fresh] = sides.map(({ side, ports: all }) => ({
    isServed: side.addresses.servedAt(address.text).some((each) => asked.includes(portText(each))),
    hasPort: asked.some((each) => all.has(each)),
  }));
  if (!old?.isServed && !fresh?.isServed) return undefined;
  if (old?.hasPort && !old.isServed) return 'added';
  return fresh?.hasPort && !fresh.isServed ? 'removed' : 'kept';
}

/**
 * Describes the sender as precisely as the line needs, including a range of clients named in a Service, which kube-proxy only
 * applies to load balancer addresses.
 */
function senderOf(
  { words, address, place }: PlacedSender,
  { kind, ports }: Destination,
  own: OwnEndpoint | undefined,
): EffectSender {
  if (own) {
    const isElsewhere = place === 'other-node';
    const text = `an endpoint of the Service${isElsewhere ? ' on another node' : ''}`;
    if (own === 'kept') return { kind: isElsewhere ? 'other-endpoint' : 'endpoint', text };
    return { kind: `${own}-endpoint`, text: `${text} that is ${own}` };
  }
  const usual = { kind: place, text: words };
  if (kind !== 'load-balancer-ip' && kind !== 'unknown') return usual;
  const ranges = sourceRangesOf(ports);
  if (ranges.length === 0 || !address || place !== 'outside') return usual;
  const inside = rangesWith(address, ranges);
  const text = inside.length > 0 ? `a client in ${inside.join(' and ')}` : `a client outside of ${nameSome(ranges)}`;
  return { kind: 'range', text };
}

function sourceRangesOf(ports: readonly ShownPort[]): readonly string[] {
  return [...new Set(ports.flatMap(({ sourceRanges = [] }) => sourceRanges.map(({ text }) => text)))];
}

/** The ranges that contain the address. */
function rangesWith(address: Address, ranges: readonly string[]): readonly string[] {
  return ranges.filter((text) => {
    const network = parseNetwork(text);
    return network && contains(network, address);
  });
}

/** How the choice of endpoints differs; undefined if it does not, or if a side delivers to none. */
function choiceOf(from: Fate, to: Fate, source: Choice['source']): Choice | undefined {
  if (from.verdict !== 'delivered' || to.verdict !== 'delivered') return undefined;
  if (chancesOf(from.endpoints) === chancesOf(to.endpoints)) return undefined;
  const [before, after] = [
    sumChances(from.endpoints, formatSocketAddress),
    sumChances(to.endpoints, formatSocketAddress),
  ];
  const sharesOf = (chances: ReadonlyMap<string, number>): EndpointShares => {
    const values = [...chances.values()];
    return { endpoints: values.length, least: Math.min(...values), most: Math.max(...values) };
  };
  const kept = [...before.keys()].filter((endpoint) => after.has(endpoint)).length;
  const lost = { from: lossOf(from), to: lossOf(to) };
  const isLost = !isNearly(lost.from, 0) || !isNearly(lost.to, 0);
  return { from: sharesOf(before), to: sharesOf(after), kept, source, lost: isLost ? lost : undefined };
}

/** Finds packets' destinations among the Services of either side. `nodes`: the node's own addresses. */
function destinationFinder(
  scenes: readonly Scene[],
  nodes: ReadonlyMap<string, Address>,
): (packet: Sent) => Destination {
  const indexes = [...new Set(scenes.map(({ side }) => side.addresses))];
  return ({ destination, protocol, port }) => {
    const { text, family } = destination;
    const isOf = (each: ShownPort): boolean => each.protocol.toLowerCase() === protocol;
    const there = indexes.flatMap((index) => index.servicesAt(text));
    const own = there.filter((each) => each.port === port && isOf(each));
    const [first] = own;
    if (first) return { kind: addressKind(first, destination) ?? 'unknown', ports: own };
    if (!nodes.has(text)) {
      if (there.length === 0) return { kind: 'unserved-address', ports: none };
      return { kind: protocol === 'icmp' ? 'ping' : 'unserved-port', ports: there };
    }
    const listening = indexes.flatMap((index) => index.nodePortsAt(port)).filter((each) => each.family === family);
    const isAsked = (each: ShownPort): boolean => each.nodePort === port && isOf(each);
    const asked = listening.filter(
      (each) => isAsked(each) || (each.healthCheckNodePort === port && protocol === 'tcp'),
    );
    if (!asked[0]) return { kind: 'node', ports: none };
    return { kind: isAsked(asked[0]) ? 'node-port' : 'health-check', ports: asked };
  };
}

/** Service ports, by name and family, with an endpoint that may get connections. Rules name no other endpoints. */
function servedPorts({ side: { ports } }: Scene): readonly string[] {
  // A kernel only has endpoints in use.
  const serves = (status: EndpointStatus | undefined): boolean =>
    !status || status.ready || (status.serving && status.terminating);
  return ports.flatMap(({ label, family, endpoints = [] }) =>
    endpoints.some(({ status }) => serves(status)) ? [`${label} ${family}`] : [],
  );
}

function causeOf(
  { sender, packet, from, to, isOfConnection }: Difference,
  { kind, ports }: Destination,
  isServed: boolean,
  isOwnEndpoint: boolean,
  changesExternalIPs: boolean,
  nodes: ReadonlyMap<string, Address>,
): CauseId {
  if (from.verdict === 'unknown' || to.verdict === 'unknown') return 'not-understood';
  if (isOfConnection) return 'connection';
  if (kind === 'external-ip' && changesExternalIPs) return 'external-ips';
  const own = causeIds.find((each) => each === kind);
  if (own || kind === 'node') return own ?? ([from, to].some(isBalanced) ? 'proxy-port' : 'other');
  const delivers = new Set([from, to].map(({ endpoints }) => endpoints.length > 0));
  if (kind === 'node-port') {
    if (isLoopback(packet.destination)) return 'node-port-loopback';
    // One side leaves to the node itself what the other side's rules take, however it ends there.
    if ((from.verdict === 'local') !== (to.verdict === 'local')) return 'node-port-addresses';
  }
  const stops = new Set([from, to].map((fate) => stopOf(fate)?.kind));
  if (stops.has('stranger')) return 'other';
  if (!isServed) return 'no-endpoints';
  if (isOwnEndpoint && delivers.has(true)) {
    // Whether the other endpoints, apart from the sender, are chosen alike and see the same source.
    const [before, after] = [from, to].map(({ endpoints }) => {
      const others = endpoints.filter(({ address }) => address.text !== sender.address?.text);
      return chancesOf(others, (each) => `${formatSocketAddress(each)} as ${sourceWord(each.source, nodes)}`);
    });
    if (before === after) return 'hairpin';
  }
  const isSame = chancesOf(from.endpoints) === chancesOf(to.endpoints);
  const isSameChoice = !delivers.has(false) && isSame;
  if (!isSameChoice && kind === 'load-balancer-ip' && isShutOut(sender.address, ports)) return 'source-ranges';
  const policyOf = kind === 'cluster-ip' ? internalPolicyOf : externalPolicyOf;
  const isLocal = ports.map(policyOf).findLast((policy) => policy !== undefined) === 'Local';
  if (isLocal && !isSameChoice) return kind === 'cluster-ip' ? 'internal-policy-local' : 'external-policy-local';
  if (!delivers.has(false)) return isSame ? 'masquerade' : 'endpoints';
  return stops.has('source-ranges') ? 'source-ranges' : 'other';
}

/** Whether a load balancer's source ranges shut out the sender; or the node, which has no single address, if one side has no ranges. */
function isShutOut(sender: Address | undefined, ports: readonly ShownPort[]): boolean {
  const ranges = sourceRangesOf(ports);
  if (!sender) return ranges.length > 0 && ports.some(({ sourceRanges = [] }) => sourceRanges.length === 0);
  return ranges.length > 0 && rangesWith(sender, ranges).length === 0;
}

/** Whether a balancer on the node takes the packet. */
function isBalanced({ steps }: Fate): boolean {
  return steps.some((step) => step.kind === 'listener' && step.server.program === 'balancer');
}

/**
 * Compares the shares of connections that are not known to fail. If first packets arrive alike but at other endpoints, the share
 * proves nothing: one more or less endpoint that never answered breaks nothing.
 */
function severityOf(from: Fate, to: Fate, { kind }: Destination): Severity {
  if (from.verdict === 'unknown' || to.verdict === 'unknown') return 'unknown';
  const arrives = (verdict: Fate['verdict']): boolean =>
    verdict === 'delivered' || (verdict === 'local' && (kind === 'node' || kind === 'health-check'));
  const [before, after] = [workingShare(from, arrives).most, workingShare(to, arrives).most];
  if (isNearly(before, after)) return isNearly(before, 0) ? 'fails-otherwise' : 'changes';
  const isPart = !isNearly(before, 0) && !isNearly(after, 0);
  const isOfChoice = isNearly(lostShare(from), lostShare(to)) && chancesOf(from.endpoints) !== chancesOf(to.endpoints);
  if (isPart && isOfChoice) return 'changes';
  return before > after ? 'breaks' : 'opens';
}

function isNearly(share: number, other: number): boolean {
  return Math.abs(share - other) < 1e-6;
}

function chancesOf(
  endpoints: readonly ReachedEndpoint[],
  wordOf: (endpoint: ReachedEndpoint) => string = formatSocketAddress,
): string {
  return [...sumChances(endpoints, wordOf)].map(([where, chance]) => `${where} ${chance.toFixed(5)}`).join();
}

/** The address that receivers see on each side, if that is the only difference. */
function seenSources(from: Fate, to: Fate, packet: Packet, nodes: ReadonlyMap<string, Address>): Choice['source'] {
  const wordOf = (source: Fate['source']): string => {
    const word = sourceWord(source, nodes);
    if (word === 'node') return "the node's address";
    return word === packet.destination.text ? 'the address of the Service' : "the client's address";
  };
  const seenOn = (fate: Fate): string => {
    const seen = fate.endpoints.length > 0 ? fate.endpoints : [fate];
    return [...new Set(seen.map(({ source }) => wordOf(source)))].sort().join(' or ');
  };
  if (from.verdict !== to.verdict || !isArrival(from.verdict)) return undefined;
  const [before, after] = [seenOn(from), seenOn(to)];
  return before === after ? undefined : { from: before, to: after };
}

/** What happens to a packet, in words that fit all packets of its kind. The side's own scene comes first. */
function fateWords(
  met: Met,
  isSameChoice: boolean,
  source: string | undefined,
  scenes: readonly [Scene, Scene],
): string {
  const { fate } = met;
  const where = isSameChoice ? '' : whichEndpoints(fate, scenes);
  const seen = source === undefined ? '' : `, with ${source} as source`;
  return `${endWords[fate.verdict]}${where}${seen}${lossWords(fate)}${stopClause(met, scenes[0])}`;
}

/** Why a packet is stopped: because of the nodes that kpc chose for Pods, or because settings keep pods from being recognised. */
function stopClause({ sender, packet, fate }: Met, scene: Scene): string {
  const target = { ...packet, address: packet.destination, label: undefined };
  const isUndetected = stopOf(fate) && isUndetectedPod({ sender, target, fate }, scene);
  return `${assumedPlace(target, fate, scene)}${isUndetected ? ', as no setting tells kube-proxy which clients are pods' : ''}`;
}

/** Words for connections lost although their first packet arrives; '' if none are lost. */
function lossWords(fate: Fate): string {
  if (!isArrival(fate.verdict)) return '';
  const lost = lossOf(fate);
  if (isNearly(lost, 0)) return '';
  return isNearly(lost, 1) ? ', but the connection fails' : ', with some connections lost';
}

function lossOf(fate: Fate): number {
  return Math.max(0, 1 - workingShare(fate, isArrival).most);
}

const endWords: { readonly [V in Fate['verdict']]: string } = {
  delivered: 'delivered',
  refused: 'refused',
  dropped: 'dropped',
  local: 'left to the node itself',
  forwarded: 'left to routing',
  unknown: 'not known',
};

/** Describes the endpoints. A dump does not show where they are, but the other side may. The side's own scene comes first. */
function whichEndpoints({ endpoints }: Fate, scenes: readonly Scene[]): string {
  const placeOf = (each: ReachedEndpoint): boolean | undefined =>
    scenes.map((scene) => isLocalEndpoint(scene, each)).find((isLocal) => isLocal !== undefined);
  const places = new Set(endpoints.map(placeOf));
  if (places.has(undefined)) return ' to other endpoints';
  if (places.size > 1) return ' to endpoints on this and other nodes';
  return places.has(true) ? ' to endpoints on this node' : ' to endpoints on other nodes';
}

export interface ServiceEffects {
  /** The worst first, each with the Services it applies to ("namespace/name", sorted); none if it applies to no Service. */
  readonly effects: readonly (Effect & { readonly services: readonly string[] })[];
  /** Whether Pods that reach themselves through a Service are treated differently. Effects do not say that. */
  readonly touchesHairpins: boolean;
  /** How many classes of packets are unknown on both sides. */
  readonly unknown: number;
}

/** Sends one packet of each class to both sides, and returns the differences by Service. */
export function effectsByService(from: Scene, to: Scene, options?: ComparisonOptions): ServiceEffects {
  const { explain, find } = explainer(from, to);
  const ofServices = new Map<string, Map<string, Effect>>();
  let touchesHairpins = false;
  const gathered: { readonly turn: number; readonly ports: readonly ShownPort[]; readonly effect: Effect }[] = [];
  const collect = (difference: Difference, alike: readonly Like[], turn: number): void => {
    const { cause, ports, effect } = explain(difference);
    if (cause === 'hairpin') {
      touchesHairpins = true;
      return;
    }
    gathered.push({ turn, ports, effect });
    for (const { address, port, protocol, insteadOf, ...like } of alike) {
      const packet = { destination: address, port, protocol };
      const example = { ...effect.example, from: insteadOf(effect.example.from), to: textOf(packet) };
      gathered.push({ turn: like.turn, ports: find(packet).ports, effect: { ...effect, example } });
    }
  };
  const { unknown } = compareScenes(from, to, collect, options);
  // The first of those that end alike is the example.
  for (const { ports, effect } of gathered.sort((a, b) => a.turn - b.turn)) {
    for (const service of ports.length === 0 ? [''] : new Set(ports.map(serviceName))) {
      const known = ofServices.get(service) ?? new Map<string, Effect>();
      ofServices.set(service, known);
      addTo(known, effect);
    }
  }
  const effects = new Map<string, ServiceEffects['effects'][number]>();
  for (const [service, known] of [...ofServices].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    for (const effect of [...known.values()].sort(bySeverity)) {
      const key = JSON.stringify([effect.target, effect.senders, effect.from, effect.to, effect.choice]);
      const before = effects.get(key)?.services ?? [];
      effects.set(key, { ...effect, services: service === '' ? before : [...before, service] });
    }
  }
  return { effects: [...effects.values()].toSorted((a, b) => rank(a) - rank(b)), touchesHairpins, unknown };
}

const none: readonly never[] = [];
