import { compareAddresses, contains, isBroadcast, isForMany, type Address } from '../kernel/address.ts';
import { carrierNames } from '../kernel/link/tunnel.ts';
import type { Value, Field, Selector } from '../kernel/nftables/table.ts';
import { formatKey } from '../kernel/nftables/format.ts';
import {
  cameByBridge,
  hasAddressType,
  hasState,
  isReply,
  isInterface,
  isOfProgram,
  isChosenPortIn,
  portProtocols,
  testDestination,
  testSource,
  trackedConnection,
  type Flow,
} from './flow.ts';
import { isEchoMessage } from './icmp.ts';
import { isOfInterface, linksBack, linksOf, passesReverse } from './way-back.ts';
import { isUnknownHost } from './packet.ts';
import { loopbackInterface } from './routing/routing.ts';
import { circumstance, lacks, negateIf, someOf, unreadValue, type Answer } from './reason.ts';

export type FieldValue = Address | number | string;

type FieldReading =
  | { readonly kind: 'value'; readonly value: FieldValue }
  /** A field with several values, such as connection states or address types, or with an uncertain value. */
  | { readonly kind: 'test'; readonly test: (constant: Value) => Answer }
  /** The packet lacks the field, so a rule that tests the field does not match, even if the test is negated. */
  | { readonly kind: 'absent' };

const absent: FieldReading = { kind: 'absent' };

type FieldReader = (flow: Flow) => FieldReading;

function known(value: FieldValue): FieldReading {
  return { kind: 'value', value };
}

function test(answer: (constant: Value) => Answer): FieldReading {
  return { kind: 'test', test: answer };
}

function unsaidField(name: string): FieldReading {
  return test((constant) => circumstance('content', `${name} ${textOfConstant(constant)}`));
}

/** Fields by nft's name, or by iptables' option if nft has no name. `th` stands for the TCP, UDP or SCTP header. */
const knownFields: ReadonlyMap<string, FieldReader> = new Map<string, FieldReader>([
  ['mark', ({ mark }) => known(mark)],
  ['ct mark', (flow) => ofConnection(flow, ({ mark }) => known(mark))],
  ['ct state', (flow) => test((state) => hasState(flow, textOfConstant(state)))],
  ['ct status', (flow) => ofConnection(flow, () => test((each) => hasState(flow, textOfConstant(each))))],
  ['ctstatus', (flow) => ofConnection(flow, () => test((each) => hasStatus(flow, textOfConstant(each))))],
  ['ct direction', (flow) => ofConnection(flow, () => known(isReply(flow) ? 'reply' : 'original'))],
  ['ct zone', (flow) => ofConnection(flow, () => known(flow.zone))],
  ['ct original proto-dst', (flow) => ofConnection(flow, () => known(flow.asked.port))],
  ['ct original ip daddr', (flow) => ofConnection(flow, () => known(flow.asked.address))],
  ['ct original ip6 daddr', (flow) => ofConnection(flow, () => known(flow.asked.address))],
  ['meta l4proto', readProtocol],
  ['meta nfproto', ({ family }) => known(family)],
  ['meta protocol', ({ family }) => known(family === 'ipv4' ? 'ip' : 'ip6')],
  ['iif', (flow) => interfaceAt(flow, 'input')],
  ['iifname', (flow) => interfaceAt(flow, 'input')],
  ['oif', (flow) => interfaceAt(flow, 'output')],
  ['oifname', (flow) => interfaceAt(flow, 'output')],
  ['meta skuid', ofProgram],
  ['meta skgid', ofProgram],
  ['meta pkttype', (flow) => known(addressedTo(flow))],
  ['icmp type', (flow) => icmpType(flow, 'ipv4')],
  ['icmpv6 type', (flow) => icmpType(flow, 'ipv6')],
  ...['ip', 'ip6'].flatMap((header) =>
    (['saddr', 'daddr'] as const).map((name): readonly [string, FieldReader] => [
      `${header} ${name}`,
      (flow) => (isOfHeader(flow, header) ? readAddressField(flow, name) : absent),
    ]),
  ),
  ['ip protocol', (flow) => (isOfHeader(flow, 'ip') ? readProtocol(flow) : absent)],
  ['ip6 nexthdr', (flow) => (isOfHeader(flow, 'ip6') ? readProtocol(flow) : absent)],
  ...['th', 'tcp', 'udp', 'sctp', 'udplite', 'dccp'].flatMap((header): readonly (readonly [string, FieldReader])[] => [
    [`${header} dport`, (flow) => (hasPorts(flow, header) ? readPortField(flow, 'port') : absent)],
    [`${header} sport`, (flow) => (hasPorts(flow, header) ? readPortField(flow, 'sourcePort') : absent)],
  ]),
  [
    'th sport or dport',
    (flow) => {
      const ports = (['sourcePort', 'port'] as const).map((end) => readPortField(flow, end) as KnownReading);
      return hasPorts(flow, 'th') ? test((constant) => someOf(ports, (port) => holdsReading(constant, port))) : absent;
    },
  ],
  ['owner', (flow) => test(() => isOfProgram(flow, 'owner'))],
  ['recent', () => test(() => circumstance('memory', 'memory'))],
  // A `recent` list cannot contain the client at its first packet, but a rule may add the client before the next one.
  ['recent client', ({ turn }) => test(() => turn === 'later' && circumstance('memory', 'memory'))],
  ['physdev-is-in', (flow) => test(() => isOfBridge(flow))],
  ['physdev-is-bridged', (flow) => test(() => isBridged(flow))],
  ['physdev-in', (flow) => test((port) => isOfPort(flow, port, cameByBridge(flow)))],
  ['physdev-out', (flow) => test((port) => isOfPort(flow, port, isBridged(flow)))],
  ['ipvs', ({ server }) => test(() => server !== undefined)],
  ['ipvs vaddr', ({ server }) => (server ? known(server.address) : absent)],
  ['ipvs vproto', ({ server }) => (server ? known(server.protocol.toLowerCase()) : absent)],
  ['ipvs vport', ({ server }) => (server ? known(server.port) : absent)],
]);

function readOf(name: string): FieldReader {
  const own = knownFields.get(name);
  if (own) return own;
  const [, flags = '', asked] = /^fib (.+) (type|oif|oifname|check)$/.exec(name) ?? [];
  return asked === undefined ? () => unsaidField(name) : fibField(flags.split(' . '), asked);
}

function fibField(flags: readonly string[], asked: string): FieldReader {
  const isRestricted = flags.includes('iif') || flags.includes('oif');
  if (asked === 'type') {
    return (flow) => {
      const address = flags.includes('saddr') ? flow.source : flow.destination;
      return test((constant) => {
        const answer = hasAddressType(flow, address, textOfConstant(constant));
        if (!isRestricted || answer === false) return answer;
        return isOfInterface(flow, address, textOfConstant(constant), flags.includes('iif') ? 'input' : 'output');
      });
    };
  }
  const isBack = flags.includes('saddr');
  return (flow) =>
    test((constant) => {
      const text = textOfConstant(constant);
      const isThere = /^(?:exists|1)$/.test(text);
      const isAsked = isThere || /^(?:missing|0)$/.test(text);
      if (isAsked && isBack && !flags.includes('oif')) return negateIf(!isThere, passesReverse(flow, flags));
      const { routing, destination: to, source: from } = flow;
      const way = isBack
        ? linksBack(flow, flags.includes('mark'))
        : routing.find({ to, from, mark: 0, input: loopbackInterface });
      const found = linksOf(way);
      if ('kind' in found) return found;
      const at = flags.includes('iif') ? flow.input : flow.output;
      if (!routing.isListed || (isRestricted && at === undefined && found.length > 0))
        return lacks({ kind: 'route', address: isBack ? from : to });
      const kept = isRestricted ? found.filter((link) => link === at) : found.slice(0, 1);
      return isAsked ? kept.length > 0 === isThere : kept.includes(text);
    });
}

function textOfConstant(value: Value): string {
  return value.kind === 'word' ? value.text : formatKey([value]);
}

export function textOfKey(key: readonly Value[]): string {
  return key.map(textOfConstant).join(' . ');
}

/** `NONE` means that no status bit is set, but every connection has one. */
function hasStatus(flow: Flow, text: string): Answer {
  return text === 'none' ? false : hasState(flow, text);
}

function addressedTo({ destination, isOwn }: Flow): string {
  if (isOwn || !isForMany(destination)) return 'host';
  return isBroadcast(destination) ? 'broadcast' : 'multicast';
}

/**
 * Reports whether a packet came in, or leaves, by the named bridge port. Only a packet from a bridge has an input port, and only a packet
 * that the bridge carries on has an output port (physdev_mt in xt_physdev.c, br_nf_pre_routing_finish).
 */
function isOfPort({ routing, input = '' }: Flow, pattern: Value, has: Answer): Answer {
  if (has !== true) return has;
  const ports = routing.portsOf(input);
  const named = ports.filter((port) => holdsValue(pattern, port) === true).length;
  const isOpen = ports.length === 0 || (named > 0 && named < ports.length);
  return isOpen ? circumstance('content') : named > 0;
}

/** If it is unknown whether a bridge carried the packet, the likely answer is no: most packets that rules see are routed. */
function isOfBridge(flow: Flow): Answer {
  const came = cameByBridge(flow);
  return typeof came === 'boolean' ? came : { ...came, likely: false };
}

function isBridged(flow: Flow): Answer {
  const came = cameByBridge(flow);
  return came === true ? flow.output === flow.input : came;
}

function ofConnection(flow: Flow, read: (connection: NonNullable<Flow['connection']>) => FieldReading): FieldReading {
  const connection = trackedConnection(flow);
  return connection ? read(connection) : absent;
}

function interfaceAt(flow: Flow, end: 'input' | 'output'): FieldReading {
  const name = flow[end];
  return name === undefined ? test((constant) => isInterface(flow, end, textOfConstant(constant))) : known(name);
}

function ofProgram(flow: Flow): FieldReading {
  return flow.isOwn ? test((constant) => isOfProgram(flow, textOfConstant(constant))) : absent;
}

function icmpType(flow: Flow, of: Flow['family']): FieldReading {
  const { protocol, family } = flow;
  if (protocol !== 'icmp' || family !== of) return absent;
  return test((constant) => {
    const text = textOfConstant(constant);
    return text === 'any' || (isEchoMessage(text, flow) ?? unreadValue(text));
  });
}

function isOfHeader({ family }: Flow, header: string): boolean {
  return (header === 'ip') === (family === 'ipv4');
}

function readAddressField(flow: Flow, name: 'saddr' | 'daddr'): FieldReading {
  const holds = (constant: Value) => (address: Address) => holdsValue(constant, address);
  if (name === 'saddr')
    return test((constant) => testSource(flow, constant, textOfConstant(constant), holds(constant)));
  return isUnknownHost(flow.destination)
    ? test((constant) => testDestination(flow, textOfConstant(constant), holds(constant)))
    : known(flow.destination);
}

/** A ping has no ports, and the bytes where TCP has ports never match a Service. */
function hasPorts({ protocol }: Flow, header: string): boolean {
  return header === 'th' ? portProtocols.has(protocol) : header === protocol;
}

function readPortField(flow: Flow, of: 'port' | 'sourcePort'): FieldReading {
  const port = flow[of];
  if (port !== undefined) return known(port);
  return test((constant) => {
    if (constant.kind === 'number') return isChosenPortIn({ first: constant.value, last: constant.value });
    return constant.kind === 'numbers' ? isChosenPortIn(constant) : unreadValue(textOfConstant(constant));
  });
}

function readProtocol({ protocol, family }: Flow): FieldReading {
  if (protocol === 'ipencap' || protocol === 'gre')
    return test((constant) => carrierNames[protocol].includes(textOfConstant(constant)));
  return known(protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol);
}

export type KnownReading = Exclude<FieldReading, { readonly kind: 'absent' }>;

export function readPacketFields(flow: Flow, selector: Selector): readonly KnownReading[] | undefined {
  const readings: KnownReading[] = [];
  for (const field of selector) {
    const reading = readPacketField(flow, field);
    if (reading.kind === 'absent') return undefined;
    readings.push(reading);
  }
  return readings;
}

function readPacketField(flow: Flow, { name, mask }: Field): FieldReading {
  const reading = readOf(name)(flow);
  if (mask === undefined || reading.kind === 'absent') return reading;
  if (reading.kind === 'value' && typeof reading.value === 'number') return known((reading.value & mask) >>> 0);
  return test(() => circumstance('content', `bits of ${name}`));
}

/** Reports whether a rule's constant includes a value. If their types differ, kpc misread the constant, so the answer is unknown. */
function holdsValue(constant: Value, value: FieldValue): Answer {
  const unread = (): Answer => unreadValue(textOfConstant(constant));
  switch (constant.kind) {
    case 'number':
      return typeof value === 'number' ? value === constant.value : unread();
    case 'numbers':
      return typeof value === 'number' ? constant.first <= value && value <= constant.last : unread();
    case 'word':
      if (typeof value !== 'string') return unread();
      return constant.text.endsWith('*') ? value.startsWith(constant.text.slice(0, -1)) : value === constant.text;
    case 'address':
      return typeof value === 'object' ? value.text === constant.address.text : unread();
    case 'network':
      return typeof value === 'object' ? contains(constant.network, value) : unread();
    case 'range': {
      const { first, last } = constant;
      if (typeof value !== 'object') return unread();
      return compareAddresses(first, value) <= 0 && compareAddresses(value, last) <= 0;
    }
    default:
      return constant satisfies never;
  }
}

export function holdsReading(constant: Value, reading: KnownReading): Answer {
  return reading.kind === 'value' ? holdsValue(constant, reading.value) : reading.test(constant);
}
