// Reads the conditions of iptables rules into the form that is also used for nft's rules.
import { isNetworkRange, type AddressRange } from '../address-range.ts';
import type { Family } from '../address.ts';
import { nftFamily } from '../nftables/format.ts';
import { fieldType, readValue } from '../nftables/parse-match.ts';
import type { Match, Right, TcpFlags, Value } from '../nftables/table.ts';
import { parsePortRange, readMarkMask, type PortRange } from '../ports-and-marks.ts';
import { isNfacctCounter } from './iptables-meaning.ts';
import type { Rule } from './iptables.ts';
import { actionOfWords, type RuleAction } from './other-targets.ts';
import { formatArg, nameProtocol, type RuleArg } from './rule-args.ts';

/** Fields are named as in nft, or else after iptables' options. */
type Condition =
  | Match
  | TcpFlags
  | { readonly kind: 'limit'; readonly isOver: boolean }
  | { readonly kind: 'chance'; readonly probability: number }
  | { readonly kind: 'unread'; readonly text: string };

export type RuleTerm = Condition | RuleAction;

/**
 * Reads a rule's conditions and action; undefined if the rule changes no packet. Random conditions come last, so that only packets that
 * match the others draw a number.
 */
export function readTerms({ args }: Rule, family: Family) {
  const jump = args.find((arg) => arg.kind === 'jump');
  const action = jump && actionOf(jump);
  if (!action) return undefined;
  const conditions = conditionsOf(args, family);
  const isDrawn = ({ kind }: Condition): boolean => kind === 'chance';
  const [drawn, others] = [conditions.filter(isDrawn), conditions.filter((each) => !isDrawn(each))];
  return { expressions: [...others, ...drawn, action], action };
}

/** Returns a condition that the fields equal one of the keys. Without keys, it never matches. */
function asksFields(names: readonly string[], right: Right, isNegated: boolean | undefined, mask?: number): Match {
  const left = names.map((name) => ({ name, mask }));
  return { kind: 'match', left, operator: isNegated ? '!=' : undefined, right };
}

function among(name: string, values: readonly Value[], isNegated?: boolean, mask?: number): Match {
  return asksFields([name], { elements: values.map((value) => ({ key: [value] })) }, isNegated, mask);
}

const never = among('never', []);

function listedWords(text: string): readonly Value[] {
  return text.split(',').map((each) => ({ kind: 'word', text: each }));
}

/** iptables ends a name with `+` where nft ends it with `*`. No interface has an asterisk in its name. */
function interfaces(name: string): readonly Value[] {
  return name.endsWith('*') ? [] : [{ kind: 'word', text: name.replace(/\+$/, '*') }];
}

function valueOfRange(range: AddressRange): Value {
  return isNetworkRange(range) ? { kind: 'network', network: range } : { kind: 'address', address: range };
}

function valueOfPorts({ first, last }: PortRange): Value {
  return first === last ? { kind: 'number', value: first } : { kind: 'numbers', first, last };
}

/** Reads conditions. `family` is the family of the IP header that has the address fields. */
export function conditionsOf(args: readonly RuleArg[], family: Family = 'ipv4'): readonly Condition[] {
  return args.flatMap((arg) => conditionsOfArg(arg, family));
}

function conditionsOfArg(arg: RuleArg, family: Family): Condition | readonly Condition[] {
  switch (arg.kind) {
    case 'source':
      return among(`${nftFamily[family]} saddr`, [valueOfRange(arg.range)], arg.negated);
    case 'destination':
      return among(`${nftFamily[family]} daddr`, [valueOfRange(arg.range)], arg.negated);
    case 'in-interface':
      return among('iifname', interfaces(arg.name), arg.negated);
    case 'out-interface':
      return among('oifname', interfaces(arg.name), arg.negated);
    case 'protocol': {
      const protocol = nameProtocol(arg.protocol);
      if (protocol === 'all') return arg.negated ? never : [];
      return among('meta l4proto', listedWords(protocol), arg.negated);
    }
    case 'destination-port':
      return among('th dport', [valueOfPorts(arg.ports)], arg.negated);
    case 'source-port':
      return among('th sport', [valueOfPorts(arg.ports)], arg.negated);
    case 'mark':
      return among('mark', [{ kind: 'number', value: arg.value }], arg.negated, arg.mask);
    case 'conntrack-state':
      return among('ct state', listedWords(arg.states.join().toLowerCase()), arg.negated);
    case 'source-type':
      return among('fib saddr type', listedWords(arg.type.toLowerCase()), arg.negated);
    case 'destination-type':
      return among('fib daddr type', listedWords(arg.type.toLowerCase()), arg.negated);
    case 'match-set':
      return asksFields(arg.directions, { set: arg.set }, arg.negated);
    case 'physdev-is-in':
      return among('physdev-is-in', listedWords(''), arg.negated);
    case 'virtual-server': {
      const { address, protocol, port } = arg;
      const key = [{ kind: 'address', address }, ...listedWords(protocol), { kind: 'number', value: port }] as const;
      return asksFields(['ipvs vaddr', 'ipvs vproto', 'ipvs vport'], { elements: [{ key }] }, false);
    }
    case 'statistic':
      return { kind: 'chance', probability: Number(arg.probability) };
    case 'recent':
      return arg.action.kind === 'set' ? [] : among('recent client', listedWords(''));
    case 'module':
      return idleModules.has(arg.name) ? [] : conditionsOfWords(['-m', arg.name], family);
    case 'comment':
    case 'jump':
      return [];
    case 'unshown-port':
      return { kind: 'unread', text: formatArg(arg) };
    case 'other':
      return isNfacctCounter(arg) ? [] : conditionsOfWords(arg.words, family);
    default:
      return arg satisfies never;
  }
}

/** Modules that match every packet if they have no option. */
const idleModules: ReadonlySet<string> = new Set(
  'addrtype comment conntrack icmp icmp6 ipvs mark multiport sctp set state statistic tcp udp'.split(' '),
);

function actionOf({ target, goto }: RuleArg & { readonly kind: 'jump' }): RuleAction | undefined {
  switch (target.kind) {
    case 'chain':
      return { kind: goto ? 'goto' : 'jump', chain: target.chain };
    case 'accept':
    case 'return':
    case 'drop':
    case 'reject':
    case 'masquerade':
      return target;
    case 'dnat':
      return { kind: 'dnat', target };
    case 'mark':
      return { kind: 'change-mark', of: 'packet', change: { stays: ~target.mask >>> 0, flip: target.value } };
    case 'other':
      return actionOfWords(target.words);
    default:
      return target satisfies never;
  }
}

interface Option {
  readonly name: string;
  readonly values: readonly string[];
  readonly negated: boolean;
}

function conditionsOfWords(words: readonly string[], family: Family): readonly Condition[] {
  const module = words[0] === '-m' ? (words[1] ?? '') : '';
  const options = splitOptions(words.slice(module === '' ? 0 : 2));
  const unread: Condition = { kind: 'unread', text: words.join(' ') };
  if (module === 'limit' || module === 'quota')
    return [{ kind: 'limit', isOver: options.some(({ negated }) => negated) }];
  if (module === 'rpfilter') return [reversePath(options.map(({ name }) => name))];
  if (contents.has(module)) return [among(module, listedWords(words.slice(2).join(' ')))];
  if (options.length === 0) return [unread];
  return options.flatMap((option) => readWrittenOption(module, option, family, options) ?? unread);
}

function splitOptions(words: readonly string[]): readonly Option[] {
  const options: { name: string; values: string[]; negated: boolean }[] = [];
  let negated = false;
  for (const each of words) {
    if (each === '!') negated = true;
    else if (/^--?[a-z]/.test(each)) {
      options.push({ name: each, values: [], negated });
      negated = false;
    } else options.at(-1)?.values.push(each);
  }
  return options;
}

/** Modules that test facts which kpc does not know about a packet, such as its length. */
const contents: ReadonlySet<string> = new Set('dscp ecn length mac string time tos ttl hl u32 bpf tcpmss'.split(' '));

/** The field that each option compares with one or several values. IP stands for the family's header, `ip` or `ip6`. */
const fields: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'ct state': '--state --ctstate',
    ctstatus: '--ctstatus',
    'ct direction': '--ctdir',
    'ct original IP daddr': '--ctorigdst',
    'ct original proto-dst': '--ctorigdstport',
    'th dport': '--dports',
    'th sport': '--sports',
    'th sport or dport': '--ports',
    'IP saddr': '--src-range',
    'IP daddr': '--dst-range',
    'icmp type': '--icmp-type',
    'icmpv6 type': '--icmpv6-type',
    owner: '--uid-owner --gid-owner --socket-exists --path --cgroup',
    'physdev-in': '--physdev-in',
    'physdev-out': '--physdev-out',
    'physdev-is-in': '--physdev-is-in',
    'physdev-is-bridged': '--physdev-is-out --physdev-is-bridged',
    'meta pkttype': '--pkt-type',
    recent: '--rcheck --update --remove',
    ipvs: '--ipvs',
  }).flatMap(([field, options]) => options.split(' ').map((option) => [option, field] as const)),
);

/** Modules whose other options only change what the module remembers or counts. */
const countingModules: ReadonlySet<string> = new Set('addrtype connlimit hashlimit owner recent statistic'.split(' '));

function readWrittenOption(
  module: string,
  { name, values: [text = '', second = ''], negated }: Option,
  family: Family,
  options: readonly Option[],
): Condition | readonly Condition[] | undefined {
  const field = fields.get(name)?.replace('IP', nftFamily[family]);
  const read = field === undefined ? undefined : readValues(field, text);
  if (field !== undefined) return read && among(field, read, negated);
  switch (`${module} ${name}`.trim()) {
    // An ordinary packet is no fragment, and has no routing header.
    case '-f':
    case 'rt --rt-type':
      return negated ? [] : never;
    case '--syn':
      return tcpFlags('fin,syn,rst,ack', 'syn', negated);
    case '--tcp-flags':
      return tcpFlags(text, second, negated);
    case 'connmark --mark': {
      const mark = readMarkMask(text);
      return mark && among('ct mark', [{ kind: 'number', value: mark.value }], negated, mark.mask);
    }
    case 'addrtype --src-type':
    case 'addrtype --dst-type': {
      // The option --limit-iface-… restricts the test to the interface's own addresses.
      const limit = options.find((each) => each.name.startsWith('--limit-iface'))?.name;
      const end = limit === undefined ? '' : ` . ${limit.endsWith('-in') ? 'iif' : 'oif'}`;
      return among(
        `fib ${name === '--src-type' ? 'saddr' : 'daddr'}${end} type`,
        listedWords(text.toLowerCase()),
        negated,
      );
    }
    case 'statistic --probability':
      return { kind: 'chance', probability: Number(text) };
    case 'statistic --every':
      return { kind: 'chance', probability: 1 / Number(text) };
    case 'hashlimit --hashlimit':
    case 'hashlimit --hashlimit-upto':
    case 'connlimit --connlimit-upto':
      return { kind: 'limit', isOver: negated };
    case 'hashlimit --hashlimit-above':
    case 'connlimit --connlimit-above':
      return { kind: 'limit', isOver: !negated };
    default:
      return countingModules.has(module) ? [] : undefined;
  }
}

function readValues(field: string, text: string): readonly Value[] | undefined {
  if (field.startsWith('physdev')) return interfaces(text);
  const type = fieldType({ name: field });
  const values = text.split(',').map((each) => {
    const isPorts = type === 'number' || field.startsWith('th ');
    if (!isPorts) return readValue(spellings.get(each) ?? each.toLowerCase(), type);
    const ports = parsePortRange(each);
    return ports && valueOfPorts(ports);
  });
  return values.every((each) => each !== undefined) ? values : undefined;
}

const spellings: ReadonlyMap<string, string> = new Map([
  ['SEEN_REPLY', 'seen-reply'],
  ['unicast', 'host'],
]);

const flags = ['fin', 'syn', 'rst', 'psh', 'ack', 'urg'] as const;

function tcpFlags(mask: string, wanted: string, isNegated: boolean): TcpFlags {
  const list = (text: string) => (text === 'ALL' ? flags : text === 'NONE' ? [] : text.toLowerCase().split(','));
  return { kind: 'tcp-flags', mask: list(mask), operator: isNegated ? '!=' : '==', flags: list(wanted) };
}

/** Reads `-m rpfilter`, which tests for a route back to the sender through the interface on which the packet arrived. */
function reversePath(options: readonly string[]): Match {
  const has = (option: string, name: string): string => (options.includes(option) ? ` . ${name}` : '');
  const end = options.includes('--loose') ? '' : ' . iif';
  const field = `fib saddr${has('--validmark', 'mark')}${has('--accept-local', 'local')}${end} check`;
  return among(field, listedWords('exists'), options.includes('--invert'));
}
