import {
  addressBits,
  compareAddresses,
  contains,
  parseAddress,
  parseNetwork,
  type Address,
} from '../kernel/address.ts';
import { parseNumber32, parsePortRange, type PortRange } from '../kernel/ports-and-marks.ts';
import {
  cameByBridge,
  hasTcpFlags,
  hasAddressType,
  hasState,
  isDrawn,
  isOfProgram,
  isPortIn,
  isReply,
  isSourcePortIn,
  testSource,
  trackedConnection,
  type Flow,
} from './flow.ts';
import { isEchoMessage } from './icmp.ts';
import {
  all,
  someOf,
  negateIf,
  circumstance,
  unreadRule,
  unreadValue,
  type Answer,
  type Circumstance,
} from './reason.ts';
import { isOfInterface, passesReverse } from './way-back.ts';

interface Option {
  readonly name: string;
  readonly values: readonly string[];
  readonly negated: boolean;
}

/** Whether a packet passes an option; undefined if its words are not understood. */
type Test = (flow: Flow, values: readonly string[], options: readonly Option[]) => Answer | undefined;

export function matchesWords(flow: Flow, words: readonly string[]): Answer {
  const start = words[0] === '!' ? 1 : 0;
  const match = words[start] === '-m' ? (words[start + 1] ?? '') : '';
  const options = splitOptions(words.slice(match === '' ? 0 : start + 2));
  const whole = wholeMatches.get(match);
  if (whole) return whole;
  if (match === 'rpfilter') return passesReverse(flow, new Set(options.map(({ name }) => name)));
  const tests = matches.get(match);
  if (!tests || options.length === 0) return unreadRule(words.join(' '));
  return all(
    ...options.map(({ name, values, negated }) => {
      const answer = tests.get(name)?.(flow, values, options);
      return negateIf(negated, answer ?? unreadRule(words.join(' ')));
    }),
  );
}

function splitOptions(words: readonly string[]): readonly Option[] {
  const options: { name: string; values: string[]; negated: boolean }[] = [];
  let negated = false;
  for (const word of words) {
    if (word === '!') negated = true;
    else if (/^--?[a-z]/.test(word)) {
      options.push({ name: word, values: [], negated });
      negated = false;
    } else options.at(-1)?.values.push(word);
  }
  return options;
}

/** Something kpc cannot know: a packet's content, its program, or what rules saw before. */
function unsaid(of: Circumstance): (flow: Flow) => Answer {
  return (flow) => (of === 'program' ? isOfProgram(flow, 'owner') : circumstance(of, of));
}

/** Matches that, with any option, ask for what the question leaves open. */
const wholeMatches: ReadonlyMap<string, Answer> = new Map<string, Answer>([
  ['limit', circumstance('rate', 'limit')],
  ['quota', circumstance('rate', 'quota')],
  ...['dscp', 'ecn', 'length', 'mac', 'string', 'time', 'tos', 'ttl', 'hl', 'u32', 'bpf', 'tcpmss'].map(
    (name) => [name, circumstance('content', name)] as const,
  ),
]);

const yes: Test = () => true;

/** Tests by match and option. Options that only change what is remembered are `yes`. */
const matches: ReadonlyMap<string, ReadonlyMap<string, Test>> = new Map(
  Object.entries({
    '': {
      '-f': () => false,
      '--syn': (flow) => flow.protocol === 'tcp' && flow.turn === 'first',
      '--tcp-flags': hasFlags,
      '--dport': (flow, [text = '']) => portsIn(text, (ports) => isPortIn(flow, ports)),
      '--sport': (flow, [text = '']) => portsIn(text, ({ first, last }) => isSourcePortIn(flow, first, last)),
    },
    state: { '--state': hasStates },
    conntrack: {
      '--ctstate': hasStates,
      '--ctstatus': (flow, [text = '']) => (text === 'NONE' ? false : hasStates(flow, [text])),
      '--ctdir': (flow, [text]) => (text === 'REPLY') === isReply(flow),
      '--ctorigdst': askedFor,
      '--ctorigdstport': ({ asked }, [text = '']) =>
        portsIn(text, ({ first, last }) => asked.port >= first && asked.port <= last),
    },
    multiport: {
      '--dports': (flow, [text = '']) =>
        someOf(readPortList(text), (ports) => (ports ? isPortIn(flow, ports) : unreadValue(text))),
      '--sports': (flow, [text = '']) => areSourcePorts(flow, text),
      '--ports': (flow, [text = '']) =>
        someOf(readPortList(text), (ports) =>
          ports ? someOf([isPortIn(flow, ports), areSourcePorts(flow, text)], (each) => each) : unreadValue(text),
        ),
    },
    iprange: {
      '--src-range': (flow, [text = '']) => {
        const range = readIpRange(text);
        return range && testSource(flow, { kind: 'range', ...range }, text, isBetween(range));
      },
      '--dst-range': (flow, [text = '']) => {
        const range = readIpRange(text);
        return range && isBetween(range)(flow.destination);
      },
    },
    connmark: {
      '--mark': (flow, [text = '']) => {
        const [value, mask = 0xffffffff, ...more] = text.split('/').map(parseNumber32);
        if (value === undefined || more.length > 0) return undefined;
        const connection = trackedConnection(flow);
        // An untracked packet passes neither this nor its negation.
        return connection ? (connection.mark & mask) >>> 0 === value : unreadRule('connmark of an untracked packet');
      },
    },
    // Ordinary packets have no routing header.
    rt: { '--rt-type': () => false },
    icmp: { '--icmp-type': isIcmpType },
    icmp6: { '--icmpv6-type': isIcmpType },
    owner: {
      '--uid-owner': unsaid('program'),
      '--gid-owner': unsaid('program'),
      '--socket-exists': unsaid('program'),
      '--suppl-groups': yes,
    },
    cgroup: { '--path': unsaid('program'), '--cgroup': unsaid('program') },
    physdev: {
      '--physdev-in': isOfPort('in'),
      '--physdev-out': isOfPort('out'),
      '--physdev-is-in': cameByBridge,
      '--physdev-is-out': isBridged,
      '--physdev-is-bridged': isBridged,
    },
    addrtype: {
      '--src-type': (flow, [text = ''], options) => hasTypes(flow, flow.source, text, options),
      '--dst-type': (flow, [text = ''], options) => hasTypes(flow, flow.destination, text, options),
      '--limit-iface-in': yes,
      '--limit-iface-out': yes,
    },
    pkttype: { '--pkt-type': (flow, [text]) => isAddressed(flow, text) },
    statistic: {
      '--mode': yes,
      '--probability': (flow, [text]) => isDrawn(flow, Number(text)),
      '--every': (flow, [text]) => isDrawn(flow, 1 / Number(text)),
      '--packet': yes,
    },
    hashlimit: {
      '--hashlimit-upto': unsaid('rate'),
      '--hashlimit': unsaid('rate'),
      '--hashlimit-above': unsaid('excess'),
      ...Object.fromEntries(
        'burst mode srcmask dstmask name htable-size htable-max htable-expire htable-gcinterval rate-match rate-interval'
          .split(' ')
          .map((name) => [`--hashlimit-${name}`, yes]),
      ),
    },
    connlimit: {
      '--connlimit-upto': unsaid('rate'),
      '--connlimit-above': unsaid('excess'),
      '--connlimit-mask': yes,
      '--connlimit-saddr': yes,
      '--connlimit-daddr': yes,
    },
    recent: {
      ...Object.fromEntries(
        'name rsource rdest mask seconds hitcount reap rttl'.split(' ').map((name) => [`--${name}`, yes]),
      ),
      '--set': yes,
      '--rcheck': unsaid('memory'),
      '--update': unsaid('memory'),
      '--remove': unsaid('memory'),
    },
    rpfilter: { '--loose': yes, '--validmark': yes, '--accept-local': yes, '--invert': yes },
    ipvs: { '--ipvs': ({ server }) => server !== undefined },
  } satisfies Readonly<Record<string, Readonly<Record<string, Test>>>>).map(([match, options]) => [
    match,
    new Map(Object.entries(options)),
  ]),
);

function portsIn(text: string, test: (ports: PortRange) => Answer): Answer | undefined {
  const ports = parsePortRange(text);
  return ports && test(ports);
}

function readPortList(text: string): readonly (PortRange | undefined)[] {
  return text.split(',').map(parsePortRange);
}

function areSourcePorts(flow: Flow, text: string): Answer {
  if (flow.protocol === 'icmp') return false;
  return someOf(readPortList(text), (ports) =>
    ports ? isSourcePortIn(flow, ports.first, ports.last) : unreadValue(text),
  );
}

/** An untracked packet passes neither this nor its negation. */
function askedFor(flow: Flow, [text = '']: readonly string[]): Answer | undefined {
  const { address } = flow.asked;
  const network = parseNetwork(text.includes('/') ? text : `${text}/${addressBits[address.family]}`);
  if (!network || !trackedConnection(flow)) return undefined;
  return contains(network, address);
}

function hasStates(flow: Flow, [text = '']: readonly string[]): Answer {
  return someOf(text.split(','), (state) => hasState(flow, state));
}

const flags = ['fin', 'syn', 'rst', 'psh', 'ack', 'urg'] as const;

function hasFlags(flow: Flow, words: readonly string[]): Answer {
  const list = (text: string): readonly string[] => (text === 'all' ? flags : text === 'none' ? [] : text.split(','));
  const [mask = [], wanted = []] = words.map((text) => list(text.toLowerCase()));
  return hasTcpFlags(flow, { kind: 'tcp-flags', mask, operator: '==', flags: wanted });
}

function isIcmpType(flow: Flow, [text = '']: readonly string[]): Answer {
  const { protocol } = flow;
  if (protocol !== 'icmp' || text === 'any') return protocol === 'icmp';
  return isEchoMessage(text, flow) ?? unreadValue(text);
}

/**
 * Whether a packet came in by that port of a bridge, or leaves by it. Only one from a bridge has a port, and one to
 * leave by only if the bridge carries it on (physdev_mt in xt_physdev.c, br_nf_pre_routing_finish).
 */
function isOfPort(end: 'in' | 'out'): Test {
  return (flow, [pattern = '']) => {
    const has = end === 'in' ? cameByBridge(flow) : isBridged(flow);
    if (has !== true) return has;
    const ports = flow.routing.portsOf(flow.input ?? '');
    const isNamed = (port: string): boolean =>
      pattern.endsWith('+') ? port.startsWith(pattern.slice(0, -1)) : port === pattern;
    const named = ports.filter(isNamed).length;
    const isOpen = ports.length === 0 || (named > 0 && named < ports.length);
    return isOpen ? circumstance('content', 'a port of a bridge') : named > 0;
  };
}

function isBridged(flow: Flow): Answer {
  const came = cameByBridge(flow);
  return came === true ? flow.output === flow.input : came;
}

/** An option limits the test to addresses of the interface itself. */
function hasTypes(flow: Flow, address: Address, text: string, options: readonly Option[]): Answer {
  const answer = someOf(text.split(','), (type) => hasAddressType(flow, address, type));
  const limit = options.find(({ name }) => name.startsWith('--limit-iface'))?.name;
  if (limit === undefined || answer === false) return answer;
  return isOfInterface(flow, address, text, limit.endsWith('-in') ? 'input' : 'output');
}

function isAddressed({ destination, isOwn, family }: Flow, type = ''): Answer {
  const isMulticast =
    family === 'ipv4' ? /^(22[4-9]|23\d)\./.test(destination.text) : destination.text.startsWith('ff');
  if (type === 'multicast') return isMulticast;
  if (type === 'broadcast') return destination.text === '255.255.255.255';
  return type === 'unicast' ? !isMulticast && !isOwn : unreadValue(type);
}

interface Range {
  readonly first: Address;
  readonly last: Address;
}

function readIpRange(text: string): Range | undefined {
  const [first, last] = text.split('-').map((part) => parseAddress(part));
  return first && { first, last: last ?? first };
}

function isBetween({ first, last }: Range): (address: Address) => boolean {
  return (address) => compareAddresses(first, address) <= 0 && compareAddresses(address, last) <= 0;
}
