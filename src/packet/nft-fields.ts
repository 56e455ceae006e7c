import { compareAddresses, contains, type Address } from '../kernel/address.ts';
import type { Value, Field, Selector } from '../kernel/nftables/table.ts';
import { formatKey } from '../kernel/nftables/format.ts';
import type { ValueType } from '../kernel/nftables/parse-rule-text.ts';
import {
  hasAddressType,
  hasState,
  isReply,
  isInterface,
  isOfProgram,
  isPortIn,
  isSourcePortIn,
  testSource,
  trackedConnection,
  type Flow,
} from './flow.ts';
import { isEchoMessage } from './icmp.ts';
import { isOfInterface, linksBack, linksOf } from './way-back.ts';
import { loopbackInterface } from './routing/routing.ts';
import { circumstance, lacks, unreadValue, type Answer } from './reason.ts';

/** A packet's value in a field: an address, a port or mark, or an nft word. */
export type FieldValue = Address | number | string;

type Reading =
  | { readonly kind: 'value'; readonly value: FieldValue }
  /** A field with several values, such as connection states or address types, or an uncertain one. */
  | { readonly kind: 'test'; readonly test: (constant: Value) => Answer }
  /** The packet has no such field: a rule on it ends, even if negated. */
  | { readonly kind: 'absent' };

const absent: Reading = { kind: 'absent' };

export interface KnownField {
  readonly type: ValueType;
  readonly read: (flow: Flow) => Reading;
}

function known(value: FieldValue): Reading {
  return { kind: 'value', value };
}

function test(answer: (constant: Value) => Answer): Reading {
  return { kind: 'test', test: answer };
}

/** A field that the question about a packet leaves open. */
function unsaid(name: string, type: ValueType = 'word'): KnownField {
  return { type, read: () => test((constant) => circumstance('content', `${name} ${formatKey([constant])}`)) };
}

/** Fields by the name that nft prints. `th` is the port of TCP, UDP or SCTP. */
const knownFields: ReadonlyMap<string, KnownField> = new Map<string, KnownField>([
  ['mark', { type: 'number', read: ({ mark }) => known(mark) }],
  ['ct mark', { type: 'number', read: (flow) => ofConnection(flow, ({ mark }) => known(mark)) }],
  ['ct state', { type: 'ct-state', read: (flow) => test((state) => hasState(flow, textOf(state))) }],
  [
    'ct status',
    { type: 'ct-status', read: (flow) => ofConnection(flow, () => test((each) => hasState(flow, textOf(each)))) },
  ],
  [
    'ct direction',
    { type: 'word', read: (flow) => ofConnection(flow, () => known(isReply(flow) ? 'reply' : 'original')) },
  ],
  ['ct zone', { type: 'number', read: (flow) => ofConnection(flow, () => known(flow.zone)) }],
  ['ct original proto-dst', { type: 'number', read: (flow) => ofConnection(flow, () => known(flow.asked.port)) }],
  ['ct original ip daddr', { type: 'address', read: (flow) => ofConnection(flow, () => known(flow.asked.address)) }],
  ['ct original ip6 daddr', { type: 'address', read: (flow) => ofConnection(flow, () => known(flow.asked.address)) }],
  ['meta l4proto', { type: 'protocol', read: (flow) => known(protocolName(flow)) }],
  ['meta nfproto', { type: 'word', read: ({ family }) => known(family) }],
  ['meta protocol', { type: 'word', read: ({ family }) => known(family === 'ipv4' ? 'ip' : 'ip6') }],
  ['iif', { type: 'word', read: (flow) => interfaceAt(flow, 'input') }],
  ['iifname', { type: 'word', read: (flow) => interfaceAt(flow, 'input') }],
  ['oif', { type: 'word', read: (flow) => interfaceAt(flow, 'output') }],
  ['oifname', { type: 'word', read: (flow) => interfaceAt(flow, 'output') }],
  ['meta skuid', { type: 'word', read: ofProgram }],
  ['meta skgid', { type: 'word', read: ofProgram }],
  [
    'meta pkttype',
    { type: 'word', read: ({ isOwn }) => (isOwn ? unsaid('meta pkttype').read({} as Flow) : known('host')) },
  ],
  ['icmp type', { type: 'word', read: (flow) => icmpType(flow, 'ipv4') }],
  ['icmpv6 type', { type: 'word', read: (flow) => icmpType(flow, 'ipv6') }],
  ...['ip', 'ip6'].flatMap((header) =>
    (['saddr', 'daddr'] as const).map((name): readonly [string, KnownField] => [
      `${header} ${name}`,
      { type: 'address', read: (flow) => (isOfHeader(flow, header) ? addressAt(flow, name) : absent) },
    ]),
  ),
  ['ip protocol', { type: 'protocol', read: (flow) => (isOfHeader(flow, 'ip') ? known(protocolName(flow)) : absent) }],
  ['ip6 nexthdr', { type: 'protocol', read: (flow) => (isOfHeader(flow, 'ip6') ? known(protocolName(flow)) : absent) }],
  ...['th', 'tcp', 'udp', 'sctp', 'udplite', 'dccp'].flatMap((header): readonly (readonly [string, KnownField])[] => [
    [`${header} dport`, { type: 'number', read: (flow) => (hasPorts(flow, header) ? portAt(flow, 'port') : absent) }],
    [
      `${header} sport`,
      { type: 'number', read: (flow) => (hasPorts(flow, header) ? portAt(flow, 'sourcePort') : absent) },
    ],
  ]),
  ...(
    'ip ttl,ip6 hoplimit,ip length,ip6 length,ip dscp,ip6 dscp,ip id,ip frag-off,ip ecn,ip version,ip hdrlength,' +
    'meta length,meta priority,meta iifgroup,meta oifgroup,meta iiftype,meta oiftype,meta rtclassid,meta time,meta hour,' +
    'meta day,meta cpu,meta cgroup,meta ibrname,meta obrname,meta iifkind,meta oifkind,ether saddr,ether daddr,' +
    'ether type,vlan id,ct helper,ct expiration,ct label,ct bytes,ct packets,ct avgpkt,tcp sequence,tcp window,' +
    'tcp doff,tcp option maxseg size,udp length,icmp code,icmpv6 code,icmp id,rt classid,rt ipsec,ipsec in reqid'
  )
    .split(',')
    .map((name) => [name, unsaid(name)] as const),
]);

export function findField(name: string): KnownField | undefined {
  const [, flags = '', asked] = /^fib (.+) (type|oif|oifname|check)$/.exec(name) ?? [];
  return asked === undefined ? knownFields.get(name) : fibField(flags.split(' . '), asked);
}

/** The names of all fields except those of fib, split into words. */
export const fieldNames: readonly string[] = [...knownFields.keys()];

function fibField(flags: readonly string[], asked: string): KnownField {
  const isRestricted = flags.includes('iif') || flags.includes('oif');
  if (asked === 'type') {
    const read = (flow: Flow): Reading => {
      const address = flags.includes('saddr') ? flow.source : flow.destination;
      return test((constant) => {
        const answer = hasAddressType(flow, address, textOf(constant));
        if (!isRestricted || answer === false) return answer;
        return isOfInterface(flow, address, textOf(constant), flags.includes('iif') ? 'input' : 'output');
      });
    };
    return { type: 'address-type', read };
  }
  const read = (flow: Flow): Reading =>
    test((constant) => {
      const isBack = flags.includes('saddr');
      const links = isBack
        ? linksBack(flow, flags.includes('mark'))
        : flow.routing.find({ to: flow.destination, from: flow.source, mark: 0, input: loopbackInterface });
      const found = linksOf(links);
      if ('kind' in found) return found;
      const at = flags.includes('iif') ? flow.input : flags.includes('oif') ? flow.output : undefined;
      const isBound = flags.includes('iif') || flags.includes('oif');
      const kept = isBound ? found.filter((link) => link === at) : found.slice(0, 1);
      const text = textOf(constant);
      // Without routes, assumes that the packet goes back as it came, unless the question names another interface.
      const isUsual = isBack && (at === undefined || at === '' || kept.length > 0);
      if (!flow.routing.isListed && isUsual && /^(?:missing|0|exists)$/.test(text)) return text === 'exists';
      if (!flow.routing.isListed || (isBound && at === undefined && found.length > 0))
        return lacks({ kind: 'route', address: isBack ? flow.source : flow.destination });
      if (text === 'missing' || text === '0') return kept.length === 0;
      return text === 'exists' || text === '1' ? kept.length > 0 : kept.includes(text);
    });
  return { type: 'word', read };
}

function textOf(value: Value): string {
  return formatKey([value]).replaceAll('"', '');
}

function ofConnection(flow: Flow, read: (connection: NonNullable<Flow['connection']>) => Reading): Reading {
  const connection = trackedConnection(flow);
  return connection ? read(connection) : absent;
}

/** An unknown interface is still known not to be certain ones. */
function interfaceAt(flow: Flow, end: 'input' | 'output'): Reading {
  const name = flow[end];
  return name === undefined ? test((constant) => isInterface(flow, end, textOf(constant), '*')) : known(name);
}

function ofProgram(flow: Flow): Reading {
  return flow.isOwn ? test((constant) => isOfProgram(flow, textOf(constant))) : absent;
}

function icmpType(flow: Flow, of: Flow['family']): Reading {
  const { protocol, family } = flow;
  if (protocol !== 'icmp' || family !== of) return absent;
  return test((constant) => isEchoMessage(textOf(constant), flow) ?? unreadValue(textOf(constant)));
}

/** Tables of family inet see packets of both families. */
function isOfHeader({ family }: Flow, header: string): boolean {
  return (header === 'ip') === (family === 'ipv4');
}

function addressAt(flow: Flow, name: 'saddr' | 'daddr'): Reading {
  if (name === 'daddr') return known(flow.destination);
  return test((constant) => testSource(flow, constant, textOf(constant), (source) => holds(constant, source)));
}

/** A ping has no ports: the bytes in their place never match a Service. */
function hasPorts({ protocol }: Flow, header: string): boolean {
  return header === 'th' ? protocol !== 'icmp' : header === protocol;
}

function portAt(flow: Flow, of: 'port' | 'sourcePort'): Reading {
  const port = flow[of];
  if (port !== undefined) return known(port);
  const among = (first: number, last: number): Answer =>
    of === 'port' ? isPortIn(flow, { first, last }) : isSourcePortIn(flow, first, last);
  return test((constant) => {
    if (constant.kind === 'number') return among(constant.value, constant.value);
    return constant.kind === 'numbers' ? among(constant.first, constant.last) : unreadValue(textOf(constant));
  });
}

function protocolName({ protocol, family }: Flow): string {
  return protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol;
}

export type Known = Exclude<Reading, { readonly kind: 'absent' }>;

export function readFields(flow: Flow, selector: Selector): readonly Known[] | undefined {
  const readings: Known[] = [];
  for (const field of selector) {
    const reading = readField(flow, field);
    if (reading.kind === 'absent') return undefined;
    readings.push(reading);
  }
  return readings;
}

function readField(flow: Flow, { name, mask }: Field): Reading {
  const reading = findField(name)?.read(flow) ?? test(() => circumstance('content', name));
  if (mask === undefined || reading.kind === 'absent') return reading;
  if (reading.kind === 'value' && typeof reading.value === 'number') return known((reading.value & mask) >>> 0);
  return test(() => circumstance('content', `bits of ${name}`));
}

/** Unknown if their types differ: kpc then misread the constant. */
function holds(constant: Value, value: FieldValue): Answer {
  const unread = (): Answer => unreadValue(formatKey([constant]));
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

export function holdsReading(constant: Value, reading: Known): Answer {
  return reading.kind === 'value' ? holds(constant, reading.value) : reading.test(constant);
}
