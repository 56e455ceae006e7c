import { loopbackAddresses, type Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { Transport } from '../kernel/route/lookup-route.ts';
import type { NextHop } from '../kernel/route/route.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { PortRange, SocketAddress } from '../kernel/socket-address.ts';
import type { Choices } from './explore.ts';
import { negateIf } from './maybe.ts';
import type { PacketProtocol } from './packet.ts';
import type { AskedSource, Hook, MarkChange, MarkHolder, RuleStep, Step } from './step.ts';
import { circumstance, lacks, unreadValue, type Answer, type Reason } from './reason.ts';
import { loopbackInterface, type OwnSource, type Routing } from './routing/routing.ts';
import { isUnknownOwn } from './own-address.ts';

/** A packet on its way through the node. Rules change it as they do in the kernel. */
export interface Flow {
  readonly family: Family;
  readonly protocol: PacketProtocol;
  /** Whether a program on the node sends it. */
  readonly isOwn: boolean;
  /** Which packet of the connection it is. */
  readonly turn: Turn;
  /** The flags of TCP of a packet after the handshake. */
  readonly flags: readonly string[] | undefined;
  source: Address;
  /** If it is an address of the node, and not known which: those that it may be, as far as they are known. */
  candidates: readonly Address[] | undefined;
  destination: Address;
  /** That of the destination, and that of the source; undefined for one that the client's kernel chose. */
  port: number | undefined;
  sourcePort: number | undefined;
  /** What the client asked for, and from where. */
  asked: SocketAddress;
  /** Whether what was asked may be an address of the node that the input does not show. */
  readonly isUnplaced: boolean;
  sender: OwnSource;
  mark: number;
  /** The zone of connection tracking that rules put it in. */
  zone: number;
  /** Of a later packet: whether the first one was tracked. */
  readonly wasTracked: boolean;
  /** Whether no answer has passed the node, though the connection is beyond its first packet. */
  isUnanswered: boolean;
  /** Whether connection tracking takes it for no part of any connection. */
  isInvalid: boolean;
  hook: Hook;
  /** Priority of what sees it now. */
  priority: number;
  /** Where the first packet came in, and whether a bridge carries it from there. */
  readonly entered: string | undefined;
  readonly isBridged: boolean;
  /** Whether the question says where it came in, and so that it came by the node. */
  readonly isNamed: boolean;
  /** Interfaces as rules see them: '' for none, undefined if not known. */
  input: string | undefined;
  output: string | undefined;
  /** Where it goes next; undefined if that is not known. */
  hop: NextHop | undefined;
  /** What connection tracking keeps of its connection; undefined once it is not tracked. */
  connection: Connection | undefined;
  /** The virtual server that took it. */
  server: VirtualServer | undefined;
  /** The virtual server of its connection, and the real server that was chosen. */
  served: { readonly server: VirtualServer; readonly chosen: RealServer | undefined } | undefined;
  /** Where its destination was rewritten to. */
  endpoint: SocketAddress | undefined;
  readonly routing: Routing;
  /** What routes would say that are not known, though no rule asked. */
  readonly open: Reason[];
  readonly choices: Choices;
  readonly steps: Step[];
  /** What rules have written into sets on this way, the last at the end. */
  readonly written: SetWrite[];
  /** What is taken for true on this way, by the names of facts. */
  readonly facts: Map<string, boolean>;
  /** What is taken for true on all ways: undefined for nothing. */
  readonly assume: ((reason: Reason) => boolean | undefined) | undefined;
}

/** The first packet of a connection, the endpoint's answer to it, and what the client sends then. */
export type Turn = 'first' | 'answer' | 'later';

/** The flags of TCP that a packet has, for a rule that asks: such a rule may take later packets otherwise than those of the handshake. */
export function flagsOf({ turn, flags, choices }: Flow): readonly string[] {
  choices.asksFlags = true;
  return flags ?? handshake[turn];
}

const handshake: { readonly [T in Turn]: readonly string[] } = {
  first: ['SYN'],
  answer: ['SYN', 'ACK'],
  later: ['ACK'],
};

/** What a rule added to a set, or took out of it, of a packet as it was then. */
export interface SetWrite extends Pick<Flow, 'source' | 'destination' | 'port'> {
  /** "ip kube-proxy bad", or "bad" for one of ipset. */
  readonly set: string;
  /** The names of its fields; undefined if they are not read. */
  readonly fields: string | undefined;
  readonly isRemoval: boolean;
}

/** The half of a packet that a chain of type nat rewrites. */
export type NatHalf = 'destination' | 'source';

interface Connection {
  /** What nat has decided: it does so once for the destination, and once for the source. */
  readonly decided: Set<NatHalf>;
  /** What nat changed. What IPVS does is not among this. */
  readonly rewritten: Set<NatHalf>;
  masqueraded: boolean;
  mark: number;
  /** The zones of its first packet and of its answers. */
  zones: { readonly original: number; readonly reply: number };
  /** What its packets have after nat. */
  destination: { readonly address: Address; readonly port: number | undefined } | undefined;
  source: OwnSource | undefined;
}

/** A connection of which no rule has seen anything. */
export function newConnection(): Connection {
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
 * Whether the answer is yes. Where it is not known, both are tried. A fact is decided once for a packet's way, however often and
 * in whatever form it is asked. `step`: the rule that asks.
 */
export function decide(flow: Flow, test: () => Answer, step?: RuleStep): boolean {
  for (;;) {
    const answer = test();
    if (typeof answer === 'boolean') return answer;
    // What asks need not recall what was decided on this way, unless the fact is only a part of the answer.
    const decided = answer.fact === undefined ? undefined : flow.facts.get(answer.fact);
    if (decided !== undefined) return decided;
    const reason = step ? { ...answer, rule: step } : answer;
    const assumed = flow.assume?.(reason);
    const steps = (): readonly Step[] => (step ? [...flow.steps, step] : [...flow.steps]);
    const isSo = assumed ?? flow.choices.doubt(reason, steps) === (reason.likely ?? true);
    // What is assumed of a condition holds for all of the rule.
    if (reason.fact === undefined) return isSo;
    flow.facts.set(reason.fact, isSo);
  }
}

/** An answer, with what has been taken for true on this way. */
export function recall({ facts }: Flow, answer: Answer): Answer {
  if (typeof answer === 'boolean' || answer.fact === undefined) return answer;
  return facts.get(answer.fact) ?? answer;
}

/** Where connection tracking begins: what is below sees packets without a connection. */
const trackingPriority = -200;

/** The packet's connection, as what sees it now finds it. */
export function trackedConnection({ connection, priority }: Flow): Connection | undefined {
  return priority > trackingPriority ? connection : undefined;
}

/** States and statuses that a connection has once an answer came, and those that none has here. */
const laterStates: ReadonlySet<string> = new Set('established seen-reply confirmed'.split(' '));
const otherStates: ReadonlySet<string> = new Set('related expected assured dying'.split(' '));

/** The states and statuses of a connection whose first packet this is, as iptables and nft call them. */
export function hasState(flow: Flow, state: string): Answer {
  const connection = trackedConnection(flow);
  switch (state.toLowerCase()) {
    case 'new':
      return connection !== undefined && (flow.turn === 'first' || !isAnswered(flow));
    case 'invalid':
      return connection === undefined && (flow.priority < trackingPriority || flow.isInvalid);
    case 'untracked':
      return connection === undefined && flow.priority > trackingPriority && !flow.isInvalid;
    case 'dnat':
      return connection?.rewritten.has('destination') === true;
    case 'snat':
      return connection?.rewritten.has('source') === true;
    default:
      if (laterStates.has(state.toLowerCase())) return connection !== undefined && isAnswered(flow);
      return otherStates.has(state.toLowerCase()) ? false : unreadValue(state);
  }
}

/** Whether an answer was seen, this packet counted. */
function isAnswered({ turn, isUnanswered }: Flow): boolean {
  return turn !== 'first' && !isUnanswered;
}

/** Interfaces that no packet from or to another host passes. */
const inner: ReadonlySet<string> = new Set([loopbackInterface, 'kube-ipvs0']);

/** Whether the interface by which the packet came in, or leaves, has that name; a `wildcard` at its end matches any more characters. */
export function isInterface(flow: Flow, end: 'input' | 'output', pattern: string, wildcard: '+' | '*'): Answer {
  const name = flow[end];
  const isStart = pattern.endsWith(wildcard);
  if (pattern === wildcard) return name !== '' || wildcard === '+';
  if (name !== undefined) return isStart ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
  // Packets from elsewhere never come by these, whatever the interface is.
  if (inner.has(pattern)) return false;
  const fact = `${end} ${pattern}`;
  const reason: Reason =
    end === 'input'
      ? { kind: 'missing-flag', flag: '--in-interface', fact }
      : lacks({ kind: 'route', address: flow.destination }, fact);
  return recall(flow, reason);
}

/** Whether the address is the node's own. */
export function isLocal(flow: Flow, address: Address): Answer {
  // The placeholder is asked for where no address is known, and rules may name those that they serve.
  if (isUnknownOwn(address) && address === flow.asked.address && !flow.routing.isShown(address))
    return recall(flow, lacks({ kind: 'own-addresses' }, 'own'));
  const isOwn = flow.routing.isLocal(address);
  const isUnplaced = isOwn === false && flow.isUnplaced && address === flow.asked.address;
  return recall(flow, isUnplaced ? lacks({ kind: 'own-address', address }, `own ${address.text}`) : isOwn);
}

/** Notes that a rule writes what the packet has into a set. */
export function writeSet(flow: Flow, write: Pick<SetWrite, 'set' | 'fields' | 'isRemoval'>): void {
  const { source, destination, port } = flow;
  flow.written.push({ ...write, source, destination, port });
}

/** Whether what the packet has is in a set, after what rules have written there. `isListed`: whether it was before. */
export function isInWritten(flow: Flow, set: string, fields: string, isListed: Answer): Answer {
  const last = flow.written.findLast((write) => write.set === set);
  if (!last || isListed === !last.isRemoval) return isListed;
  const { source, destination, port } = flow;
  const isSame =
    last.fields === fields && last.source === source && last.destination === destination && last.port === port;
  return isSame ? !last.isRemoval : circumstance('memory', `set ${set}`);
}

/** Whether the source passes a test, which `asked` is what rules ask for by it. */
export function testSource(flow: Flow, asked: AskedSource, fact: string, test: (address: Address) => Answer): Answer {
  flow.choices.sources.add(asked);
  const { candidates } = flow;
  if (!candidates) return test(flow.source);
  const named = `source ${fact}`;
  // Of one that may be any, kpc can only know what holds for all.
  if (candidates.length === 0) return recall(flow, lacks({ kind: 'own-addresses' }, named));
  const answers = candidates.map(test);
  const [first = false] = answers;
  if (answers.every((answer) => answer === first)) return first;
  const question = { to: flow.asked.address, such: candidates[0] ?? flow.source };
  return recall(flow, { kind: 'missing-flag', flag: '--from', ...question, fact: named, likely: first === true });
}

/** What the kernel calls the type of an address. */
export function hasAddressType(flow: Flow, address: Address, type: string): Answer {
  const first = address.family === 'ipv4' ? address.bits >>> 24 : (address.groups[0] ?? 0) >>> 8;
  const isMulticast = address.family === 'ipv4' ? first >= 224 && first < 240 : first === 0xff;
  const isBroadcast = address.text === '255.255.255.255';
  const isOne = !isMulticast && !isBroadcast;
  switch (type.toLowerCase()) {
    case 'local':
      return isOne && isLocal(flow, address);
    case 'unicast':
      return isOne && negateIf(true, isLocal(flow, address));
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

/** What rules of routing see of a packet's ports. */
export function transportOf({ protocol, port, sourcePort }: Pick<Flow, 'protocol' | 'port' | 'sourcePort'>): Transport {
  if (protocol === 'icmp') return { protocol, port: undefined, sourcePort: undefined };
  const rangeOf = (each: number | undefined): PortRange =>
    each === undefined ? ephemeral : { first: each, last: each };
  return { protocol, port: rangeOf(port), sourcePort: rangeOf(sourcePort) };
}

/** Whether the source's port is one of a range. */
export function isSourcePortIn({ sourcePort, protocol }: Flow, first: number, last: number): Answer {
  if (sourcePort !== undefined) return protocol !== 'icmp' && first <= sourcePort && sourcePort <= last;
  return isChosenPortIn(first, last);
}

/** Whether a client's kernel chooses its port from among these. */
function isChosenPortIn(first: number, last: number): Answer {
  if (last < ephemeral.first || first > ephemeral.last) return false;
  const isAll = first <= ephemeral.first && last >= ephemeral.last;
  return isAll || circumstance('source-port', first === last ? String(first) : `${first}-${last}`);
}

/** Whether a program of that kind sends, which no packet from elsewhere has. */
export function isOfProgram({ isOwn }: Flow, text: string): Answer {
  return isOwn ? circumstance('program', text) : false;
}

/** The destination and port that rules give a packet. */
interface Rewriting {
  readonly address: Address;
  readonly port: number | undefined;
}

/** Sends the packet's connection on to another address. Nothing is rewritten of a packet without a connection. */
export function rewriteDestination(flow: Flow, { address, port = flow.port }: Rewriting): 'accept' {
  if (!flow.connection) return 'accept';
  flow.destination = address;
  flow.port = port;
  if (port !== undefined) flow.endpoint = { address, port };
  flow.connection.rewritten.add('destination');
  flow.connection.destination = { address, port };
  return 'accept';
}

/** Sends it to the node itself (nf_nat_redirect.c). Which of an interface's addresses that is, no rule that is read tells apart. */
export function redirect(flow: Flow, port = flow.port): 'accept' {
  if (!flow.connection) return 'accept';
  const { family, hook, routing } = flow;
  flow.destination = hook === 'output' ? loopbackAddresses[family] : routing.ownAddress(flow.input);
  flow.port = port;
  flow.connection.rewritten.add('destination');
  flow.connection.destination = { address: flow.destination, port };
  return 'accept';
}

/** How rules spell the answer that TCP has of its own. */
const tcpReset: ReadonlySet<string | undefined> = new Set(['tcp-reset', 'tcp-rst', 'tcp reset']);

/** Answers of ICMP that programs with a socket of UDP do not hear of (icmp_err_convert in icmp.c, tab_unreach in icmpv6). */
const softAnswers = /(?:net|host|addr)-unreach(?:able)?$|no-route$/;

/**
 * Refuses the packet, as its sender sees it. A TCP reset to what came over a bridge goes back by the bridge's port itself, without the way back through
 * NAT (nf_send_reset in nf_reject_ipv4.c): it comes from an address that the sender has not asked.
 */
export function reject(flow: Flow, answer: string | undefined): 'refused' | 'dropped' {
  const { asked, destination, port, protocol } = flow;
  if (protocol === 'udp' && softAnswers.test(answer ?? '')) return 'dropped';
  const isChanged = destination.text !== asked.address.text || port !== asked.port;
  if (!isChanged || !tcpReset.has(answer)) return 'refused';
  return decide(flow, () => cameByBridge(flow)) ? 'dropped' : 'refused';
}

/** Whether a port of a bridge took the packet in, and rules know of it (br_netfilter). */
export function cameByBridge(flow: Flow): Answer {
  const { input, routing } = flow;
  if (input === '' || input === loopbackInterface) return false;
  return recall(flow, routing.showsBridged(input));
}

/** Does to a later packet what rules did to the first, or for an answer the opposite. Returns whether that changed where it goes. */
export function translate(flow: Flow, half: NatHalf): boolean {
  const { connection, turn, sender, asked } = flow;
  if (!connection) return false;
  const isAnswer = turn === 'answer';
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

/** Gives the packet another source. */
export function rewriteSource(flow: Flow, { address, candidates }: OwnSource): 'accept' {
  flow.source = address;
  flow.candidates = candidates;
  flow.connection?.rewritten.add('source');
  if (flow.connection) flow.connection.source = { address, candidates };
  return 'accept';
}

/** Gives the packet an address of the node for its source: that of the interface by which it leaves. */
export function masquerade(flow: Flow): 'accept' {
  const { connection, routing } = flow;
  if (!connection) return 'accept';
  connection.masqueraded = true;
  return rewriteSource(flow, routing.masqueradeBy(flow.destination, flow.hop));
}

/** Changes the mark of the packet or of its connection, which what is not tracked does not have. */
export function changeMark(flow: Flow, of: MarkHolder, { stays, start, flip }: MarkChange): void {
  const connection = trackedConnection(flow);
  // Neither tool reads or writes the mark of a connection that is not there: the rule then ends.
  if ((of === 'connection' || start?.from === 'connection') && !connection) return;
  const kept = start ? ((start.from === 'packet' ? flow : connection)?.mark ?? 0) & start.keep : 0;
  const changed = (mark: number): number => ((mark & stays) ^ kept ^ flip) >>> 0;
  if (of === 'packet') flow.mark = changed(flow.mark);
  else if (connection) connection.mark = changed(connection.mark);
}

/** Whether packets with a loopback address pass the interface at one end of the packet's way. */
export function admitsLoopback(flow: Flow, end: 'input' | 'output'): Answer {
  return recall(flow, flow.routing.admitsLoopback(flow[end]));
}

/** Whether chance has it: the share of connections for which the answer is yes. */
export function isDrawn({ choices }: Flow, probability: number): Answer {
  if (!(probability >= 0 && probability <= 1)) return unreadValue(String(probability));
  if (probability === 0 || probability === 1) return probability === 1;
  return choices.draw([probability, 1 - probability]) === 0;
}

/** Whether the destination port is one of a range. A ping has none. */
export function isPortIn({ port, protocol }: Flow, { first, last }: PortRange): Answer {
  if (protocol === 'icmp') return false;
  return port === undefined ? isChosenPortIn(first, last) : port >= first && port <= last;
}

/** Puts the packet into a zone, or with a direction, its connection's packets of that direction. */
export function changeZone(flow: Flow, zone: number, direction: 'original' | 'reply' | undefined): void {
  if (!flow.connection) return;
  // A zone of one direction is none for packets of the other (nf_ct_zone_id).
  flow.zone = direction === (flow.turn === 'answer' ? 'original' : 'reply') ? 0 : zone;
  if (flow.turn !== 'first') return;
  const { zones } = flow.connection;
  flow.connection.zones = {
    original: direction === 'reply' ? zones.original : zone,
    reply: direction === 'original' ? zones.reply : zone,
  };
}
