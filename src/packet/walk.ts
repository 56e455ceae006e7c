import { isLoopback, type Address } from '../kernel/address.ts';
import { forwardingSysctls, sysctlOfLink } from '../kernel/sysctl.ts';
import {
  admitsLoopback,
  cameByBridge,
  decide,
  isLocal,
  newConnection,
  translate,
  transportOf,
  type Flow,
} from './flow.ts';
import { inOrder } from './order.ts';
import { circumstance } from './reason.ts';
import { unknown, type Unknown, type Verdict } from './packet.ts';
import { loopbackInterface, type RouteFound } from './routing/routing.ts';
import type { Hook, RouteDecision } from './step.ts';
import { natStations, type Visitors } from './visitors.ts';
import { checkReverse } from './way-back.ts';

/** How a packet ends on one way. */
export type End = Verdict | Unknown;

/** A packet that comes by an interface: to the node itself, or through it. */
export function arrive(flow: Flow, visitors: Visitors): End {
  const { destination } = flow;
  flow.output = '';
  return pass(flow, visitors, 'prerouting') ?? routeIn(flow, visitors, flow.destination.text !== destination.text);
}

/** `isMoved`: whether rules have just changed where it goes. */
function routeIn(flow: Flow, visitors: Visitors, isMoved: boolean): End {
  const { destination, input } = flow;
  if (isLoopback(destination) && input !== loopbackInterface && !decide(flow, () => admitsLoopback(flow, 'input'))) {
    return lose(flow, { kind: 'loopback-outside' });
  }
  // What the node sends to itself was routed when it left.
  const isOfSelf = input === loopbackInterface && decide(flow, () => isLocal(flow, destination));
  const way: RouteFound = isOfSelf ? { kind: 'local' } : findWay(flow, destination, flow.source, input);
  if (way.kind === 'local') {
    const lost = checkSender(flow);
    if (lost) return lost;
    report(flow, { kind: 'local' });
    return pass(flow, visitors, 'input') ?? receive(flow, visitors);
  }
  const forbidden = !forwards(flow) && !(isMoved && staysBridged(flow, way));
  if (way.kind === 'none' && !forbidden) return refuseRoute(flow, way.why);
  if (forbidden) return lose(flow, { kind: 'not-forwarding' });
  takeWay(flow, way);
  const lost = checkSender(flow) ?? checkHairpin(flow);
  if (lost) return lost;
  report(flow, { kind: 'out', interface: flow.output });
  return pass(flow, visitors, 'forward') ?? depart(flow, visitors, false);
}

/** A packet that a bridge carries between two of its ports, where rules see it (br_netfilter). */
export function cross(flow: Flow, visitors: Visitors): End {
  const { destination, input } = flow;
  flow.output = '';
  const before = pass(flow, visitors, 'prerouting');
  if (before) return before;
  if (flow.destination.text !== destination.text) return routeIn(flow, visitors, true);
  flow.output = input;
  report(flow, { kind: 'out', interface: input });
  return pass(flow, visitors, 'forward') ?? pass(flow, visitors, 'postrouting') ?? arrived(flow, 'forwarded');
}

/** IPv4 asks the interface that a packet came in by, IPv6 only whether the node forwards at all. */
function forwards({ family, routing, input }: Flow): boolean {
  const ofAll = routing.sysctl(forwardingSysctls[family]);
  const ofLink = family === 'ipv4' ? routing.sysctl(sysctlOfLink(input ?? '', 'forwarding')) : undefined;
  return (ofLink ?? ofAll) !== '0';
}

/**
 * Whether a bridge carries on by itself what rules have sent to another of its ports (br_nf_pre_routing_finish_ipv6). In IPv4, the
 * route that is looked up for it asks whether the node forwards.
 */
function staysBridged(flow: Flow, way: RouteFound): boolean {
  const isBack = way.kind === 'out' && way.hops.some(({ link }) => link !== undefined && link === flow.input);
  return flow.family === 'ipv6' && isBack && decide(flow, () => cameByBridge(flow));
}

/**
 * Where a packet goes: to the node itself, unless rules of routing ahead of the local table say otherwise. Where routes are not known, it leaves by
 * an interface that is not known.
 */
function findWay(
  flow: Flow,
  to: Address,
  from: Address | undefined,
  input: string | undefined,
  isRerouted = false,
): RouteFound {
  const { routing, mark, open } = flow;
  if (decide(flow, () => isLocal(flow, to)) && routing.isLocal(to) !== true) return { kind: 'local' };
  let found = routing.find({ to, from, mark, input, transport: isRerouted ? undefined : transportOf(flow) });
  while (found.kind === 'either') {
    const { reason, taken, passed } = found;
    // Where that leads is not known, even if rules do the same on both ways.
    for (const each of [taken, passed]) if (each.kind === 'unknown') open.push(each.reason);
    found = decide(flow, () => reason) ? taken : passed;
  }
  if (found.kind !== 'unknown') return found;
  open.push(found.reason);
  return { kind: 'out', hops: [] };
}

function takeWay(flow: Flow, way: RouteFound): void {
  const hops = way.kind === 'out' ? way.hops : [];
  flow.hop = hops.length > 1 ? hops[flow.choices.draw(hops.map(() => 1 / hops.length))] : hops[0];
  flow.output = way.kind === 'local' ? loopbackInterface : flow.hop?.link;
}

/** What a host learns whose packet no route takes: nothing, or by ICMP, of which UDP hears little (ip_error, icmp_err_convert). */
function refuseRoute(flow: Flow, why: 'no-route' | 'blackhole' | 'unreachable' | 'prohibit'): Verdict {
  report(flow, { kind: why });
  const { family, protocol, connection } = flow;
  if (why === 'blackhole') return 'dropped';
  // A bridge throws away what rules have sent nowhere (br_nf_pre_routing_finish_ipv6).
  const isTranslated = connection?.rewritten.has('destination') === true;
  if (family === 'ipv6' && isTranslated && decide(flow, () => cameByBridge(flow))) return 'dropped';
  return protocol === 'tcp' || (family === 'ipv6' && why === 'prohibit') ? 'refused' : 'dropped';
}

function checkSender(flow: Flow): End | undefined {
  const { input } = flow;
  const found = checkReverse(flow);
  if (found === undefined) return undefined;
  if (found === 'martian') return lose(flow, { kind: 'martian' });
  const isLost =
    found === 'reverse-path' ||
    !decide(flow, () => ({ ...found, fact: found.fact ?? `reverse ${flow.source.text} ${input ?? ''}` }));
  const back = flow.routing.interfaceOf(flow.source);
  return isLost ? lose(flow, { kind: 'reverse-path', input: input ?? '', back }) : undefined;
}

/** A bridge whose packets rules see sends them on itself, and not back by the port that they came in by (should_deliver). */
function checkHairpin(flow: Flow): End | undefined {
  const { input, output, routing, sender, destination, turn } = flow;
  if (turn === 'answer' || input !== output || input === undefined || sender.address.text !== destination.text)
    return undefined;
  if (routing.showsBridged(input) !== true) return undefined;
  const isHairpin = routing.isHairpin(input) ?? true;
  const ofPort = { ...circumstance('bridge-port', input), fact: `hairpin ${input}` };
  if (decide(flow, () => (isHairpin === 'mixed' ? ofPort : isHairpin))) return undefined;
  return lose(flow, { kind: 'no-hairpin', bridge: input });
}

/** A packet that leaves from the node itself, or that IPVS sends on. */
export function leave(flow: Flow, visitors: Visitors): End {
  const isSentOn = flow.server !== undefined;
  const way = findWay(flow, nextHop(flow), isSentOn ? undefined : flow.source, loopbackInterface);
  if (way.kind === 'none') {
    if (isSentOn && !flow.isOwn) return refuseRoute(flow, way.why);
    report(flow, { kind: way.why });
    // A program hears of it at once, but not of an answer.
    return flow.turn === 'first' ? 'refused' : 'dropped';
  }
  takeWay(flow, way);
  return pass(flow, visitors, 'output') ?? depart(flow, visitors, flow.output === loopbackInterface);
}

/** Routes a packet of the node's own again, after rules have changed where it goes, or its mark (ip_route_me_harder). */
function reroute(flow: Flow): End | undefined {
  const way = findWay(flow, nextHop(flow), flow.source, loopbackInterface, true);
  if (way.kind === 'none') {
    report(flow, { kind: way.why });
    // To connect, TCP waits for an answer whatever became of its packet.
    return flow.protocol === 'tcp' || flow.turn !== 'first' ? 'dropped' : 'refused';
  }
  takeWay(flow, way);
  return undefined;
}

/** A packet on its way out. One to the node's own address comes in again, by the loopback interface. */
function depart(flow: Flow, visitors: Visitors, isToSelf: boolean): End {
  if (!isToSelf && isLoopback(flow.source) && !decide(flow, () => admitsLoopback(flow, 'output'))) {
    return lose(flow, { kind: 'loopback-outside' });
  }
  if (isToSelf) flow.output = loopbackInterface;
  const end = pass(flow, visitors, 'postrouting');
  if (end) return end;
  if (!isToSelf) {
    report(flow, { kind: 'out', interface: flow.output });
    return isLoopback(flow.source) ? lose(flow, { kind: 'loopback-source' }) : arrived(flow, 'forwarded');
  }
  flow.input = loopbackInterface;
  return arrive(flow, visitors);
}

/** Real servers that are not reached by NAT get the packet with the destination that the client asked for. */
function nextHop({ server, endpoint, destination }: Flow): Address {
  return server && endpoint ? endpoint.address : destination;
}

/**
 * A packet that came to the node itself. A balancer or kube-proxy that listens there opens a connection of its own to an endpoint, which
 * leaves the node like any of the node's.
 */
function receive(flow: Flow, visitors: Visitors): End {
  if (flow.turn !== 'first') return 'local';
  const isOfListener = flow.steps.some(({ kind }) => kind === 'listener');
  const server = isOfListener ? undefined : visitors.findListener(flow);
  if (!server) return arrived(flow, 'local');
  if ('kind' in server) return server;
  const { endpoints } = server;
  if (!endpoints) return unknown(circumstance('listener', 'kube-proxy itself listens'));
  const chosen = endpoints[endpoints.length > 0 ? flow.choices.draw(endpoints.map(() => 1 / endpoints.length)) : -1];
  flow.steps.push({ kind: 'listener', server, count: endpoints.length, chosen });
  if (!chosen) return 'refused';
  const { address: destination, port } = chosen;
  const way = findWay(flow, destination, undefined, loopbackInterface);
  const sender = flow.routing.sourceBy(destination, way);
  const { address: source, candidates } = sender;
  Object.assign(flow, { isOwn: true, source, candidates, destination, port, mark: 0, input: '', endpoint: chosen });
  Object.assign(flow, { asked: chosen, sender, connection: { ...newConnection(), masqueraded: true } });
  return leave(flow, visitors);
}

/** The packet arrived; an endpoint does not answer one that has its own address as the source. */
function arrived(flow: Flow, otherwise: 'local' | 'forwarded'): Verdict {
  const { endpoint, source, routing, turn } = flow;
  if (!endpoint || turn !== 'first') return otherwise;
  const isOwn = endpoint.address.text === source.text && routing.isLocal(source) !== true;
  return isOwn ? lose(flow, { kind: 'own-address' }) : 'delivered';
}

function lose(flow: Flow, decision: Exclude<RouteDecision, { readonly kind: 'out' }>): Verdict {
  report(flow, decision);
  return 'dropped';
}

function report(flow: Flow, decision: RouteDecision): void {
  flow.steps.push({ kind: 'route', decision, destination: flow.destination });
}

/** Everything that sees packets at a hook, in order. Undefined if the packet goes on. */
function pass(flow: Flow, visitors: Visitors, hook: Hook): End | undefined {
  flow.hook = hook;
  const nat = natStations[hook];
  let isTracked = flow.turn === 'first' || (hook !== 'prerouting' && hook !== 'output');
  let isTranslated = flow.turn === 'first' || !nat;
  const wasDecided = !nat || !flow.connection || flow.connection.decided.has(nat.decides);
  // Rules at this hook go on seeing the interface of the first route, whatever the packet is routed by since (nf_hook_state).
  const seen = flow.output;
  let left = seen;
  const routeAgain = (): End | undefined => {
    const end = reroute(flow);
    left = flow.output;
    flow.output = seen;
    return end;
  };
  /** What the kernel itself does before what has that priority. */
  const before = (priority: number): End | undefined => {
    if (!isTracked && priority > trackingPriority) {
      isTracked = true;
      track(flow);
    }
    if (isTranslated || !nat || priority <= nat.priority) return undefined;
    isTranslated = true;
    return translate(flow, nat.decides) && hook === 'output' ? routeAgain() : undefined;
  };
  for (const { priority, natOrder, reroutes, visit } of inOrder(flow, visitors[hook])) {
    const lost = before(priority);
    if (lost) return lost;
    const { connection, destination, mark } = flow;
    // Of several nat chains, the first that rewrites decides.
    const isSettled = wasDecided || connection?.rewritten.has(nat.decides) === true;
    if (natOrder !== undefined && (isSettled || !connection)) continue;
    if (nat && priority > nat.priority) connection?.decided.add(nat.decides);
    flow.priority = priority;
    const decision = visit(flow);
    if (decision === 'sent-on') return leave(flow, visitors);
    if (decision !== 'accept' && decision !== 'return') return decision;
    const isMoved = flow.destination !== destination || (reroutes && flow.mark !== mark);
    const end = hook === 'output' && isMoved ? routeAgain() : undefined;
    if (end) return end;
  }
  const lost = before(Infinity);
  if (lost) return lost;
  if (nat) flow.connection?.decided.add(nat.decides);
  flow.output = left;
  return undefined;
}

/** Where connection tracking takes packets. */
const trackingPriority = -200;

/** Finds the connection of a packet that is not its first: in its zone, or not at all. What is no part of one is INVALID, or a new flow. */
function track(flow: Flow): void {
  const { connection, turn, zone, protocol } = flow;
  // A rule keeps it out.
  if (!connection) return;
  const isFound = flow.wasTracked && zone === (turn === 'answer' ? connection.zones.reply : connection.zones.original);
  const isPickedUp = turn === 'later' && protocol === 'tcp' && flow.isUnanswered;
  if (isFound && !isPickedUp) return;
  const isNew = protocol === 'udp' || (turn === 'later' && !flow.wasTracked);
  flow.connection = isNew ? newConnection() : undefined;
  flow.isUnanswered = true;
  flow.isInvalid = !isNew;
}
