import { compareAddresses, loopbackAddresses, unusableAs, type Address } from '../kernel/address.ts';
import type { KernelState } from '../kernel/state.ts';
import { arrivalOf, followConnection, linksIn, reasonOfInput } from './answer.ts';
import { explore, unknownWay, type Choices } from './explore.ts';
import { decide, isLocalAddress, newConnection, transportOf, untouched, wayOf, type Flow } from './flow.ts';
import type { Knowledge } from './knowledge.ts';
import {
  interfaceOf,
  isUnknownOwn,
  sourceText,
  sumChances,
  type Supposition,
  type Connection,
  type Fate,
  type KnownFate,
  type Packet,
  type ReachedEndpoint,
  type Way,
} from './packet.ts';
import { reasonKey, type Reason } from './reason.ts';
import { doubtOfRefusal } from './refusal.ts';
import { loopbackInterface } from './routing/routing.ts';
import type { AskedSource } from './step.ts';
import { prepareFamily, type World } from './visitors.ts';
import { arrive, checkBridge, cross, leave, type End } from './walk.ts';
import { checkReverse } from './way-back.ts';

/**
 * Decides what a node does with a packet. `prepareEvaluator(state, knowledge)` makes an evaluator of first packets from a kernel's state
 * and other knowledge about the node. The fate has the verdict, endpoints with probabilities, the final source, and the steps with the
 * rules that matched. Both functions are pure and do not know the format of any tool's files:
 *
 *     const evaluate = prepareEvaluator(side.state, knowledge);
 *     const { verdict, endpoints, source, steps } = evaluate({
 *       source, destination, protocol: 'tcp', port: 80, enters: { interface: 'eth0' },
 *     });
 *
 * The types are in packet.ts. A packet from the node itself has `enters: undefined`. If something is unknown, both possibilities are
 * tried. If they end differently, the verdict is unknown, and the fate has the reasons.
 */

export interface Evaluator {
  (packet: Packet): Fate;
  /**
   * Where routes lead for an address. `here`: to a host behind one of the node's links. `nowhere` includes the node's own addresses.
   * Undefined if no routes are listed.
   */
  readonly placeOf: (address: Address) => 'here' | 'out' | 'nowhere' | undefined;
  /** Whether the address is in the network of a link that leads to other hosts, rather than to the node's pods. */
  readonly isNeighbour: (address: Address) => boolean;
}

export function prepareEvaluator(state: KernelState, knowledge: Knowledge): Evaluator {
  const worlds = {
    ipv4: prepareFamily(state, knowledge, 'ipv4'),
    ipv6: prepareFamily(state, knowledge, 'ipv6'),
  };
  const placeOf: Evaluator['placeOf'] = (address) => {
    const { isListed, isLocal, hopTo, places } = worlds[address.family].routing;
    if (!isListed) return undefined;
    const hop = isLocal(address) === true ? undefined : hopTo(address);
    return hop === undefined ? 'nowhere' : places.isHere(hop) ? 'here' : 'out';
  };
  const evaluate = (asked: Packet): Fate => {
    const packet = withDestination(asked);
    const world = worlds[packet.destination.family];
    const sources = new Set<AskedSource>();
    const run = (each: World) =>
      settle(
        each,
        packet,
        explore((choices) => walk(each, packet, choices), sources),
      );
    const fate = run(world);
    if (fate.verdict !== 'unknown') return { ...fate, sources, otherwise: undefined };
    const open = { ...world, visitors: world.withoutGaps };
    const passed = run(open);
    const taken = new Map<string, Supposition>();
    const assumed =
      passed.verdict === 'unknown' ? run({ ...open, assume: assumeOf(packet, knowledge, taken) }) : passed;
    return {
      ...fate,
      sources,
      reasons: eachOnce([...fate.reasons, ...passed.reasons]),
      otherwise: assumed.verdict === 'unknown' ? undefined : { ...assumed, assumed: [...taken.values()] },
    };
  };
  const isNeighbour: Evaluator['isNeighbour'] = (address) =>
    worlds[address.family].routing.places.linksAround(address).length > 0;
  return Object.assign(evaluate, { placeOf, isNeighbour });
}

/** A program that sends to the unspecified address reaches its own node (__ip_route_output_key, tcp_v6_connect). */
function withDestination(packet: Packet): Packet {
  const { destination, source, enters } = packet;
  if (enters || unusableAs(destination) !== 'unspecified') return packet;
  const { family } = destination;
  return { ...packet, destination: (family === 'ipv4' ? source : undefined) ?? loopbackAddresses[family] };
}

function assumeOf(packet: Packet, knowledge: Knowledge, taken: Map<string, Supposition>): Flow['assume'] {
  const answer = likelyAnswers(packet, knowledge);
  return (reason) => {
    const isSo = answer(reason);
    if (isSo !== undefined) taken.set(reasonKey(reason), { reason, isSo });
    return isSo;
  };
}

function likelyAnswers(packet: Packet, { isLikelyOwn }: Knowledge): (reason: Reason) => boolean | undefined {
  return (reason) => {
    if (reason.kind === 'missing-listing') {
      const { missing } = reason;
      if (missing.kind === 'own-address')
        return missing.address.text === packet.destination.text && isLikelyOwn(packet);
      if (missing.kind === 'policy') return false;
      if (missing.kind === 'jump' || missing.kind === 'chain') return true;
      return missing.kind === 'own-addresses' && isUnknownOwn(packet.destination) ? true : undefined;
    }
    if (reason.kind !== 'circumstance') return undefined;
    return reason.of === 'rate' ? true : reason.of === 'excess' ? false : undefined;
  };
}

/** Returns the common fate of a packet that may meet any of these nodes; unknown if the nodes' fates differ. */
export function fateOnAnyOf(fates: ReadonlyMap<string, Fate>): Fate | undefined {
  const [first, ...others] = fates;
  if (!first) return undefined;
  const [node, fate] = first;
  const key = keyOfFate(fate);
  const other = others.find(([, each]) => keyOfFate(each) !== key);
  if (other) return openFate(fate, { kind: 'missing-flag', flag: '--node', nodes: [node, other[0]] });
  const isShared = fate.verdict === 'unknown' || others.length === 0;
  return isShared ? fate : { ...fate, connection: () => connectionOnAnyOf(fates) };
}

function keyOfFate({ otherwise, reasons, ...fate }: Fate): string {
  const seen = (source: Way['source']) => (source === 'masqueraded' || isUnknownOwn(source) ? 'node' : source.text);
  const keyOf = ({ verdict, endpoints, source, redirectedTo }: KnownFate) => [
    verdict,
    endpoints.map((each) => [each.address.text, each.port, seen(each.source), each.probability.toFixed(6)]),
    seen(source),
    redirectedTo,
  ];
  return JSON.stringify([keyOf(fate), reasons.map(reasonKey), otherwise && keyOf(otherwise)]);
}

function openFate({ source, sources }: Fate, reason: Reason): Fate {
  const way = unknownWay({ source }, [], [reason]);
  const outcome = { kind: 'unknown', reasons: way.reasons } as const;
  return {
    verdict: 'unknown',
    endpoints: [],
    source,
    arrival: () => undefined,
    steps: way.steps,
    ways: [way],
    connection: () => ({ kind: outcome.kind, ways: [{ way, outcome }] }),
    sources,
    reasons: way.reasons,
    otherwise: undefined,
  };
}

function connectionOnAnyOf(fates: ReadonlyMap<string, Fate>): Connection {
  const all = [...fates].map(([node, fate]) => ({ node, connection: fate.connection() }));
  const [first, ...others] = all;
  const keyOf = ({ ways }: Connection) => ways.map(({ outcome }) => outcome.kind).join();
  const other = others.find(({ connection }) => first && keyOf(connection) !== keyOf(first.connection));
  if (!first) return { kind: 'unknown', ways: [] };
  if (!other) return first.connection;
  const reason: Reason = { kind: 'missing-flag', flag: '--node', nodes: [first.node, other.node] };
  const outcome = { kind: 'unknown', reasons: [reason] } as const;
  return { kind: outcome.kind, ways: first.connection.ways.map(({ way }) => ({ way, outcome })) };
}

function eachOnce(reasons: readonly Reason[]): readonly Reason[] {
  const all = reasons.flatMap((reason) => [reason, ...(reason.also ?? [])]);
  return [...new Map(all.map((reason) => [reasonKey(reason), reason])).values()];
}

function walk(world: World, packet: Packet, choices: Choices): Way<Flow> {
  const { routing, visitors } = world;
  const { enters, port } = packet;
  const flow = firstFlow(world, packet, choices);
  const end = enters ? enter(world, flow, interfaceOf(enters, routing.isListed)) : leave(flow, visitors);
  const way = wayOf(flow, end);
  const { verdict } = way;
  const isMasqueraded = flow.connection?.masqueraded === true;
  return {
    ...way,
    endpoint: verdict === 'delivered' ? flow.endpoint : undefined,
    source: isMasqueraded ? 'masqueraded' : flow.source,
    masqueradedAs: isMasqueraded && routing.isListed && !flow.candidates ? flow.source : undefined,
    redirectedTo: verdict === 'local' && flow.port !== port ? flow.port : undefined,
    kept: () => keptOf(flow),
  };
}

function keptOf({ connection }: Flow): string {
  if (!connection) return 'untracked';
  const { zones, mark, rewritten } = connection;
  return [zones.original, zones.reply, mark, ...[...rewritten].toSorted()].join(' ');
}

function firstFlow({ family, routing, assume, isOfEveryNode }: World, packet: Packet, choices: Choices): Flow {
  const { enters, destination, protocol, port } = packet;
  const transport = transportOf({ protocol, port, sourcePort: undefined });
  const way = routing.find({ to: destination, from: packet.source, mark: 0, input: loopbackInterface, transport });
  const sender = packet.source ? { address: packet.source } : routing.sourceBy(destination, way);
  const flow: Flow = {
    family,
    protocol,
    isOwn: enters === undefined,
    turn: 'first',
    flags: undefined,
    source: sender.address,
    candidates: sender.candidates,
    destination,
    port,
    sourcePort: undefined,
    asked: { address: destination, port },
    isUnplaced: packet.isUnplaced === true,
    sender,
    ...untouched(),
    isInvalid: false,
    isUnanswered: false,
    wasTracked: true,
    entered: '',
    isBridged: false,
    isNamed: interfaceOf(enters, routing.isListed) !== undefined,
    connection: newConnection(),
    served: undefined,
    refusal: undefined,
    routing,
    choices,
    written: [],
    facts: new Map(),
    assume,
  };
  const isDoubted = flow.isOwn && !packet.source && routing.isLocal(destination) !== true && isOfEveryNode(destination);
  if (isDoubted && decide(flow, () => isLocalAddress(flow, destination)))
    Object.assign(flow, { source: destination, candidates: undefined, sender: { address: destination } });
  return flow;
}

/** Walks a packet from another host or a pod. A bridge may carry the packet to another port, possibly unseen by rules. */
function enter(world: World, flow: Flow, named: string | undefined): End {
  const { routing, visitors } = world;
  const { source, destination } = flow;
  const shown = named === undefined ? linksIn(world, source, destination) : [named];
  const all = [...new Set(shown.map((link) => routing.inputOf(link)))];
  // If this node's reverse-path filter drops a tunnel's packets, other nodes presumably use the tunnel only to reach this node's pods.
  const isRefused = (link: string | undefined): boolean =>
    link !== undefined &&
    routing.places.isTunnel(link) &&
    checkReverse({ ...flow, input: link, output: '' }) === 'reverse-path';
  const isToPod = routing.places.linkInside(destination) !== undefined;
  const open = all.length > 1 && !isToPod ? all.filter((link) => !isRefused(link)) : all;
  const links = open.length > 0 ? open : all;
  const input = links.find((link, at) => at === links.length - 1 || decide(flow, () => reasonOfInput(link)));
  const bridge = bridgeBetween(world, source, destination, input);
  Object.assign(flow, { input, entered: input, isBridged: bridge !== undefined });
  if (bridge === undefined) return arrive(flow, visitors);
  if (decide(flow, () => routing.showsBridged(bridge))) return cross(flow, visitors);
  flow.output = bridge;
  const lost = visitors.onLink(flow) ?? checkBridge(flow, bridge, 'apart');
  if (lost) return lost;
  flow.steps.push({ kind: 'route', decision: { kind: 'out', interface: bridge }, destination });
  flow.connection = undefined;
  return 'forwarded';
}

function bridgeBetween(
  { routing, isOfService }: World,
  source: Address,
  destination: Address,
  input: string | undefined,
): string | undefined {
  const { places } = routing;
  const isBeyond = routing.isLocal(destination) === false && !isOfService(destination);
  if (input === undefined || places.isBridge(input) !== true || !isBeyond) return undefined;
  const isPort = (to: Address): boolean => {
    const hop = routing.hopTo(to);
    return hop?.link === input && hop.gateway === undefined;
  };
  return source.text !== destination.text && isPort(source) && isPort(destination) ? input : undefined;
}

/** Sums up a packet's paths. Doubt about how a path ends makes the verdict unknown. */
function settle(world: World, packet: Packet, ways: readonly Way<Flow>[]): ReturnType<typeof sumUpWays> {
  const fate = sumUpWays(world, ways);
  const doubts = ways.flatMap((way) => world.doubtOfEnd(packet, way) ?? doubtOfRefusal(world, way) ?? []);
  return doubts.length === 0 ? fate : { ...fate, verdict: 'unknown', reasons: eachOnce([...fate.reasons, ...doubts]) };
}

function sumUpWays(world: World, ways: readonly Way<Flow>[]): Omit<Fate, 'sources' | 'otherwise'> {
  let connection: Connection | undefined;
  const chances = sumChances(ways, (way) => way.verdict);
  // The packet counts as delivered even if most connections fail; the endpoints' probabilities show the loss.
  const decisive = (['unknown', 'delivered'] as const).find((each) => chances.has(each));
  const verdict = decisive ?? likeliest(ways, (way) => chances.get(way.verdict) ?? 0).verdict;
  const reached = ways.flatMap(({ endpoint, source, masqueradedAs, probability }) =>
    endpoint ? [{ address: endpoint.address, port: endpoint.port, source, masqueradedAs, probability }] : [],
  );
  const keyOf = ({ address, port, source, masqueradedAs }: ReachedEndpoint): string =>
    `${address.text} ${port} ${sourceText(source)} ${masqueradedAs?.text ?? ''}`;
  const shares = sumChances(reached, keyOf);
  const endpoints = new Map(reached.map((each) => [keyOf(each), each]));
  const way = likeliest(
    ways.filter((each) => each.verdict === verdict),
    ({ probability }) => probability,
  );
  return {
    verdict,
    endpoints: [...endpoints]
      .map(([key, each]) => ({ ...each, probability: shares.get(key) ?? 0 }))
      .sort((a, b) => compareAddresses(a.address, b.address) || a.port - b.port),
    source: way.source,
    masqueradedAs: way.masqueradedAs,
    redirectedTo: way.redirectedTo,
    arrival: () => way.end && arrivalOf(world, way.end),
    steps: way.steps,
    ways,
    connection: () => (connection ??= followConnection(world, ways)),
    reasons: eachOnce(ways.flatMap(({ reasons }) => reasons)),
  };
}

function likeliest<T>(items: readonly T[], weigh: (item: T) => number): T {
  return items.reduce((best, each) => (weigh(each) > weigh(best) + 1e-9 ? each : best));
}
