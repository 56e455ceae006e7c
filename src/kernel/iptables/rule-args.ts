import type { Address } from '../address.ts';
import { parseAddressRange, singleAddress, type AddressRange } from '../address-range.ts';
import {
  formatMark,
  formatSocketAddress,
  readMarkMask,
  formatPortRange,
  parsePort,
  parsePortRange,
  parseTarget,
  type PortRange,
} from '../ports-and-marks.ts';

/**
 * An option or match of a rule. An argument with a name or mask in place of an address or port, which only other programs write, is of kind
 * `other`.
 */
export type RuleArg =
  | { readonly kind: 'source' | 'destination'; readonly range: AddressRange; readonly negated?: boolean }
  | { readonly kind: 'in-interface' | 'out-interface'; readonly name: string; readonly negated?: boolean }
  | { readonly kind: 'protocol'; readonly protocol: string; readonly negated?: boolean }
  | { readonly kind: 'module'; readonly name: string }
  | { readonly kind: 'destination-port' | 'source-port'; readonly ports: PortRange; readonly negated?: boolean }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'mark'; readonly value: number; readonly mask: number; readonly negated?: boolean }
  | { readonly kind: 'conntrack-state'; readonly states: readonly string[]; readonly negated?: boolean }
  | { readonly kind: 'source-type' | 'destination-type'; readonly type: string; readonly negated?: boolean }
  | {
      readonly kind: 'match-set';
      readonly set: string;
      readonly directions: readonly ('src' | 'dst')[];
      readonly negated?: boolean;
    }
  | { readonly kind: 'physdev-is-in'; readonly negated?: boolean }
  /** `-m ipvs --vaddr A --vproto P --vport N`, with the protocol's name in lower case. */
  | { readonly kind: 'virtual-server'; readonly address: Address; readonly protocol: string; readonly port: number }
  /** `-m statistic --mode random --probability P`. The text is as written; kube-proxy writes ten decimals. */
  | { readonly kind: 'statistic'; readonly probability: string }
  | {
      readonly kind: 'recent';
      readonly name: string;
      readonly action:
        { readonly kind: 'set' } | { readonly kind: 'rcheck'; readonly seconds: number; readonly reap: boolean };
    }
  | { readonly kind: 'jump'; readonly target: RuleTarget; readonly goto?: boolean }
  /** A destination port that the rule has but the listing does not show. */
  | { readonly kind: 'unshown-port' }
  /** Words that kpc does not interpret, but compares and writes again. */
  | { readonly kind: 'other'; readonly words: readonly string[] };

export type RuleTarget =
  | { readonly kind: 'chain'; readonly chain: string }
  | { readonly kind: 'accept' | 'drop' | 'return' }
  | { readonly kind: 'reject'; readonly with?: string | undefined }
  | { readonly kind: 'masquerade'; readonly randomFully: boolean }
  | { readonly kind: 'dnat'; readonly address: Address; readonly port: number | undefined }
  /** mark = (mark & ~mask) ^ value, as in --set-xmark. Written as --or-mark or --xor-mark if that says the same. */
  | { readonly kind: 'mark'; readonly operation: 'or' | 'xor' | 'set'; readonly value: number; readonly mask: number }
  | { readonly kind: 'other'; readonly words: readonly string[] };

const readers: ReadonlyMap<string, (value: string) => RuleArg | undefined> = new Map<
  string,
  (value: string) => RuleArg | undefined
>([
  ['-s', (text) => readRangeMatch('source', text)],
  ['-d', (text) => readRangeMatch('destination', text)],
  ['-i', (name) => ({ kind: 'in-interface', name })],
  ['-o', (name) => ({ kind: 'out-interface', name })],
  ['-p', (protocol) => ({ kind: 'protocol', protocol })],
  ['--sport', (text) => readPortMatch('source-port', text)],
  ['--dport', (text) => readPortMatch('destination-port', text)],
  ['comment --comment', (text) => ({ kind: 'comment', text })],
  ['mark --mark', readMarkMatch],
  ['conntrack --ctstate', (text) => ({ kind: 'conntrack-state', states: text.split(',') })],
  ['addrtype --src-type', (type) => ({ kind: 'source-type', type })],
  ['addrtype --dst-type', (type) => ({ kind: 'destination-type', type })],
]);

export function readOption(option: string, value: string, negated: boolean): RuleArg | undefined {
  const arg = readers.get(option)?.(value);
  if (!arg || !negated) return arg;
  return arg.kind === 'comment' ? undefined : ({ ...arg, negated } as RuleArg);
}

export function formatArg(arg: RuleArg): string {
  switch (arg.kind) {
    case 'source':
    case 'destination':
      return `${not(arg)}${arg.kind === 'source' ? '-s' : '-d'} ${arg.range.text}`;
    case 'in-interface':
    case 'out-interface':
      return `${not(arg)}${arg.kind === 'in-interface' ? '-i' : '-o'} ${formatWord(arg.name)}`;
    case 'protocol':
      return `${not(arg)}-p ${formatWord(arg.protocol)}`;
    case 'source-port':
    case 'destination-port':
      return `${not(arg)}${arg.kind === 'source-port' ? '--sport' : '--dport'} ${formatPortRange(arg.ports)}`;
    case 'comment':
      return `-m comment --comment ${formatWord(arg.text)}`;
    case 'mark':
      return `-m mark ${not(arg)}--mark ${formatMaskedMark(arg)}`;
    case 'conntrack-state':
      return `-m conntrack ${not(arg)}--ctstate ${formatWord(arg.states.join(','))}`;
    case 'source-type':
    case 'destination-type':
      return `-m addrtype ${not(arg)}--${arg.kind === 'source-type' ? 'src' : 'dst'}-type ${formatWord(arg.type)}`;
    case 'module':
      return `-m ${formatWord(arg.name)}`;
    case 'match-set':
      return `-m set ${not(arg)}--match-set ${formatWord(arg.set)} ${arg.directions.join(',')}`;
    case 'physdev-is-in':
      return `-m physdev ${not(arg)}--physdev-is-in`;
    case 'virtual-server':
      return `-m ipvs --vaddr ${arg.address.text} --vproto ${formatWord(arg.protocol)} --vport ${arg.port}`;
    case 'statistic':
      return `-m statistic --mode random --probability ${formatWord(arg.probability)}`;
    case 'recent': {
      const { name, action } = arg;
      const check =
        action.kind === 'set' ? '--set' : `--rcheck --seconds ${action.seconds}${action.reap ? ' --reap' : ''}`;
      return `-m recent --name ${formatWord(name)} ${check}`;
    }
    case 'jump':
      return `${arg.goto ? '-g' : '-j'} ${formatTarget(arg.target)}`;
    case 'unshown-port':
      return '--dport unknown';
    case 'other':
      return formatWords(arg.words);
    default:
      return arg satisfies never;
  }
}

function not(arg: { readonly negated?: boolean | undefined }): string {
  return arg.negated ? '! ' : '';
}

function readRangeMatch<K extends 'source' | 'destination'>(kind: K, text: string) {
  const range = parseAddressRange(text);
  return range && !isMapped(range, text) ? { kind, range } : undefined;
}

function readPortMatch(kind: 'source-port' | 'destination-port', text: string): RuleArg | undefined {
  const ports = parsePortRange(text);
  return ports && { kind, ports };
}

/** Reports whether an IPv4-mapped address was read as IPv4. iptables treats such an address as IPv6, so kpc could not write it back. */
function isMapped({ family }: AddressRange, text: string): boolean {
  return family === 'ipv4' && !/^\d+\./.test(text);
}

const serverPattern = /^ipvs(?=.* --vaddr (\S+))(?=.* --vproto (\S+))(?=.* --vport (\d+)(?!\S))(?: --v\w+ \S+){3}$/;

/**
 * Matches `-m recent` as kube-proxy writes it, and as iptables-save does, with the name last and two defaults. Old versions lack --mask.
 */
const recentPattern =
  /^recent(?: --name (\S+))? (?:(--set)|--rcheck --seconds (\d{1,9})( --reap)?)(?: --name (\S+)(?: --mask (?:255.255.255.255|ffff(?::ffff){7}))?(?: --rsource)?)?$/;

export function readLongMatch(words: readonly string[]): RuleArg | undefined {
  if (words.some((word) => /\s/.test(word))) return undefined;
  const text = words.join(' ');
  const [, probability] = /^statistic --mode random --probability (\S+)$/.exec(text) ?? [];
  if (probability !== undefined) return { kind: 'statistic', probability };
  const [, notIn, isIn] = /^physdev (! )?(--physdev-is-in)$/.exec(text) ?? [];
  if (isIn !== undefined) return { kind: 'physdev-is-in', ...(notIn === undefined ? {} : { negated: true }) };
  const [, notSet, set, directions] = /^set (! )?--match-set (\S+) ((?:(?:src|dst)(?:,(?!$)|$))+)$/.exec(text) ?? [];
  if (set !== undefined && directions !== undefined) {
    const ends = directions.split(',') as ('src' | 'dst')[];
    return { kind: 'match-set', set, directions: ends, ...(notSet === undefined ? {} : { negated: true }) };
  }
  const [isRecent, first, sets, seconds, reap, last] = recentPattern.exec(text) ?? [];
  const name = first ?? last;
  if (isRecent !== undefined && name !== undefined && (first === undefined || last === undefined)) {
    const check = { kind: 'rcheck', seconds: Number(seconds), reap: reap !== undefined } as const;
    return { kind: 'recent', name, action: sets === undefined ? check : { kind: 'set' } };
  }
  const [, to = '', protocol = '', portText = ''] = serverPattern.exec(text) ?? [];
  const range = readRangeMatch('destination', to)?.range;
  const address = range && singleAddress(range);
  const port = parsePort(portText);
  return address && port !== undefined
    ? { kind: 'virtual-server', address, protocol: nameProtocol(protocol), port }
    : undefined;
}

function readMarkMatch(text: string): RuleArg | undefined {
  const mark = readMarkMask(text);
  return mark && { kind: 'mark', ...mark };
}

function formatMaskedMark({ value, mask }: { readonly value: number; readonly mask: number }): string {
  return `${formatMark(value)}/${formatMark(mask)}`;
}

/** Returns the name that iptables-save prints for a protocol's name or number. Only `-m ipvs` prints a number. */
export function nameProtocol(text: string): string {
  const name = text.toLowerCase();
  return protocolNames.get(name) ?? name;
}

const protocolNames: ReadonlyMap<string, string> = new Map([
  ['0', 'all'],
  ['1', 'icmp'],
  ['6', 'tcp'],
  ['17', 'udp'],
  ['58', 'ipv6-icmp'],
  ['icmpv6', 'ipv6-icmp'],
  ['132', 'sctp'],
]);

/** Targets without options. Only its name distinguishes such a target from a chain. */
const otherTargets: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG MARK NETMAP NFLOG ' +
    'NFQUEUE NOTRACK QUEUE RATEEST REDIRECT SECMARK SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TEE TOS TPROXY TRACE ' +
    'TTL ULOG'
  ).split(' '),
);

const plainTargets: ReadonlyMap<string, RuleTarget> = new Map<string, RuleTarget>([
  ['ACCEPT', { kind: 'accept' }],
  ['DROP', { kind: 'drop' }],
  ['RETURN', { kind: 'return' }],
  ['REJECT', { kind: 'reject' }],
  ['MASQUERADE', { kind: 'masquerade', randomFully: false }],
  ['MASQUERADE --random-fully', { kind: 'masquerade', randomFully: true }],
]);

export function readTarget(words: readonly string[]): RuleTarget | undefined {
  const [name = '', option = '', value = ''] = words;
  const plain = words.length < 3 ? plainTargets.get(words.join(' ')) : undefined;
  if (plain) return plain;
  if (words.length === 1) return otherTargets.has(name) ? undefined : { kind: 'chain', chain: name };
  if (words.length !== 3) return undefined;
  if (name === 'REJECT' && option === '--reject-with') return { kind: 'reject', with: value };
  if (name === 'DNAT' && option === '--to-destination') return parseDnat(value);
  return name === 'MARK' ? parseMarkTarget(option, value) : undefined;
}

/** Reads a target with one address; undefined for a range of addresses or ports, from which the kernel chooses. */
function parseDnat(text: string): RuleTarget | undefined {
  const target = parseTarget(text);
  return target && !isMapped(target.address, text) ? { kind: 'dnat', ...target } : undefined;
}

function parseMarkTarget(option: string, text: string): RuleTarget | undefined {
  const mark = readMarkMask(text);
  if (!mark) return undefined;
  if (option === '--set-xmark') return { kind: 'mark', operation: 'set', ...mark };
  const { value } = mark;
  if (text.includes('/')) return undefined;
  if (option === '--or-mark') return { kind: 'mark', operation: 'or', value, mask: value };
  return option === '--xor-mark' ? { kind: 'mark', operation: 'xor', value, mask: 0 } : undefined;
}

function formatTarget(target: RuleTarget): string {
  switch (target.kind) {
    case 'chain':
      return formatWord(target.chain);
    case 'accept':
    case 'drop':
    case 'return':
      return target.kind.toUpperCase();
    case 'reject':
      return target.with === undefined ? 'REJECT' : `REJECT --reject-with ${formatWord(target.with)}`;
    case 'masquerade':
      return target.randomFully ? 'MASQUERADE --random-fully' : 'MASQUERADE';
    case 'dnat':
      return `DNAT --to-destination ${formatSocketAddress(target)}`;
    case 'mark':
      return `MARK ${formatMarkOperation(target)}`;
    case 'other':
      return formatWords(target.words);
    default:
      return target satisfies never;
  }
}

function formatMarkOperation({ operation, value, mask }: RuleTarget & { readonly kind: 'mark' }): string {
  return operation === 'set'
    ? `--set-xmark ${formatMaskedMark({ value, mask })}`
    : `--${operation}-mark ${formatMark(value)}`;
}

function formatWords(words: readonly string[]): string {
  return words.map(formatWord).join(' ');
}

const plainWord = /^[\w./:,+@%=[\]-]+$/;

/**
 * Quotes a word unless it is safe without quotes. Replaces a line break, which no restore file can hold, with an escape that assertWritable
 * refuses.
 */
export function formatWord(word: string): string {
  if (plainWord.test(word) || word === '!') return word;
  return `"${word.replace(/["\\]/g, '\\$&').replace(/[\n\r\0]/g, (each) => breaks.get(each) ?? '')}"`;
}

const breaks: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\0', '\\0'],
]);

export function isWritable(words: string): boolean {
  return !words.includes('\\') || !/(?<!\\)(?:\\\\)*\\[nr0]/.test(words);
}

/** Returns text that formatWord made. Throws if it has a line break, which kpc never writes. */
export function assertWritable(words: string): string {
  if (isWritable(words)) return words;
  throw new Error(`a line break in a rule: ${words}`);
}
