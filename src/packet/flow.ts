import { loopbackAddresses, type Address } from '../kernel/address.ts';
import type { MarkChange, MarkHolder, PortRange, SocketAddress } from '../kernel/ports-and-marks.ts';
import type { Family } from '../kernel/family.ts';
import { isLinkNamed } from '../kernel/link/link.ts';
import type { CarrierProtocol } from '../kernel/link/tunnel.ts';
import type { TcpFlags } from '../kernel/nftables/table.ts';
import type { Transport, NextHop } from '../kernel/route/route.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Choices } from './explore.ts';
import { negateIf, circumstance, lacks, unreadValue, type Answer, type LostByBridge, type Reason } from './reason.ts';
import { isUnknownHost, isUnknownOwn, type PacketProtocol } from './packet.ts';
import type { AskedSource, Hook, RuleStep, Step } from './step.ts';
import { loopbackInterface, type OwnSource, type Routing } from './routing/routing.ts';

export interface Flow {
  readonly family: Family;
  readonly protocol: PacketProtocol | CarrierProtocol;
  readonly isOwn: boolean;
  readonly turn: Turn;
  readonly flags: readonly string[] | undefined;
  source: Address;
  /** Its possible addresses, if it is an unknown address of the node. */
  candidates: readonly Address[] | undefined;
  destination: Address;
  /** Ports of the destination and the source; undefined if the client's kernel chose it. */
  port: number | undefined;
  sourcePort: number | undefined;
  /** Where the client sent it, and the client's own address and port. */
  asked: SocketAddress;
  /** Whether the asked address may be one of the node's that the input does not show. */
  readonly isUnplaced: boolean;
  sender: OwnSource;
  mark: number;
  zone: number;
  /** Of a later packet: whether the first one was tracked. */
  readonly wasTracked: boolean;
  /** Whether no answer has passed, although this is not the first packet. */
  isUnanswered: boolean;
  /** Whether conntrack assigns it to no connection (INVALID). */
  isInvalid: boolean;
  hook: Hook;
  /** Priority of the hook that sees it now. */
  priority: number;
  /** Where the first packet came in, and whether a bridge carries it from there. */
  readonly entered: string | undefined;
  readonly isBridged: boolean;
  /** Whether the question names the interface, so that the packet certainly passed the node. */
  readonly isNamed: boolean;
  /** Interfaces as rules see them: '' for none, undefined if unknown. */
  input: string | undefined;
  output: string | undefined;
  /** Undefined if unknown. */
  hop: NextHop | undefined;
  /** The next hop of the client's first packet, for its later ones. */
  readonly keptHop: NextHop | undefined;
  /** Its conntrack entry; undefined once it is untracked. */
  connection: TrackedConnection | undefined;
  server: VirtualServer | undefined;
  /** The virtual server of its connection, and the chosen real server. */
  served: { readonly server: VirtualServer; readonly chosen: RealServer | undefined } | undefined;
  endpoint: SocketAddress | undefined;
  refusal: Flow | undefined;
  readonly routing: Routing;
  /** Unknown routes that no rule has asked about. */
  readonly open: Reason[];
  readonly choices: Choices;
  readonly steps: Step[];
  /** What rules have written into sets, since the connection's first packet, the latest last. */
  readonly written: WrittenSet[];
  readonly facts: Map<string, boolean>;
  /** Assumptions for all ways; undefined for none. */
  readonly assume: ((reason: Reason) => boolean | undefined) | undefined;
}

/** What no rule, route or program has done to a packet yet. */
export function untouched() {
  const found = { hop: undefined, keptHop: undefined, server: undefined, endpoint: undefined };
  const seen: Pick<Flow, 'open' | 'steps'> = { open: [], steps: [] };
  return { mark: 0, zone: 0, hook: 'prerouting', priority: 0, input: '', output: '', ...found, ...seen } as const;
}

/** 'refusal': the node's answer to the first packet; 'carrier': what a tunnel carries one in; the last two precede a packet of IPv6. */
export type Turn = 'first' | 'answer' | 'later' | 'refusal' | 'carrier' | 'solicitation' | 'advertisement';

/** Whether it goes from the endpoint's end to the client's. */
export function isReply({ turn }: Pick<Flow, 'turn'>): boolean {
  return turn === 'answer' || turn === 'refusal';
}

/** Whether it asks for a neighbour's link address or tells one. */
export function isBetweenNeighbours({ turn }: Pick<Flow, 'turn'>): boolean {
  return turn === 'solicitation' || turn === 'advertisement';
}

/** Whether it has these TCP flags. Rules that ask may treat later packets unlike the handshake. */
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

/** What a rule added to or removed from a set, with the packet as it was then. */
export interface WrittenSet extends Pick<Flow, 'source' | 'destination' | 'port'> {
  /** "ip kube-proxy bad", or "bad" for an ipset. */
  readonly set: string;
  /** Undefined if kpc cannot read them. */
  readonly fields: string | undefined;
  readonly isRemoval: boolean;
}

/** The half of a packet that a chain of type nat rewrites. */
export type NatHalf = 'destination' | 'source';

interface TrackedConnection {
  /** The halves that NAT has decided: destination and source, each once. */
  readonly decided: Set<NatHalf>;
  /** The halves that NAT changed; IPVS is not counted. */
  readonly rewritten: Set<NatHalf>;
  masqueraded: boolean;
  mark: number;
  /** The conntrack zones of its first packet and of its answers. */
  zones: { readonly original: number; readonly reply: number };
  /** The addresses of its packets after NAT. */
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

/** Whether the answer is yes; tries both if unknown. Decides a fact once per way. `step`: the rule that asks. */
export function decide(flow: Flow, test: () => Answer, step?: RuleStep): boolean {
  for (;;) {
    const answer = test();
    if (typeof answer === 'boolean') return answer;
    // Only a fact within a larger answer needs a look-up of earlier decisions.
    const decided = answer.fact === undefined ? undefined : flow.facts.get(answer.fact);
    if (decided !== undefined) return decided;
    const reason = step ? { ...answer, rule: step } : answer;
    const assumed = flow.assume?.(reason);
    const steps = (): readonly Step[] => (step ? [...flow.steps, step] : [...flow.steps]);
    const isSo = assumed ?? flow.choices.doubt(reason, steps) === (reason.likely ?? true);
    // An assumption about a condition holds for the whole rule.
    if (reason.fact === undefined) return isSo;
    flow.facts.set(reason.fact, isSo);
  }
}

/** The answer, given the facts assumed on this way. */
export function recallFact({ facts }: Flow, answer: Answer): Answer {
  if (typeof answer === 'boolean' || answer.fact === undefined) return answer;
  return facts.get(answer.fact) ?? answer;
}

/** Conntrack runs at this priority: hooks below it see packets without a connection. */
export const trackingPriority = -200;

export function trackedConnection({ connection, priority }: Flow): TrackedConnection | undefined {
  return priority > trackingPriority ? connection : undefined;
}

/** States and statuses of a connection that has seen an answer, and those that no connection has here. */
const laterStates: ReadonlySet<string> = new Set('established seen-reply confirmed'.split(' '));
const trackedStates: ReadonlySet<string> = new Set('new established related'.split(' '));
const otherStates: ReadonlySet<string> = new Set('related expected dying'.split(' '));

/** Whether the connection has a state or status, named as in iptables and nft. */
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

/** TCP's connections are once the client has acknowledged the answer (nf_conntrack_tcp_packet), UDP's after a while. */
function isAssured(flow: Flow): Answer {
  if (flow.protocol === 'icmp' || !isAnswered(flow)) return false;
  if (flow.protocol !== 'tcp') return circumstance('memory', 'ASSURED');
  flow.choices.asksFlags = true;
  return flow.turn === 'later' || flow.flags !== undefined;
}

function isAnswered({ turn, isUnanswered }: Flow): boolean {
  return turn !== 'first' && !isUnanswered;
}

/** Interfaces that never carry packets from or to another host. */
const inner: ReadonlySet<string> = new Set([loopbackInterface, 'kube-ipvs0']);

/** Whether the input or output interface has that name; `*` at the end matches any further characters. */
export function isInterface(flow: Flow, end: 'input' | 'output', pattern: string): Answer {
  const name = flow[end];
  if (pattern === '*') return name !== '';
  if (name !== undefined) return isLinkNamed(pattern, name);
  // Packets from elsewhere never come in by these, so an unknown interface does not match.
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
  // The placeholder stands for an unknown address; a rule may still name the address it serves.
  if (isUnknownOwn(address) && address === flow.asked.address && !flow.routing.isShown(address))
    return recallFact(flow, lacks({ kind: 'own-addresses' }, 'own'));
  const isOwn = flow.routing.isLocal(address);
  const isUnplaced = isOwn === false && flow.isUnplaced && address === flow.asked.address;
  return recallFact(flow, isUnplaced ? lacks({ kind: 'own-address', address }, `own ${address.text}`) : isOwn);
}

/** Records that a rule writes this packet's fields into a set. */
export function writeSet(flow: Flow, write: Pick<WrittenSet, 'set' | 'fields' | 'isRemoval'>): void {
  const { source, destination, port } = flow;
  flow.written.push({ ...write, source, destination, port });
}

/** Whether the packet's fields are in a set after rules' writes. `isListed`: before them. */
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

/** Whether the source passes a test. `asked`: the addresses the rule tests for. */
export function testSource(flow: Flow, asked: AskedSource, fact: string, test: (address: Address) => Answer): Answer {
  flow.choices.sources.add(asked);
  const { candidates } = flow;
  if (isUnknownHost(flow.source)) return recallFact(flow, ofPeer(fact));
  if (!candidates) return test(flow.source);
  const named = `source ${fact}`;
  // If the source may be any address, only what holds for all is known.
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

/** Whether the address has this type, named as in the kernel. */
export function hasAddressType(flow: Flow, address: Address, type: string): Answer {
  const first = address.family === 'ipv4' ? address.bits >>> 24 : (address.groups[0] ?? 0) >>> 8;
  const isMulticast = address.family === 'ipv4' ? first >= 224 && first < 240 : first === 0xff;
  const isBroadcast = address.text === '255.255.255.255';
  const isOne = !isMulticast && !isBroadcast;
  switch (type.toLowerCase()) {
    case 'local':
      return isOne && isLocalAddress(flow, address);
    case 'unicast':
      return isOne && negateIf(true, isLocalAddress(flow, address));
    case 'multicast':
      return isMulticast;
    case 'broadcast':
      return isBroadcast;
    case 'blackhole':
    case 'unreachable':
    case 'prohibit':
    case 'unspec':
      return flow.routing.isListed ? false : lacks({ kind: 'route', address });
    default:
      return unreadValue(type);
  }
}

/** Ports that a client's kernel chooses from by default (net.ipv4.ip_local_port_range). */
const ephemeral = { first: 32768, last: 60999 };

export const portProtocols: ReadonlySet<Flow['protocol']> = new Set(['tcp', 'udp', 'sctp']);

export function transportOf({ protocol, port, sourcePort }: Pick<Flow, 'protocol' | 'port' | 'sourcePort'>): Transport {
  if (!portProtocols.has(protocol)) return { protocol, port: undefined, sourcePort: undefined };
  const rangeOf = (each: number | undefined): PortRange =>
    each === undefined ? ephemeral : { first: each, last: each };
  return { protocol, port: rangeOf(port), sourcePort: rangeOf(sourcePort) };
}

/** Whether a client's kernel may choose its port from this range. */
export function isChosenPortIn({ first, last }: PortRange): Answer {
  if (last < ephemeral.first || first > ephemeral.last) return false;
  const isAll = first <= ephemeral.first && last >= ephemeral.last;
  return isAll || circumstance('source-port', first === last ? String(first) : `${first}-${last}`);
}

/** Whether a program of the node sent the packet. */
export function isOfProgram({ isOwn }: Flow, text: string): Answer {
  return isOwn ? circumstance('program', text) : false;
}

interface Rewriting {
  readonly address: Address;
  readonly port: number | undefined;
}

/** Sends the packet's connection to another address. An untracked packet is not rewritten. */
export function rewriteDestination(flow: Flow, { address, port = flow.port }: Rewriting): 'accept' {
  if (!flow.connection) return 'accept';
  flow.destination = address;
  flow.port = port;
  if (port !== undefined) flow.endpoint = { address, port };
  flow.connection.rewritten.add('destination');
  flow.connection.destination = { address, port };
  return 'accept';
}

/** Sends it to the node itself (nf_nat_redirect.c). No rule that kpc reads depends on the interface's address. */
export function redirect(flow: Flow, port = flow.port): 'accept' {
  if (!flow.connection) return 'accept';
  const { family, hook, routing } = flow;
  flow.destination = hook === 'output' ? loopbackAddresses[family] : routing.ownAddress(flow.input);
  flow.port = port;
  flow.connection.rewritten.add('destination');
  flow.connection.destination = { address: flow.destination, port };
  return 'accept';
}

/** Whether it is TCP's own answer (a reset), as rules spell it. */
export function isTcpReset(answer: string | undefined): boolean {
  return answer === 'tcp-reset' || answer === 'tcp-rst' || answer === 'tcp reset';
}

/** ICMP answers that do not reach a program's UDP socket (icmp_err_convert in icmp.c, tab_unreach in icmpv6). */
const softAnswers = /(?:net|host|addr)-unreach(?:able)?$|no-route$/;

/**
 * Refuses the packet. A TCP reset to a packet from a bridge goes back through its port and skips NAT (nf_send_reset in
 * nf_reject_ipv4.c): it comes from an address that the sender has not asked.
 */
export function reject(flow: Flow, answer: string | undefined): 'refused' | 'dropped' {
  const { asked, destination, port, protocol } = flow;
  if (protocol === 'udp' && softAnswers.test(answer ?? '')) return 'dropped';
  const isChanged = destination.text !== asked.address.text || port !== asked.port;
  if (!isChanged || !isTcpReset(answer)) return 'refused';
  return decide(flow, () => cameByBridge(flow, 'reset')) ? 'dropped' : 'refused';
}

/** Whether the packet came in by a bridge port that rules can match (br_netfilter). */
export function cameByBridge(flow: Flow, lost?: LostByBridge): Answer {
  const { input, routing } = flow;
  if (input === '' || input === loopbackInterface) return false;
  return recallFact(flow, routing.showsBridged(input, lost));
}

/** Repeats or, for an answer, undoes the first packet's translation. Returns whether the destination changed. */
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

/** Gives the packet a source address of the interface by which it leaves. */
export function masquerade(flow: Flow): 'accept' {
  const { connection, routing } = flow;
  if (!connection) return 'accept';
  connection.masqueraded = true;
  const hop = flow.hop ?? (flow.output === loopbackInterface ? { link: flow.output } : undefined);
  return rewriteSource(flow, routing.masqueradeBy(flow.destination, hop));
}

/** Changes the mark of the packet or its connection. An untracked packet has no connection mark. */
export function changeMark(flow: Flow, of: MarkHolder, { stays, start, flip }: MarkChange): void {
  const connection = trackedConnection(flow);
  // Neither tool reads or writes an untracked packet's connection mark: the rule ends there.
  if ((of === 'connection' || start?.from === 'connection') && !connection) return;
  const kept = start ? ((start.from === 'packet' ? flow : connection)?.mark ?? 0) & start.keep : 0;
  const changed = (mark: number): number => ((mark & stays) ^ kept ^ flip) >>> 0;
  if (of === 'packet') flow.mark = changed(flow.mark);
  else if (connection) connection.mark = changed(connection.mark);
}

/** Whether packets with a loopback address pass the input or output interface. */
export function admitsLoopback(flow: Flow, end: 'input' | 'output'): Answer {
  return recallFact(flow, flow.routing.admitsLoopback(flow[end]));
}

/** One of several, with equal probability. */
export function drawOne<T>({ choices }: Flow, items: readonly T[]): T | undefined {
  return items.length < 2 ? items[0] : items[choices.draw(items.map(() => 1 / items.length))];
}

export function isDrawn({ choices }: Flow, probability: number): Answer {
  if (!(probability >= 0 && probability <= 1)) return unreadValue(String(probability));
  if (probability === 0 || probability === 1) return probability === 1;
  return choices.draw([probability, 1 - probability]) === 0;
}

/** Puts the packet, or one direction of its connection, into a conntrack zone. */
export function changeZone(flow: Flow, zone: number, direction: 'original' | 'reply' | undefined): void {
  if (!flow.connection) return;
  // A zone for one direction does not affect packets of the other (nf_ct_zone_id).
  flow.zone = direction === (isReply(flow) ? 'original' : 'reply') ? 0 : zone;
  if (flow.turn !== 'first') return;
  const { zones } = flow.connection;
  flow.connection.zones = {
    original: direction === 'reply' ? zones.original : zone,
    reply: direction === 'original' ? zones.reply : zone,
  };
}
