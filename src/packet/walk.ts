import { isForMany, isLinkLocal, isLinkLocalMulticast, isLoopback, type Address } from '../kernel/address.ts';
import { forwardingSysctls, ignoresEcho } from '../kernel/sysctls-and-modules.ts';
import {
  admitsLoopback,
  cameByBridge,
  decide,
  drawOne,
  isLocalAddress,
  isTcpReset,
  newConnection,
  trackingPriority,
  translate,
  transportOf,
  untouched,
  type Flow,
} from './flow.ts';
import { carry, checkPolicies } from './carrier.ts';
import { inOrder, type Visitors } from './visitors.ts';
import { iptablesPriorities } from '../kernel/iptables/iptables.ts';
import { circumstance } from './reason.ts';
import { isUnknownHost, unknown, type UnknownEnd, type Verdict } from './packet.ts';
import { loopbackInterface, type BridgeEnds, type RouteFound } from './routing/routing.ts';
import type { Hook, RouteDecision } from './step.ts';
import type { IpsecPolicy } from '../kernel/route/ipsec.ts';
import { checkReverse, forwardingSysctlOf, forwardsFrom } from './way-back.ts';

export type End = Verdict | UnknownEnd;

export function arrive(flow: Flow, visitors: Visitors): End {
  const { destination, input } = flow;
  flow.output = '';
  const lost = carry(flow, input, 'input', (outer) => arrive(outer, visitors));
  return (
    lost ?? pass(flow, visitors, 'prerouting') ?? routeIn(flow, visitors, flow.destination.text !== destination.text)
  );
}

function routeIn(flow: Flow, visitors: Visitors, isMoved: boolean): End {
  const { destination, input } = flow;
  const hasLoopback = isLoopback(destination) || isLoopback(flow.source);
  if (hasLoopback && input !== loopbackInterface && !decide(flow, () => admitsLoopback(flow, 'input'))) {
    return lose(flow, { kind: 'loopback-outside' });
  }
  // A packet from the node to itself was routed on the way out, and keeps that route (loopback_xmit).
  const isOfSelf = input === loopbackInterface && flow.isOwn && !flow.hop && !isMoved;
  const way: RouteFound = isOfSelf ? { kind: 'local' } : findWay(flow, destination, flow.source, input);
  const isOfMany = leadsToMany(destination, way);
  if (way.kind === 'local' || isOfMany) {
    const lost = checkSender(flow);
    if (lost) return lost;
    noteRoute(flow, { kind: 'local', isHeld: flow.routing.isLocal(destination) !== false });
    const end = pass(flow, visitors, 'input');
    // Programs on the node may accept UDP packets to a broadcast, multicast or anycast address. TCP packets to such an address are ignored,
    // and usually pings too.
    const isIgnored = isOfMany && flow.turn === 'first' && flow.protocol !== 'udp';
    return end ?? (isIgnored ? lose(flow, { kind: 'for-many' }) : receive(flow, visitors));
  }
  const forbidden = !forwards(flow, isMoved ? way : undefined) && !(isMoved && staysBridged(flow, way));
  if (way.kind === 'none' && !forbidden) return refuseRoute(flow, way.why, visitors);
  if (forbidden) return lose(flow, { kind: 'not-forwarding', sysctl: forwardingSysctlOf(flow, input ?? '') });
  takeWay(flow, way);
  const lost =
    checkSender(flow) ??
    (isMoved ? checkPorts(flow) : undefined) ??
    meetPolicies(flow, 'fwd') ??
    meetPolicies(flow, 'out');
  if (lost) return lost;
  if (flow.family === 'ipv6' && isLinkLocal(flow.source) && flow.output !== undefined && flow.output !== input)
    return refuseRoute(flow, 'not-neighbour', visitors);
  noteOut(flow, flow.output);
  return pass(flow, visitors, 'forward') ?? depart(flow, visitors, false);
}

function leadsToMany(to: Address, way: RouteFound): boolean {
  return isForMany(to) || (way.kind === 'out' && way.isToMany === true);
}

/** Takes a packet across a bridge that shows packets to rules (br_netfilter). */
export function cross(flow: Flow, visitors: Visitors): End {
  const { destination, input } = flow;
  flow.output = '';
  const before = pass(flow, visitors, 'prerouting');
  if (before) return before;
  if (flow.destination.text !== destination.text) return routeIn(flow, visitors, true);
  flow.output = input;
  const lost = input !== undefined && flow.turn === 'first' ? checkBridge(flow, input, 'apart') : undefined;
  if (lost) return lost;
  noteOut(flow, input);
  return pass(flow, visitors, 'forward') ?? pass(flow, visitors, 'postrouting') ?? arrived(flow, 'forwarded');
}

/**
 * Reports whether the node forwards the packet. For IPv4, the input interface's sysctl decides. For IPv6, the node's sysctl or the
 * interface's suffices. The interface is the input, or the output if a bridge routes a packet after rules `moved` it (ip6_rcv_core).
 */
function forwards(flow: Flow, moved: RouteFound | undefined): boolean {
  const { family, routing, input = '' } = flow;
  if (family === 'ipv4' || routing.sysctl(forwardingSysctls.ipv6) !== '0') return forwardsFrom(flow, input);
  const isRouted = moved?.kind === 'out' && decide(flow, () => cameByBridge(flow));
  const links = isRouted ? moved.hops.map(({ link }) => link) : [input];
  return links.some((link = '') => forwardsFrom(flow, link));
}

/** Reports whether a bridge still carries an IPv6 packet that rules redirected (br_nf_pre_routing_finish_ipv6). */
function staysBridged(flow: Flow, way: RouteFound): boolean {
  const isBack = way.kind === 'out' && way.hops.some(({ link }) => link !== undefined && link === flow.input);
  return flow.family === 'ipv6' && isBack && decide(flow, () => cameByBridge(flow));
}

/** Finds a packet's route. Routing rules may precede the local table. Without listed routes, the output interface is unknown. */
function findWay(
  flow: Flow,
  to: Address,
  from: Address | undefined,
  input: string | undefined,
  output?: string,
): RouteFound {
  const { routing, mark, open } = flow;
  if (decide(flow, () => isLocalAddress(flow, to)) && routing.isLocal(to) !== true) return { kind: 'local' };
  let found = routing.find({ to, from, mark, input, output, transport: transportOf(flow) });
  while (found.kind === 'either') {
    const { reason, taken, passed } = found;
    // Records unknown routes as a reason, even if rules treat packets on both routes alike.
    for (const each of [taken, passed]) if (each.kind === 'unknown') open.push(each.reason);
    found = decide(flow, () => reason) ? taken : passed;
  }
  if (found.kind !== 'unknown') return found;
  open.push(found.reason);
  return { kind: 'out', hops: [] };
}

function takeWay(flow: Flow, way: RouteFound): void {
  const hops = way.kind === 'out' ? way.hops : [];
  // Packets of a flow keep the next hop that its hash chose.
  const kept = hops.find((hop) => hop === flow.keptHop);
  flow.hop = kept ?? drawOne(flow, hops);
  flow.output = way.kind === 'local' ? loopbackInterface : flow.hop?.link;
}

/** Ends a packet without a route. The sender gets nothing, or an ICMP error that UDP mostly ignores (ip_error). */
function refuseRoute(
  flow: Flow,
  why: 'no-route' | 'blackhole' | 'unreachable' | 'prohibit' | 'not-neighbour',
  visitors: Visitors,
): End {
  noteRoute(flow, { kind: why });
  const { family, protocol, connection } = flow;
  if (why === 'blackhole') return 'dropped';
  // A bridge drops packets redirected to an address without a route (br_nf_pre_routing_finish_ipv6).
  const isTranslated = connection?.rewritten.has('destination') === true;
  if (family === 'ipv6' && isTranslated && decide(flow, () => cameByBridge(flow))) return 'dropped';
  return protocol === 'tcp' || why === 'prohibit' ? sendRefusal(flow, visitors) : 'dropped';
}

/** Sends the node's refusal. Routes and rules may stop the refusal, because it is a packet too (nf_send_unreach, nf_send_reset). */
function sendRefusal(flow: Flow, visitors: Visitors): End {
  const { turn, source: destination, routing, connection, steps } = flow;
  if (turn !== 'first') return 'refused';
  const way = routing.find({ to: destination, from: undefined, mark: 0, input: loopbackInterface });
  const { address: source, candidates } = routing.sourceBy(destination, way);
  const last = steps.at(-1);
  const isReset = last?.kind === 'rule' && last.action.kind === 'reject' && isTcpReset(last.action.with);
  const refusal: Flow = {
    ...flow,
    ...untouched(),
    turn: 'refusal',
    isOwn: true,
    protocol: isReset ? 'tcp' : 'icmp',
    source,
    candidates,
    destination,
    port: undefined,
    sourcePort: undefined,
    connection: connection && { ...connection, decided: new Set(['destination', 'source']) },
  };
  const end = leave(refusal, visitors);
  flow.refusal = refusal;
  if (end !== 'dropped' && end !== 'refused') return typeof end === 'object' ? end : 'refused';
  steps.push(...refusal.steps);
  return 'dropped';
}

function checkSender(flow: Flow): End | undefined {
  const { input } = flow;
  const found = checkReverse(flow);
  if (found === undefined) return undefined;
  if (found === 'martian') return lose(flow, { kind: 'martian' });
  const isLost =
    found === 'reverse-path' ||
    !decide(flow, () => ({ ...found, fact: found.fact ?? `reverse ${flow.source.text} ${input ?? ''}` }));
  const { routing, source } = flow;
  const back = routing.isLocal(source) === true ? loopbackInterface : routing.interfaceOf(source);
  return isLost ? lose(flow, { kind: 'reverse-path', input: input ?? '', back }) : undefined;
}

/** Checks whether a bridge carries a redirected packet, which a bridge with br_netfilter forwards (br_nf_pre_routing_finish). */
function checkPorts(flow: Flow): End | undefined {
  const { input, output, turn } = flow;
  if (turn === 'answer' || input !== output || input === undefined || input === loopbackInterface) return undefined;
  const ends = flow.sender.address.text === flow.destination.text ? 'itself' : 'any';
  return flow.routing.carries(input, ends) !== true && decide(flow, () => cameByBridge(flow))
    ? checkBridge(flow, input, ends)
    : undefined;
}

/** Drops a packet that a bridge does not carry, such as one between isolated ports, or one back to the port where it came in. */
export function checkBridge(flow: Flow, bridge: string, ends: BridgeEnds): End | undefined {
  const carries = flow.routing.carries(bridge, ends);
  if (typeof carries === 'string') return lose(flow, { kind: carries, bridge });
  return decide(flow, () => carries) ? undefined : lose(flow, { kind: 'no-hairpin', bridge });
}

export function leave(flow: Flow, visitors: Visitors): End {
  const isSentOn = flow.server !== undefined;
  const way = findWay(flow, nextHop(flow), isSentOn ? undefined : flow.source, loopbackInterface);
  if (way.kind === 'none') {
    if (isSentOn && !flow.isOwn) return refuseRoute(flow, way.why, visitors);
    noteRoute(flow, { kind: way.why });
    // A local program learns at once that its packet is lost, but not that an answer to it is lost.
    return flow.turn === 'first' ? 'refused' : 'dropped';
  }
  takeWay(flow, way);
  if (flow.turn === 'first' && flow.protocol === 'tcp' && leadsToMany(nextHop(flow), way)) {
    noteRoute(flow, { kind: 'for-many' });
    return 'refused';
  }
  if (!isSentOn && keepsInside(flow)) {
    noteRoute(flow, { kind: 'loopback-outside' });
    return flow.turn === 'first' ? 'refused' : 'dropped';
  }
  return (
    meetPolicies(flow, 'out') ??
    pass(flow, visitors, 'output') ??
    depart(flow, visitors, flow.output === loopbackInterface)
  );
}

/** Sends a message to a neighbour on a link. The message is not routed unless rules mark it (ndisc_send_skb). */
export function sendOn(link: string, flow: Flow, visitors: Visitors): End {
  Object.assign(flow, { output: link, hop: { link } });
  const end = pass(flow, visitors, 'output') ?? depart(flow, visitors, flow.output === loopbackInterface);
  const isThere = flow.hop?.link === link && flow.hop.gateway === undefined;
  return typeof end === 'object' || isThere ? end : 'dropped';
}

function sendOuter(flow: Flow, visitors: Visitors): End {
  if (!isUnknownHost(flow.destination)) return leave(flow, visitors);
  flow.output = flow.hop?.link;
  return meetPolicies(flow, 'out') ?? pass(flow, visitors, 'output') ?? depart(flow, visitors, false);
}

/** Applies IPsec policies. A sending program learns at once that a policy blocks its packet (ip_route_output_flow). */
function meetPolicies(flow: Flow, direction: IpsecPolicy['direction']): End | undefined {
  const met = checkPolicies(flow, direction);
  if (met !== 'blocked') return met;
  const isHeard = direction === 'out' && flow.isOwn && flow.turn === 'first' && flow.server === undefined;
  const end = lose(flow, { kind: 'encryption' });
  return isHeard ? 'refused' : end;
}

/** Reroutes an own packet after rules changed its destination or mark (ip_route_me_harder). */
function reroute(flow: Flow): End | undefined {
  if (isLinkLocalMulticast(flow.destination) || isUnknownHost(flow.destination)) return undefined;
  const to = nextHop(flow);
  // A packet to a link-local address stays on its link (rt6_need_strict).
  const link = to.family === 'ipv6' && isLinkLocal(to) ? flow.output : undefined;
  const way = findWay(flow, to, flow.source, loopbackInterface, link);
  if (way.kind !== 'none') takeWay(flow, way);
  const why = way.kind === 'none' ? way.why : keepsInside(flow) ? 'loopback-outside' : undefined;
  if (why === undefined) return undefined;
  noteRoute(flow, { kind: why });
  // A TCP program does not learn of the error, because connect waits for an answer.
  return flow.protocol === 'tcp' || flow.turn !== 'first' ? 'dropped' : 'refused';
}

/** Reports whether routing refuses to send out a packet with a loopback source (__mkroute_output). IPv6 checks this later. */
function keepsInside(flow: Flow): boolean {
  const { family, source, output } = flow;
  if (family !== 'ipv4' || output === loopbackInterface || !isLoopback(source)) return false;
  return !decide(flow, () => admitsLoopback(flow, 'output'));
}

/** Takes a packet on its way out. A packet to the node itself comes in again by the loopback interface. */
function depart(flow: Flow, visitors: Visitors, isToSelf: boolean): End {
  if (!isToSelf && isLoopback(flow.source) && !decide(flow, () => admitsLoopback(flow, 'output'))) {
    return lose(flow, { kind: 'loopback-outside' });
  }
  if (isToSelf) flow.output = loopbackInterface;
  const isDown = flow.hop?.down !== undefined || flow.routing.trait(flow.output, 'NO-CARRIER') === true;
  if (!isToSelf && isDown && flow.output !== undefined)
    return lose(flow, { kind: 'no-carrier', interface: flow.output });
  const gateway = isToSelf ? undefined : flow.hop?.gateway;
  if (gateway && isOwnNeighbour(flow, gateway)) return lose(flow, { kind: 'own-next-hop', gateway });
  const { source } = flow;
  // If postrouting changed the source, IPsec policies are checked again (nf_xfrm_me_harder).
  const end = pass(flow, visitors, 'postrouting') ?? (flow.source === source ? undefined : meetPolicies(flow, 'out'));
  if (end) return end;
  if (!isToSelf) {
    noteOut(flow, flow.output);
    if (isLoopback(flow.source)) return lose(flow, { kind: 'loopback-source' });
    return carry(flow, flow.output, 'output', (outer) => sendOuter(outer, visitors)) ?? arrived(flow, 'forwarded');
  }
  flow.input = loopbackInterface;
  return arrive(flow, visitors);
}

/** Reports whether the next hop is the node, which does not answer its own requests. A link-local address belongs to one link. */
function isOwnNeighbour({ routing, output = '' }: Flow, gateway: Address): boolean {
  // A link whose flags are not shown, such as cilium_host, may need no neighbour resolution.
  if (routing.places.isTunnel(output) || routing.trait(output, 'NOARP') !== false) return false;
  return isLinkLocal(gateway) ? routing.isOnLink(gateway, output) === true : routing.isLocal(gateway) === true;
}

/** Returns the address to route to. Real servers reached without NAT get the packet with the destination that the client asked for. */
function nextHop({ server, endpoint, destination }: Flow): Address {
  return server && endpoint ? endpoint.address : destination;
}

/** Delivers a packet to the node itself. A balancer or kube-proxy there opens its own connection to an endpoint. */
function receive(flow: Flow, visitors: Visitors): End {
  const lost = meetPolicies(flow, 'in');
  if (lost) return lost;
  if (flow.turn !== 'first') return 'local';
  if (flow.protocol === 'icmp' && flow.routing.sysctl(ignoresEcho[flow.family]) === '1')
    return lose(flow, { kind: 'echo-ignored' });
  const isOfListener = flow.steps.some(({ kind }) => kind === 'listener');
  const server = isOfListener ? undefined : visitors.findListener(flow);
  if (!server) return arrived(flow, 'local');
  if ('kind' in server) return server;
  const { endpoints } = server;
  if (!endpoints) return unknown(circumstance('listener'));
  const chosen = drawOne(flow, endpoints);
  flow.steps.push({ kind: 'listener', server: { ...server, endpoints }, chosen });
  if (!chosen) return 'refused';
  const { address: destination, port } = chosen;
  const way = findWay(flow, destination, undefined, loopbackInterface);
  const sender = flow.routing.sourceBy(destination, way);
  const { address: source, candidates } = sender;
  Object.assign(flow, { isOwn: true, source, candidates, destination, port, mark: 0, input: '', endpoint: chosen });
  Object.assign(flow, { asked: chosen, sender, connection: { ...newConnection(), masqueraded: true } });
  return leave(flow, visitors);
}

/**
 * Returns the verdict for a packet that has arrived. An endpoint cannot answer a packet from its own address. A packet that a route keeps
 * on the node does not reach its endpoint.
 */
function arrived(flow: Flow, otherwise: 'local' | 'forwarded'): Verdict {
  const { endpoint, source, routing, turn } = flow;
  if (!endpoint || turn !== 'first') return otherwise;
  if (otherwise === 'local' && routing.isLocal(endpoint.address) === false) return otherwise;
  const isOwn = endpoint.address.text === source.text && routing.isLocal(source) !== true;
  return isOwn ? lose(flow, { kind: 'own-address' }) : 'delivered';
}

function lose(flow: Flow, decision: Exclude<RouteDecision, { readonly kind: 'out' }>): Verdict {
  noteRoute(flow, decision);
  return 'dropped';
}

function noteOut(flow: Flow, link: string | undefined): void {
  const isOpen = typeof flow.routing.isLocal(flow.destination) !== 'boolean';
  noteRoute(flow, { kind: 'out', interface: link, isOpen });
}

function noteRoute(flow: Flow, decision: RouteDecision): void {
  flow.steps.push({ kind: 'route', decision, destination: flow.destination });
}

function pass(flow: Flow, visitors: Visitors, hook: Hook): End | undefined {
  flow.hook = hook;
  const at = iptablesPriorities.nat[hook];
  // nat chains decide a connection's destination on the way in, and its source on the way out.
  const nat = at === undefined ? undefined : ({ priority: at, decides: at < 0 ? 'destination' : 'source' } as const);
  let isTracked = flow.turn === 'first' || (hook !== 'prerouting' && hook !== 'output');
  let isTranslated = flow.turn === 'first' || !nat;
  const wasDecided = !nat || !flow.connection || flow.connection.decided.has(nat.decides);
  // Rules at this hook see the first route's interface, even after rerouting (nf_hook_state).
  const seen = flow.output;
  let left = seen;
  const routeAgain = (): End | undefined => {
    const end = reroute(flow);
    left = flow.output;
    flow.output = seen;
    return end;
  };
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
    // Of several nat chains, the first that rewrites the packet decides.
    const isSettled = wasDecided || connection?.rewritten.has(nat.decides) === true;
    if (natOrder !== undefined && (isSettled || !connection)) continue;
    if (nat && priority > nat.priority) connection?.decided.add(nat.decides);
    flow.priority = priority;
    const decision = visit(flow);
    if (decision === 'sent-on') return leave(flow, visitors);
    if (hearsOfLoss(flow, hook) && (decision === 'dropped' || decision === 'refused')) return 'refused';
    if (decision === 'refused') return sendRefusal(flow, visitors);
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

/** Reports whether sending fails with EPERM if rules stop the first packet (ip_local_out). TCP and SCTP do not report this error. */
function hearsOfLoss({ isOwn, turn, protocol }: Flow, hook: Hook): boolean {
  const isLeaving = hook === 'output' || hook === 'postrouting';
  return isLeaving && isOwn && turn === 'first' && (protocol === 'udp' || protocol === 'icmp');
}

/** Finds a later packet's connection in its zone. A packet without a connection is INVALID or starts a new one. */
function track(flow: Flow): void {
  const { connection, turn, zone, protocol } = flow;
  if (!connection || turn === 'refusal') return;
  const isFound = flow.wasTracked && zone === (turn === 'answer' ? connection.zones.reply : connection.zones.original);
  const isPickedUp = turn === 'later' && protocol === 'tcp' && flow.isUnanswered;
  if (isFound && !isPickedUp) return;
  const isNew = protocol === 'udp' || (turn === 'later' && !flow.wasTracked);
  flow.connection = isNew ? newConnection() : undefined;
  flow.isUnanswered = true;
  flow.isInvalid = !isNew;
}
