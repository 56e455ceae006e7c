import { type Address, type Family, isBroadcast, isForMany, loopbackAddresses } from '../kernel/address.ts';
import type { MarkChange, MarkHolder, PortRange, SocketAddress } from '../kernel/ports-and-marks.ts';
import { isLinkNamed } from '../kernel/link/link.ts';
import type { CarrierProtocol } from '../kernel/link/tunnel.ts';
import type { TcpFlags } from '../kernel/nftables/table.ts';
import type { Transport, NextHop } from '../kernel/route/route.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Choices } from './explore.ts';
import { negateIf, circumstance, lacks, unreadValue, type Answer, type LostByBridge, type Reason } from './reason.ts';
import { isUnknownHost, isUnknownOwn, type PacketProtocol, type UnknownEnd, type Verdict, type Way } from './packet.ts';
import type { AskedSource, Hook, RuleStep, Step } from './step.ts';
import { loopbackInterface, type OwnSource, type Routing } from './routing/routing.ts';

export interface Flow {
  readonly family: Family;
  readonly protocol: PacketProtocol | CarrierProtocol;
  readonly isOwn: boolean;
  readonly turn: Turn;
  readonly flags: readonly string[] | undefined;
  source: Address;
  candidates: readonly Address[] | undefined;
  destination: Address;
  /** Destination port and source port. Undefined if the client's kernel chose the port. */
  port: number | undefined;
  sourcePort: number | undefined;
  asked: SocketAddress;
  /** Whether the asked address may belong to the node although the input does not show it there. */
  readonly isUnplaced: boolean;
  sender: OwnSource;
  mark: number;
  zone: number;
  readonly wasTracked: boolean;
  /** For a later packet: whether no answer has passed yet. */
  isUnanswered: boolean;
  /** Whether conntrack assigns the packet to no connection (INVALID). */
  isInvalid: boolean;
  hook: Hook;
  /** Priority of the chain or program that sees the packet now. */
  priority: number;
  /** The interface where the first packet came in, and whether a bridge carries the packet from there. */
  readonly entered: string | undefined;
  readonly isBridged: boolean;
  /** Whether the question names the input interface, so that the packet certainly passes the node. */
  readonly isNamed: boolean;
  /** Interfaces as rules see them: '' for none, undefined if unknown. */
  input: string | undefined;
  output: string | undefined;
  hop: NextHop | undefined;
  readonly keptHop: NextHop | undefined;
  connection: TrackedConnection | undefined;
  server: VirtualServer | undefined;
  served: { readonly server: VirtualServer; readonly chosen: RealServer | undefined } | undefined;
  endpoint: SocketAddress | undefined;
  refusal: Flow | undefined;
  readonly routing: Routing;
  /** Reasons why routes are unknown, including routes that no rule depends on. */
  readonly open: Reason[];
  readonly choices: Choices;
  readonly steps: Step[];
  /** Changes that rules made to sets since the connection's first packet, latest last. */
  readonly written: WrittenSet[];
  readonly facts: Map<string, boolean>;
  readonly assume: ((reason: Reason) => boolean | undefined) | undefined;
}

/** Returns the fields of a packet that no rule, route or program has touched yet. */
export function untouched() {
  const found = { hop: undefined, keptHop: undefined, server: undefined, endpoint: undefined };
  const seen: Pick<Flow, 'open' | 'steps'> = { open: [], steps: [] };
  return { mark: 0, zone: 0, hook: 'prerouting', priority: 0, input: '', output: '', ...found, ...seen } as const;
}

/**
 * A packet's role. `refusal`: the node's answer to the first packet. `carrier`: a tunnel's outer packet. `solicitation` and
 * `advertisement`: neighbour messages that precede an IPv6 packet.
 */
export type Turn = 'first' | 'answer' | 'later' | 'refusal' | 'carrier' | 'solicitation' | 'advertisement';

export function isReply({ turn }: Pick<Flow, 'turn'>): boolean {
  return turn === 'answer' || turn === 'refusal';
}

export function isBetweenNeighbours({ turn }: Pick<Flow, 'turn'>): boolean {
  return turn === 'solicitation' || turn === 'advertisement';
}

/** Reports whether the packet has these TCP flags. Records that a rule asked, because later packets have other flags. */
export function hasTcpFlags(flow: Flow, { mask, operator, flags }: TcpFlags): boolean {
  if (flow.protocol !== 'tcp') return false;
  flow.choices.asksFlags = true;
  const own = (flow.flags ?? handshake[flow.turn]).map((flag) => flag.toLowerCase());
  if (operator === 'any' || operator === 'none')
    return flags.some((flag) => own.includes(flag)) === (operator === 'any');
  const counted = mask ? own.filter((flag) => mask.includes(flag)) : own;
  return (flags.toSorted().join() === counted.toSorted().join()) === (operator === '==');
}

const handshake: { readonly [T in Turn]: readonly string[] } = {
  first: ['SYN'],
  answer: ['SYN', 'ACK'],
  later: ['ACK'],
  refusal: ['RST', 'ACK'],
  carrier: [],
  solicitation: [],
  advertisement: [],
};

export interface WrittenSet extends Pick<Flow, 'source' | 'destination' | 'port'> {
  /** Family, table and name of the set, such as "ip kube-proxy blocked"; only the name for an ipset. */
  readonly set: string;
  readonly fields: string | undefined;
  readonly isRemoval: boolean;
}

export type NatHalf = 'destination' | 'source';

interface TrackedConnection {
  /** The halves of the translation (destination, source) that NAT has decided. NAT decides each half once. */
  readonly decided: Set<NatHalf>;
  /** Halves that nat rules changed. Changes by IPVS do not count. */
  readonly rewritten: Set<NatHalf>;
  masqueraded: boolean;
  mark: number;
  zones: { readonly original: number; readonly reply: number };
  destination: { readonly address: Address; readonly port: number | undefined } | undefined;
  source: OwnSource | undefined;
}

export function newConnection(): TrackedConnection {
  return {
    decided: new Set(),
    rewritten: new Set(),
    masqueraded: false,
    mark: 0,
    zones: { original: 0, reply: 0 },
    destination: undefined,
    source: undefined,
  };
}

/**
 * Returns the test's answer. If the answer is unknown, tries yes and no, and repeats the same answer for the same fact on this path.
 * `step`: the rule that asks.
 */
export function decide(flow: Flow, test: () => Answer, step?: RuleStep): boolean {
  for (;;) {
    const answer = test();
    if (typeof answer === 'boolean') return answer;
    const decided = answer.fact === undefined ? undefined : flow.facts.get(answer.fact);
    if (decided !== undefined) return decided;
    const reason = step ? { ...answer, rule: step } : answer;
    const assumed = flow.assume?.(reason);
    const steps = (): readonly Step[] => (step ? [...flow.steps, step] : [...flow.steps]);
    const isSo = assumed ?? flow.choices.doubt(reason, steps) === (reason.likely ?? true);
    // If there is no fact to remember, the choice answers the whole test. If there is, the test runs again with the fact.
    if (reason.fact === undefined) return isSo;
    flow.facts.set(reason.fact, isSo);
  }
}

export function recallFact({ facts }: Flow, answer: Answer): Answer {
  if (typeof answer === 'boolean' || answer.fact === undefined) return answer;
  return facts.get(answer.fact) ?? answer;
}

/** Conntrack runs at this priority. Chains at this or a lower priority see packets without a connection. */
export const trackingPriority = -200;

export function trackedConnection({ connection, priority }: Flow): TrackedConnection | undefined {
  return priority > trackingPriority ? connection : undefined;
}

/** Connection states and statuses: laterStates come with an answer, trackedStates with tracking, and otherStates never occur here. */
const laterStates: ReadonlySet<string> = new Set('established seen-reply confirmed'.split(' '));
const trackedStates: ReadonlySet<string> = new Set('new established related'.split(' '));
const otherStates: ReadonlySet<string> = new Set('related expected dying'.split(' '));

/** Reports whether the connection has a state or status, named as in iptables and nft. */
export function hasState(flow: Flow, named: string): Answer {
  const connection = trackedConnection(flow);
  const state = named.toLowerCase().replace('_', '-');
  if (connection && flow.turn === 'refusal' && trackedStates.has(state)) return state === 'related';
  switch (state) {
    case 'new':
      return connection !== undefined && (flow.turn === 'first' || !isAnswered(flow));
    case 'invalid':
      return connection === undefined && (flow.priority < trackingPriority || flow.isInvalid);
    case 'untracked':
      return connection === undefined && flow.priority > trackingPriority && !flow.isInvalid;
    case 'assured':
      return connection !== undefined && isAssured(flow);
    case 'dnat':
      return connection?.rewritten.has('destination') === true;
    case 'snat':
      return connection?.rewritten.has('source') === true;
    default:
      if (laterStates.has(state)) return connection !== undefined && isAnswered(flow);
      return otherStates.has(state) ? false : unreadValue(named);
  }
}

/**
 * Reports whether the connection is ASSURED. A TCP connection becomes ASSURED when the client acknowledges the answer
 * (nf_conntrack_tcp_packet), a UDP or SCTP connection after a while.
 */
function isAssured(flow: Flow): Answer {
  if (flow.protocol === 'icmp' || !isAnswered(flow)) return false;
  if (flow.protocol !== 'tcp') return circumstance('memory', 'ASSURED');
  flow.choices.asksFlags = true;
  return flow.turn === 'later' || flow.flags !== undefined;
}

function isAnswered({ turn, isUnanswered }: Flow): boolean {
  return turn !== 'first' && !isUnanswered;
}

/** Interfaces that never carry packets to or from another host. */
const inner: ReadonlySet<string> = new Set([loopbackInterface, 'kube-ipvs0']);

/** Reports whether the input or output interface has this name. A trailing `*` matches any suffix. */
export function isInterface(flow: Flow, end: 'input' | 'output', pattern: string): Answer {
  const name = flow[end];
  if (pattern === '*') return name !== '';
  if (name !== undefined) return isLinkNamed(pattern, name);
  // An unknown interface carries packets to or from other hosts, so it is not one of these.
  if (inner.has(pattern)) return false;
  const fact = `${end} ${pattern}`;
  const reason: Reason =
    end === 'input'
      ? { kind: 'missing-flag', flag: '--in-interface', fact }
      : lacks({ kind: 'route', address: flow.destination }, fact);
  return recallFact(flow, reason);
}

export function isLocalAddress(flow: Flow, address: Address): Answer {
  if (isUnknownHost(address)) return false;
  // The address is a placeholder for an unknown address of the node, and a rule may name the real address.
  if (isUnknownOwn(address) && address === flow.asked.address && !flow.routing.isShown(address))
    return recallFact(flow, lacks({ kind: 'own-addresses' }, 'own'));
  const isOwn = flow.routing.isLocal(address);
  const isUnplaced = isOwn === false && flow.isUnplaced && address === flow.asked.address;
  return recallFact(flow, isUnplaced ? lacks({ kind: 'own-address', address }, `own ${address.text}`) : isOwn);
}

export function writeSet(flow: Flow, write: Pick<WrittenSet, 'set' | 'fields' | 'isRemoval'>): void {
  const { source, destination, port } = flow;
  flow.written.push({ ...write, source, destination, port });
}

/** Reports whether a set contains the packet's fields after rules changed the set. `isListed`: the answer before the rules. */
export function isInWritten(flow: Flow, set: string, fields: string, isListed: Answer): Answer {
  const last = flow.written.findLast((write) => write.set === set);
  if (!last || isListed === !last.isRemoval) return isListed;
  const { source, destination, port } = flow;
  const isSame =
    last.fields === fields &&
    last.source.text === source.text &&
    last.destination.text === destination.text &&
    last.port === port;
  return isSame ? !last.isRemoval : circumstance('memory', `set ${set}`);
}

/** Reports whether the source passes a test. `asked`: the addresses that the rule matches. */
export function testSource(flow: Flow, asked: AskedSource, fact: string, test: (address: Address) => Answer): Answer {
  flow.choices.sources.add(asked);
  const { candidates } = flow;
  if (isUnknownHost(flow.source)) return recallFact(flow, ofPeer(fact));
  if (!candidates) return test(flow.source);
  const named = `source ${fact}`;
  // An empty list of candidates means that the source may be any address, so the result is unknown.
  if (candidates.length === 0) return recallFact(flow, lacks({ kind: 'own-addresses' }, named));
  const answers = candidates.map(test);
  const [first = false] = answers;
  if (answers.every((answer) => answer === first)) return first;
  const question = { to: flow.asked.address, such: candidates[0] ?? flow.source };
  return recallFact(flow, { kind: 'missing-flag', flag: '--from', ...question, fact: named, likely: first === true });
}

export function testDestination(flow: Flow, fact: string, test: (address: Address) => Answer): Answer {
  return isUnknownHost(flow.destination) ? recallFact(flow, ofPeer(fact)) : test(flow.destination);
}

function ofPeer(text: string): Reason {
  return { ...circumstance('peer', text), fact: `peer ${text}`, likely: false };
}

/** Reports whether the address has this type, named as in the kernel. */
export function hasAddressType(flow: Flow, address: Address, type: string): Answer {
  switch (type.toLowerCase()) {
    case 'local':
      return !isForMany(address) && isLocalAddress(flow, address);
    case 'unicast':
      return !isForMany(address) && negateIf(true, isLocalAddress(flow, address));
    case 'multicast':
      return isForMany(address) && !isBroadcast(address);
    case 'broadcast':
      return isBroadcast(address);
    case 'blackhole':
    case 'unreachable':
    case 'prohibit':
    case 'unspec':
      return flow.routing.isListed ? false : lacks({ kind: 'route', address });
    default:
      return unreadValue(type);
  }
}

const ephemeral = { first: 32768, last: 60999 };

export const portProtocols: ReadonlySet<Flow['protocol']> = new Set(['tcp', 'udp', 'sctp']);

export function transportOf({ protocol, port, sourcePort }: Pick<Flow, 'protocol' | 'port' | 'sourcePort'>): Transport {
  if (!portProtocols.has(protocol)) return { protocol, port: undefined, sourcePort: undefined };
  const rangeOf = (each: number | undefined): PortRange =>
    each === undefined ? ephemeral : { first: each, last: each };
  return { protocol, port: rangeOf(port), sourcePort: rangeOf(sourcePort) };
}

export function isChosenPortIn({ first, last }: PortRange): Answer {
  if (last < ephemeral.first || first > ephemeral.last) return false;
  const isAll = first <= ephemeral.first && last >= ephemeral.last;
  return isAll || circumstance('source-port', first === last ? String(first) : `${first}-${last}`);
}

/** Tests which program sent the packet: unknown for the node's own packets, and false for others. */
export function isOfProgram({ isOwn }: Flow, text: string): Answer {
  return isOwn ? circumstance('program', text) : false;
}

interface Rewriting {
  readonly address: Address;
  readonly port: number | undefined;
}

/** Redirects the packet's connection to another address, unless the packet is untracked. */
export function rewriteDestination(flow: Flow, { address, port = flow.port }: Rewriting): 'accept' {
  if (!flow.connection) return 'accept';
  flow.destination = address;
  flow.port = port;
  if (port !== undefined) flow.endpoint = { address, port };
  flow.connection.rewritten.add('destination');
  flow.connection.destination = { address, port };
  return 'accept';
}

/**
 * Redirects the connection to the node itself, or drops the packet if the interface has no address (nf_nat_redirect.c). No rule that kpc
 * reads depends on that address.
 */
export function redirect(flow: Flow, port = flow.port): 'accept' | 'dropped' {
  if (!flow.connection) return 'accept';
  const { family, hook, routing, input, destination } = flow;
  if (hook !== 'output' && input !== undefined && routing.isBare(input)) {
    flow.steps.push({ kind: 'route', decision: { kind: 'no-address', interface: input }, destination });
    return 'dropped';
  }
  flow.destination = hook === 'output' ? loopbackAddresses[family] : routing.ownAddress(flow.input);
  flow.port = port;
  flow.connection.rewritten.add('destination');
  flow.connection.destination = { address: flow.destination, port };
  return 'accept';
}

export function isTcpReset(answer: string | undefined): boolean {
  return answer === 'tcp-reset' || answer === 'tcp-rst' || answer === 'tcp reset';
}

/** ICMP errors that a UDP socket does not report to its program (icmp_err_convert in icmp.c, tab_unreach in icmpv6). */
const softAnswers = /(?:net|host|addr)-unreach(?:able)?$|no-route$/;

/**
 * Refuses the packet. A TCP reset to a packet from a bridge skips NAT (nf_send_reset in nf_reject_ipv4.c). If the packet was translated,
 * the reset comes from an address that the sender never contacted, so the sender ignores it.
 */
export function reject(flow: Flow, answer: string | undefined): 'refused' | 'dropped' {
  const { asked, destination, port, protocol } = flow;
  if (protocol === 'udp' && softAnswers.test(answer ?? '')) return 'dropped';
  const isChanged = destination.text !== asked.address.text || port !== asked.port;
  if (!isChanged || !isTcpReset(answer)) return 'refused';
  return decide(flow, () => cameByBridge(flow, 'reset')) ? 'dropped' : 'refused';
}

/** Reports whether the packet came in by a bridge that shows packets to rules (br_netfilter). */
export function cameByBridge(flow: Flow, lost?: LostByBridge): Answer {
  const { input, routing } = flow;
  if (input === '' || input === loopbackInterface) return false;
  return recallFact(flow, routing.showsBridged(input, lost));
}

/** Repeats the first packet's translation, or undoes it on an answer. Returns whether the destination changed. */
export function translate(flow: Flow, half: NatHalf): boolean {
  const { connection, sender, asked } = flow;
  if (!connection) return false;
  const isAnswer = isReply(flow);
  if (half === 'destination') {
    if (!connection.rewritten.has(isAnswer ? 'source' : 'destination')) return false;
    const to = isAnswer ? { address: sender.address, port: undefined } : connection.destination;
    if (!to) return false;
    flow.destination = to.address;
    flow.port = to.port;
    return true;
  }
  if (!connection.rewritten.has(isAnswer ? 'destination' : 'source')) return false;
  const from = isAnswer ? asked : connection.source;
  if (from) flow.source = from.address;
  if (isAnswer) flow.sourcePort = asked.port;
  else flow.candidates = connection.source?.candidates;
  return false;
}

export function rewriteSource(flow: Flow, { address, candidates }: OwnSource): 'accept' {
  flow.source = address;
  flow.candidates = candidates;
  flow.connection?.rewritten.add('source');
  if (flow.connection) flow.connection.source = { address, candidates };
  return 'accept';
}

export function masquerade(flow: Flow): 'accept' {
  const { connection, routing } = flow;
  if (!connection) return 'accept';
  connection.masqueraded = true;
  const hop = flow.hop ?? (flow.output === loopbackInterface ? { link: flow.output } : undefined);
  return rewriteSource(flow, routing.masqueradeBy(flow.destination, hop));
}

export function changeMark(flow: Flow, of: MarkHolder, { stays, start, flip }: MarkChange): void {
  const connection = trackedConnection(flow);
  // An untracked packet has no connection mark to read or write, so the rule ends here.
  if ((of === 'connection' || start?.from === 'connection') && !connection) return;
  const kept = start ? ((start.from === 'packet' ? flow : connection)?.mark ?? 0) & start.keep : 0;
  const changed = (mark: number): number => ((mark & stays) ^ kept ^ flip) >>> 0;
  if (of === 'packet') flow.mark = changed(flow.mark);
  else if (connection) connection.mark = changed(connection.mark);
}

export function admitsLoopback(flow: Flow, end: 'input' | 'output'): Answer {
  return recallFact(flow, flow.routing.admitsLoopback(flow[end]));
}

export function drawOne<T>({ choices }: Flow, items: readonly T[]): T | undefined {
  return items.length < 2 ? items[0] : items[choices.draw(items.map(() => 1 / items.length))];
}

export function isDrawn({ choices }: Flow, probability: number): Answer {
  if (!(probability >= 0 && probability <= 1)) return unreadValue(String(probability));
  if (probability === 0 || probability === 1) return probability === 1;
  return choices.draw([probability, 1 - probability]) === 0;
}

export function changeZone(flow: Flow, zone: number, direction: 'original' | 'reply' | undefined): void {
  if (!flow.connection) return;
  // A zone for one direction does not affect packets in the other direction (nf_ct_zone_id).
  flow.zone = direction === (isReply(flow) ? 'original' : 'reply') ? 0 : zone;
  if (flow.turn !== 'first') return;
  const { zones } = flow.connection;
  flow.connection.zones = {
    original: direction === 'reply' ? zones.original : zone,
    reply: direction === 'original' ? zones.reply : zone,
  };
}

export function wayOf(flow: Flow, end: Verdict | UnknownEnd): Way<Flow> & { readonly end: Flow } {
  const [verdict, reasons] = typeof end === 'object' ? (['unknown', [end.reason]] as const) : ([end, []] as const);
  const { source, steps } = flow;
  return { probability: 1, verdict, endpoint: undefined, source, end: flow, steps, reasons };
}
