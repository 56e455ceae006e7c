import { compareAddresses, isLoopback, type Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Link } from '../kernel/link/link.ts';
import type { KernelState } from '../kernel/state.ts';
import { explore, type Choices } from './explore.ts';
import type { Flow, NatHalf } from './flow.ts';
import { iptablesOf } from './iptables-rules.ts';
import { nftTablesOf } from './nft-rules.ts';
import {
  sourceText,
  sumChances,
  type AskedSource,
  type Decision,
  type Fate,
  type Hook,
  type Packet,
  type ReachedEndpoint,
  type RouteDecision,
  type Verdict,
  type Way,
} from './packet.ts';
import { loopbackInterface, routingOf, type Routing } from './routing.ts';
import { runBaseChain, type RuleTable } from './run-chain.ts';

/**
 * What a node does with a packet. `prepare(state, links)` makes an evaluator of a kernel's state and of the node's own
 * links; the evaluator takes a packet, the first of a connection, and returns its fate: verdict, endpoints with
 * probabilities, source in the end, and the steps with the rules that matched. Both are pure and know no tool's files:
 *
 *     const evaluate = prepare(side.state, links);
 *     const { verdict, endpoints, source, steps } = evaluate({
 *       source, destination, protocol: 'tcp', port: 80, enters: { interface: 'eth0' },
 *     });
 *
 * Shapes are in packet.ts. A packet of the node itself has `enters: undefined`. Where a rule cannot be
 * understood, both its results are tried; if they differ in the end, the verdict is unknown, and the last step is the rule.
 */

export type Evaluator = (packet: Packet) => Fate;

/** Prepares a state for packets. Big chains and sets are hashed when the first packet gets to them. */
export function prepare(state: KernelState, links: readonly Link[]): Evaluator {
  const worlds = { ipv4: prepareFamily(state, links, 'ipv4'), ipv6: prepareFamily(state, links, 'ipv6') };
  return (packet) => {
    const world = worlds[packet.destination.family];
    const sources = new Set<AskedSource>();
    return { ...sumUp(explore((choices) => walk(world, packet, choices), { chains: 0, sources })), sources };
  };
}

/** What sees packets at a hook, those of lower priority first (linux/netfilter_ipv4.h). */
interface Visitor {
  readonly hook: Hook;
  readonly priority: number;
  /** Of chains of type nat, all of which the kernel enters at one priority: the order among them. */
  readonly natOrder?: number | undefined;
  readonly visit: (flow: Flow) => Decision | Redirection;
}

/** IPVS sends the packet out from the node, or leaves it where it is because the real server is the node's own. */
type Redirection = 'sent-on';

type Visitors = readonly Visitor[];

interface World {
  readonly family: Family;
  readonly routing: Routing;
  readonly visitors: Visitors;
}

function prepareFamily(state: KernelState, links: readonly Link[], family: Family): World {
  const tables = [...iptablesOf(state, family), ...nftTablesOf(state, family)];
  const visitors = [...tables.flatMap(tableVisitors), ...ipvsVisitors(state)].toSorted(
    (a, b) => a.priority - b.priority || (a.natOrder ?? 0) - (b.natOrder ?? 0),
  );
  return { family, routing: routingOf(links, state, family), visitors };
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

function tableVisitors(table: RuleTable): readonly Visitor[] {
  return table.bases.map((base) => ({
    hook: base.hook,
    priority: (base.isNat ? natStations[base.hook]?.priority : undefined) ?? base.priority,
    natOrder: base.isNat ? base.priority : undefined,
    visit: (flow) => runBaseChain(flow, table, base),
  }));
}

/** IPVS takes packets to its virtual servers after filter on the way in (ip_vs_ops4 in ip_vs_core.c). */
function ipvsVisitors(state: KernelState): readonly Visitor[] {
  if (state.virtualServers.length === 0) return [];
  const keyOf = (protocol: string, { text }: Address, port: number): string => `${protocol} ${text} ${port}`;
  const servers = new Map(
    state.virtualServers.map((server) => [keyOf(server.protocol, server.address, server.port), server]),
  );
  const visit = (flow: Flow): Decision | Redirection => {
    const protocol = flow.protocol.toUpperCase();
    // One of port 0 takes all ports.
    const find = (port: number) => servers.get(keyOf(protocol, flow.destination, port));
    const server = flow.server ? undefined : (find(flow.port) ?? find(0));
    if (!server) return 'accept';
    const choice = schedule(server);
    const chosen = choice?.servers[choice.servers.length > 0 ? flow.choices.draw(choice.probabilities) : -1];
    flow.steps.push({ kind: 'virtual-server', hook: flow.hook, server, chosen });
    if (!choice) return 'unknown';
    if (!chosen) return 'refused';
    flow.server = server;
    flow.endpoint = { address: chosen.address, port: chosen.port };
    if (chosen.forwarding === 'masquerade') {
      flow.destination = chosen.address;
      flow.port = chosen.port;
    }
    if (flow.routing.sysctl('net.ipv4.vs.conntrack') === '0') flow.connection = undefined;
    return flow.routing.isLocal(chosen.address) ? 'accept' : 'sent-on';
  };
  return [
    { hook: 'input', priority: 99, visit },
    { hook: 'output', priority: -98, visit },
  ];
}

/** One way of a packet, from where it enters to where it ends. */
function walk({ family, routing, visitors }: World, packet: Packet, choices: Choices): Way {
  const { enters, destination, protocol, port } = packet;
  const source = packet.source ?? routing.sourceTo(destination);
  const flow: Flow = {
    family,
    protocol,
    source,
    destination,
    port,
    mark: 0,
    hook: 'prerouting',
    priority: 0,
    input: enters ? (enters.interface ?? routing.interfaceOf(source)) : '',
    output: '',
    connection: { settled: new Set(), rewritten: new Set(), masqueraded: false },
    server: undefined,
    endpoint: undefined,
    routing,
    choices,
    steps: [],
  };
  const verdict = enters ? arrive(flow, visitors) : leave(flow, visitors);
  return {
    probability: 1,
    verdict,
    endpoint: verdict === 'delivered' ? flow.endpoint : undefined,
    source: flow.connection?.masqueraded ? 'masqueraded' : flow.source,
    steps: flow.steps,
  };
}

/** A packet that comes by an interface: to the node itself, or through it. */
function arrive(flow: Flow, visitors: Visitors): Verdict {
  flow.output = '';
  const before = pass(flow, visitors, 'prerouting');
  if (before) return before;
  const { destination, family, routing } = flow;
  if (isLoopback(destination) && flow.input !== loopbackInterface && !admitsLoopback(flow)) {
    return lose(flow, 'loopback-outside');
  }
  if (routing.isLocal(destination)) {
    report(flow, { kind: 'local' });
    return pass(flow, visitors, 'input') ?? arrived(flow, 'local');
  }
  if (routing.sysctl(forwardingSysctls[family]) === '0') return lose(flow, 'not-forwarding');
  flow.output = routing.interfaceOf(destination);
  report(flow, { kind: 'out', interface: flow.output });
  return pass(flow, visitors, 'forward') ?? depart(flow, visitors);
}

const forwardingSysctls: { readonly [F in Family]: string } = {
  ipv4: 'net.ipv4.ip_forward',
  ipv6: 'net.ipv6.conf.all.forwarding',
};

function admitsLoopback({ family, routing }: Flow): boolean {
  return family === 'ipv4' && routing.sysctl('net.ipv4.conf.all.route_localnet') === '1';
}

/** A packet that leaves from the node itself, or that IPVS sends on. */
function leave(flow: Flow, visitors: Visitors): Verdict {
  flow.output = outputTo(flow, nextHop(flow));
  return pass(flow, visitors, 'output') ?? depart(flow, visitors);
}

/** A packet on its way out. One to the node's own address comes in again, by the loopback interface. */
function depart(flow: Flow, visitors: Visitors): Verdict {
  const hop = nextHop(flow);
  const isLocal = flow.routing.isLocal(hop);
  if (!isLocal && isLoopback(flow.source) && !admitsLoopback(flow)) return lose(flow, 'loopback-outside');
  flow.output = outputTo(flow, hop);
  const end = pass(flow, visitors, 'postrouting');
  if (end) return end;
  if (!isLocal) {
    report(flow, { kind: 'out', interface: flow.output });
    return arrived(flow, 'forwarded');
  }
  flow.input = loopbackInterface;
  return arrive(flow, visitors);
}

function outputTo({ routing }: Flow, address: Address): string | undefined {
  return routing.isLocal(address) ? loopbackInterface : routing.interfaceOf(address);
}

/** Real servers that are not reached by NAT get the packet with the destination that the client asked for. */
function nextHop({ server, endpoint, destination }: Flow): Address {
  return server && endpoint ? endpoint.address : destination;
}

/** The packet arrived; an endpoint does not answer one that has its own address as the source. */
function arrived(flow: Flow, otherwise: 'local' | 'forwarded'): Verdict {
  const { endpoint, source, routing } = flow;
  if (!endpoint) return otherwise;
  const isOwn = endpoint.address.text === source.text && !routing.isLocal(source);
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
function pass(flow: Flow, visitors: Visitors, hook: Hook): Verdict | undefined {
  flow.hook = hook;
  const { connection } = flow;
  const nat = natStations[hook];
  const wasSettled = !nat || !connection || connection.settled.has(nat.decides);
  for (const { hook: at, priority, natOrder, visit } of visitors) {
    if (at !== hook) continue;
    // Of several nat chains, the first that rewrites decides.
    if (natOrder !== undefined && (wasSettled || connection.rewritten.has(nat.decides))) continue;
    if (nat && priority > nat.priority) connection?.settled.add(nat.decides);
    flow.priority = priority;
    const decision = visit(flow);
    if (decision === 'sent-on') return leave(flow, visitors);
    if (decision !== 'accept' && decision !== 'return') return decision;
  }
  if (nat) connection?.settled.add(nat.decides);
  return undefined;
}

function sumUp(ways: readonly Way[]): Omit<Fate, 'sources'> {
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
