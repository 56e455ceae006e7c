import { compareAddresses, isLoopback, unspecifiedIPv4, type Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import { proxyPortKey, type ProxyPort } from '../kernel/balancer/balancer.ts';
import { formatSocketAddress } from '../kernel/socket-address.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { KernelState } from '../kernel/state.ts';
import { forwardingSysctls } from '../kernel/sysctl.ts';
import { explore, type Choices } from './explore.ts';
import { admitsLoopback, decide, isInterface, isLocal, newConnection, type Flow, type NatHalf } from './flow.ts';
import { iptablesOf } from './iptables-rules.ts';
import { ipvsStations, type Knowledge } from './knowledge.ts';
import { anyOf } from './maybe.ts';
import { nftTablesOf } from './nft-rules.ts';
import { arrange, inOrder, type Ordered, type Visitor } from './order.ts';
import {
  sourceText,
  sumChances,
  unknown,
  type Assumption,
  type Decision,
  type Fate,
  type Packet,
  type ReachedEndpoint,
  type Unknown,
  type Verdict,
  type Way,
} from './packet.ts';
import type { AskedSource, Hook, RouteDecision } from './step.ts';
import { circumstance, reasonKey, unreadValue, type Reason } from './reason.ts';
import { loopbackInterface, routingOf, type Routing } from './routing.ts';
import { isUnknownOwn } from './own-address.ts';
import { runBaseChain, type RuleTable } from './run-chain.ts';

/**
 * What a node does with a packet. `prepare(state, knowledge)` makes an evaluator of a kernel's state and of what else is known of
 * the node; the evaluator takes a packet, the first of a connection, and returns its fate: verdict, endpoints with
 * probabilities, source in the end, and the steps with the rules that matched. Both are pure and know no tool's files:
 *
 *     const evaluate = prepare(side.state, knowAll(links));
 *     const { verdict, endpoints, source, steps } = evaluate({
 *       source, destination, protocol: 'tcp', port: 80, enters: { interface: 'eth0' },
 *     });
 *
 * Shapes are in packet.ts. A packet of the node itself has `enters: undefined`. Where something is not known, both its outcomes
 * are tried; if the packet ends differently, the verdict is unknown, and the fate has the reasons.
 */

export type Evaluator = (packet: Packet) => Fate;

/** Prepares a state for packets. Big chains and sets are hashed when the first packet gets to them. */
export function prepare(state: KernelState, knowledge: Knowledge): Evaluator {
  const worlds = {
    ipv4: prepareFamily(state, knowledge, 'ipv4'),
    ipv6: prepareFamily(state, knowledge, 'ipv6'),
  };
  return (packet) => {
    const world = worlds[packet.destination.family];
    const sources = new Set<AskedSource>();
    const run = (each: World) => sumUp(explore((choices) => walk(each, packet, choices), { chains: 0, sources }));
    const fate = run(world);
    if (fate.verdict !== 'unknown') return { ...fate, sources, otherwise: undefined };
    // Without the gaps, other questions come up.
    const open = { ...world, visitors: world.withoutGaps };
    const passed = run(open);
    const taken = new Map<string, Assumption>();
    const assumed =
      passed.verdict === 'unknown' ? run({ ...open, assume: assumeOf(packet, knowledge, taken) }) : passed;
    return {
      ...fate,
      sources,
      reasons: eachOnce([...fate.reasons, ...passed.reasons]),
      otherwise: assumed.verdict === 'unknown' ? undefined : { ...assumed, assumed: [...taken.values()] },
    };
  };
}

/** Answers what is likely of a packet, and adds it to what was `taken` for true. */
function assumeOf(packet: Packet, knowledge: Knowledge, taken: Map<string, Assumption>): Flow['assume'] {
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

function eachOnce(reasons: readonly Reason[]): readonly Reason[] {
  return [...new Map(reasons.map((reason) => [reasonKey(reason), reason])).values()];
}

/** What sees packets at each hook, and the balancer that takes some of those that come to the node itself. */
type Visitors = { readonly [H in Hook]: Ordered } & {
  readonly findProxyPort: (flow: Flow) => ProxyPort | Unknown | undefined;
};

interface World {
  readonly family: Family;
  readonly routing: Routing;
  readonly visitors: Visitors;
  /** The same if what is not shown lets all packets pass. */
  readonly withoutGaps: Visitors;
  readonly assume: Flow['assume'];
}

function prepareFamily(state: KernelState, knowledge: Knowledge, family: Family): World {
  const { otherVariant, gaps, listed } = knowledge;
  const seen = [
    ...iptablesOf(state.iptables, state.sets, family, knowledge).flatMap((table) => {
      // iptables-nft keeps its rules in tables that nft lists, too.
      const { listing, place } = listed.get(`${family} ${table.name}`) ?? { listing: 'iptables', place: 0 };
      return tableVisitors(table, listing, place);
    }),
    ...iptablesOf(otherVariant, state.sets, family, { ...knowledge, supposed: [], supposedChains: [] }).flatMap(
      (table) => tableVisitors(table, 'the other iptables', 0),
    ),
    ...nftTablesOf(state, family, knowledge).flatMap((table, at) => {
      const { listing, place } = listed.get(`${family} ${table.name}`) ?? { listing: 'nftables', place: at };
      return tableVisitors(table, listing, place);
    }),
    ...ipvsVisitors(state),
  ];
  const findProxyPort = indexProxyPorts(state, knowledge);
  const unseen = gaps
    .filter((gap) => gap.family === family)
    .flatMap(({ stations, reason, at }) =>
      stations.map(({ hook, priority }): Visitor => {
        // Before what is known to be there.
        const visit = (flow: Flow): Decision => {
          const isSeen =
            !at || decide(flow, () => anyOf(at.interfaces, (name) => isInterface(flow, at.end, name, '*')));
          return isSeen ? unknown(reason) : 'accept';
        };
        return { hook, priority: priority - 0.5, name: '', listing: '', place: 0, visit };
      }),
    );
  return {
    family,
    routing: routingOf(knowledge, state, family),
    visitors: { ...arrange([...seen, ...unseen]), findProxyPort },
    withoutGaps: { ...arrange(seen), findProxyPort },
    assume: undefined,
  };
}

/**
 * Where chains of type nat see packets, whatever their own priority: that orders them among themselves. On the way in they
 * decide a connection's destination, on the way out its source, each once.
 */
const natStations: { readonly [H in Hook]?: { readonly priority: number; readonly decides: NatHalf } } = {
  prerouting: { priority: -100, decides: 'destination' },
  output: { priority: -100, decides: 'destination' },
  input: { priority: 100, decides: 'source' },
  postrouting: { priority: 100, decides: 'source' },
};

function tableVisitors(table: RuleTable, listing: string, place: number): readonly Visitor[] {
  return table.bases
    .filter(({ isIdle }) => !isIdle)
    .map((base, at) => ({
      hook: base.hook,
      priority: (base.isNat ? natStations[base.hook]?.priority : undefined) ?? base.priority,
      natOrder: base.isNat ? base.priority : undefined,
      name: `${table.tool} ${table.name} ${base.chain}`,
      listing,
      // A table's chains are listed in the order of their making, too.
      place: place + at / (table.bases.length + 1),
      visit: (flow) => runBaseChain(flow, table, base),
    }));
}

function ipvsVisitors(state: KernelState): readonly Visitor[] {
  if (state.virtualServers.length === 0) return [];
  const keyOf = (protocol: string, { text }: Address, port: number): string => `${protocol} ${text} ${port}`;
  const servers = new Map(
    state.virtualServers.map((server) => [keyOf(server.protocol, server.address, server.port), server]),
  );
  const visit = (flow: Flow): Decision | 'sent-on' => {
    const protocol = flow.protocol.toUpperCase();
    // One of port 0 takes all ports.
    const find = (port: number) => servers.get(keyOf(protocol, flow.destination, port));
    const server = flow.server ? undefined : (find(flow.port) ?? find(0));
    if (!server) return 'accept';
    const choice = schedule(server);
    const chosen = choice?.servers[choice.servers.length > 0 ? flow.choices.draw(choice.probabilities) : -1];
    flow.steps.push({ kind: 'virtual-server', hook: flow.hook, server, chosen });
    if (!choice) return unknown(unreadValue(`scheduler ${server.scheduler}`));
    if (!chosen) return 'refused';
    flow.server = server;
    flow.endpoint = { address: chosen.address, port: chosen.port };
    if (chosen.forwarding === 'masquerade') {
      flow.destination = chosen.address;
      flow.port = chosen.port;
    }
    if (flow.routing.sysctl('net.ipv4.vs.conntrack') === '0') flow.connection = undefined;
    return decide(flow, () => isLocal(flow, chosen.address)) ? 'accept' : 'sent-on';
  };
  return ipvsStations.map((station) => ({ ...station, name: 'IPVS', listing: 'IPVS', place: 0, visit }));
}

/** Finds the port of the balancer that takes a packet which has come to the node itself. A dump does not show all of them. */
function indexProxyPorts({ proxyPorts }: KernelState, { lacksProxyPorts }: Knowledge): Visitors['findProxyPort'] {
  const ports = new Map(proxyPorts.map((port) => [proxyPortKey(port), port]));
  return ({ protocol, destination, port, asked }) => {
    // Rules have led it there.
    const isTranslated = asked.port !== port || asked.address.text !== destination.text;
    if (lacksProxyPorts && isTranslated) return unknown(circumstance('listener', 'kube-proxy itself listens'));
    const keyOf = (address: Address) => `${protocol.toUpperCase()} ${formatSocketAddress({ address, port })}`;
    return (
      ports.get(keyOf(destination)) ?? (destination.family === 'ipv4' ? ports.get(keyOf(unspecifiedIPv4)) : undefined)
    );
  };
}

/**
 * A packet that came to the node itself. A balancer that listens there opens a connection of its own to an endpoint, which leaves
 * the node like any of the node's.
 */
function receive(flow: Flow, visitors: Visitors): End {
  const isOfBalancer = flow.steps.some(({ kind }) => kind === 'proxy-port');
  const server = isOfBalancer ? undefined : visitors.findProxyPort(flow);
  if (!server) return arrived(flow, 'local');
  if ('kind' in server) return server;
  const { endpoints } = server;
  const chosen = endpoints[endpoints.length > 0 ? flow.choices.draw(endpoints.map(() => 1 / endpoints.length)) : -1];
  flow.steps.push({ kind: 'proxy-port', server, chosen });
  if (!chosen) return 'refused';
  const { address: source, candidates } = flow.routing.sourceTo(chosen.address);
  const { address: destination, port } = chosen;
  Object.assign(flow, { isOwn: true, source, candidates, destination, port, mark: 0, input: '', endpoint: chosen });
  flow.connection = { ...newConnection(), masqueraded: true };
  return leave(flow, visitors);
}

/** One way of a packet, from where it enters to where it ends. */
function walk({ family, routing, visitors, assume }: World, packet: Packet, choices: Choices): Way {
  const { enters, destination, protocol, port } = packet;
  const { address: source, candidates } = packet.source ? { address: packet.source } : routing.sourceTo(destination);
  const flow: Flow = {
    family,
    protocol,
    isOwn: enters === undefined,
    source,
    candidates,
    destination,
    port,
    asked: { address: destination, port },
    mark: 0,
    hook: 'prerouting',
    priority: 0,
    input: enters ? (enters.interface ?? routing.interfaceOf(source)) : '',
    output: '',
    connection: newConnection(),
    server: undefined,
    endpoint: undefined,
    routing,
    choices,
    steps: [],
    written: [],
    facts: new Map(),
    assume,
  };
  const end = enters ? arrive(flow, visitors) : leave(flow, visitors);
  const verdict = typeof end === 'object' ? 'unknown' : end;
  return {
    probability: 1,
    verdict,
    endpoint: verdict === 'delivered' ? flow.endpoint : undefined,
    source: flow.connection?.masqueraded ? 'masqueraded' : flow.source,
    steps: flow.steps,
    reasons: typeof end === 'object' ? [end.reason] : [],
  };
}

/** How a packet ends on one way. */
type End = Verdict | Unknown;

/** A packet that comes by an interface: to the node itself, or through it. */
function arrive(flow: Flow, visitors: Visitors): End {
  flow.output = '';
  const before = pass(flow, visitors, 'prerouting');
  if (before) return before;
  const { destination, family, routing } = flow;
  if (isLoopback(destination) && flow.input !== loopbackInterface && !decide(flow, () => admitsLoopback(flow))) {
    return lose(flow, 'loopback-outside');
  }
  if (decide(flow, () => isLocal(flow, destination))) {
    report(flow, { kind: 'local' });
    return pass(flow, visitors, 'input') ?? receive(flow, visitors);
  }
  if (routing.sysctl(forwardingSysctls[family]) === '0') return lose(flow, 'not-forwarding');
  flow.output = routing.interfaceOf(destination);
  report(flow, { kind: 'out', interface: flow.output });
  return pass(flow, visitors, 'forward') ?? depart(flow, visitors);
}

/** A packet that leaves from the node itself, or that IPVS sends on. */
function leave(flow: Flow, visitors: Visitors): End {
  const hop = nextHop(flow);
  flow.output = outputTo(
    flow,
    hop,
    decide(flow, () => isLocal(flow, hop)),
  );
  return pass(flow, visitors, 'output') ?? depart(flow, visitors);
}

/** A packet on its way out. One to the node's own address comes in again, by the loopback interface. */
function depart(flow: Flow, visitors: Visitors): End {
  const hop = nextHop(flow);
  const isOwn = decide(flow, () => isLocal(flow, hop));
  if (!isOwn && isLoopback(flow.source) && !decide(flow, () => admitsLoopback(flow))) {
    return lose(flow, 'loopback-outside');
  }
  flow.output = outputTo(flow, hop, isOwn);
  const end = pass(flow, visitors, 'postrouting');
  if (end) return end;
  if (!isOwn) {
    report(flow, { kind: 'out', interface: flow.output });
    return isLoopback(flow.source) ? lose(flow, 'loopback-source') : arrived(flow, 'forwarded');
  }
  flow.input = loopbackInterface;
  return arrive(flow, visitors);
}

function outputTo({ routing }: Flow, address: Address, isOwn: boolean): string | undefined {
  return isOwn ? loopbackInterface : routing.interfaceOf(address);
}

/** Real servers that are not reached by NAT get the packet with the destination that the client asked for. */
function nextHop({ server, endpoint, destination }: Flow): Address {
  return server && endpoint ? endpoint.address : destination;
}

/** The packet arrived; an endpoint does not answer one that has its own address as the source. */
function arrived(flow: Flow, otherwise: 'local' | 'forwarded'): Verdict {
  const { endpoint, source, routing } = flow;
  if (!endpoint) return otherwise;
  const isOwn = endpoint.address.text === source.text && routing.isLocal(source) !== true;
  return isOwn ? lose(flow, 'own-address') : 'delivered';
}

function lose(flow: Flow, kind: Exclude<RouteDecision['kind'], 'out'>): Verdict {
  report(flow, { kind });
  return 'dropped';
}

function report(flow: Flow, decision: RouteDecision): void {
  flow.steps.push({ kind: 'route', decision, destination: flow.destination });
}

/** Everything that sees packets at a hook, in order. Undefined if the packet goes on. */
function pass(flow: Flow, visitors: Visitors, hook: Hook): End | undefined {
  flow.hook = hook;
  const { connection } = flow;
  const nat = natStations[hook];
  const wasDecided = !nat || !connection || connection.decided.has(nat.decides);
  for (const { priority, natOrder, visit } of inOrder(flow, visitors[hook])) {
    // Of several nat chains, the first that rewrites decides.
    if (natOrder !== undefined && (wasDecided || connection.rewritten.has(nat.decides) || !flow.connection)) continue;
    if (nat && priority > nat.priority) connection?.decided.add(nat.decides);
    flow.priority = priority;
    const decision = visit(flow);
    if (decision === 'sent-on') return leave(flow, visitors);
    if (decision !== 'accept' && decision !== 'return') return decision;
  }
  if (nat) connection?.decided.add(nat.decides);
  return undefined;
}

function sumUp(ways: readonly Way[]): Omit<Fate, 'sources' | 'otherwise'> {
  const chances = sumChances(ways, (way) => way.verdict);
  // Delivered, even if most connections fail: the endpoints then say how many do not.
  const decisive = (['unknown', 'delivered'] as const).find((each) => chances.has(each));
  const verdict = decisive ?? likeliest(ways, (way) => chances.get(way.verdict) ?? 0).verdict;
  const reached = ways.flatMap(({ endpoint, source, probability }) =>
    endpoint ? [{ address: endpoint.address, port: endpoint.port, source, probability }] : [],
  );
  const keyOf = ({ address, port, source }: ReachedEndpoint): string => `${address.text} ${port} ${sourceText(source)}`;
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
    steps: way.steps,
    ways,
    reasons: eachOnce(ways.flatMap(({ reasons }) => reasons)),
  };
}

function likeliest<T>(items: readonly T[], weigh: (item: T) => number): T {
  // Sums of equal shares differ by their last bits.
  return items.reduce((best, each) => (weigh(each) > weigh(best) + 1e-9 ? each : best));
}

/** By what schedulers choose a real server for a new client, as long as no connections weigh on it. */
const schedulers: ReadonlyMap<string, 'chance' | 'weight' | 'heaviest'> = new Map([
  ...'rr lc dh'.split(' ').map((name) => [name, 'chance'] as const),
  ...'wrr wlc lblc lblcr sh sed nq mh twos'.split(' ').map((name) => [name, 'weight'] as const),
  // One of the heaviest: which one, the kernel's own order of them decides.
  ...'fo ovf'.split(' ').map((name) => [name, 'heaviest'] as const),
]);

/** The real servers that may be chosen, with their probabilities; undefined for a scheduler that kpc does not know. */
function schedule({ scheduler, realServers }: VirtualServer) {
  const by = schedulers.get(scheduler);
  const most = Math.max(...realServers.map(({ weight }) => weight));
  const servers = realServers.filter(({ weight }) => weight > 0 && (by !== 'heaviest' || weight === most));
  const shares = servers.map(({ weight }) => (by === 'weight' ? weight : 1));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return by && { servers, probabilities: shares.map((share) => share / total) };
}
