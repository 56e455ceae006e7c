import { joinHostPort, parseAddress } from '../address.ts';
import { parseAddressRange, singleAddress, type AddressRange } from '../address-range.ts';
import { formatMark, parseNumber32 } from '../number32.ts';
import { formatPortRange, parsePort, parsePortRange, parseSocketAddress } from '../socket-address.ts';
import type { RuleArg, Target } from './iptables.ts';

/** The arguments of one option with one value. The options of tcp, udp and sctp may come anywhere: they belong to no match. */
const readers: ReadonlyMap<string, (value: string) => RuleArg | undefined> = new Map<
  string,
  (value: string) => RuleArg | undefined
>([
  ['-s', (text) => readRange('source', text)],
  ['-d', (text) => readRange('destination', text)],
  ['-i', (name) => ({ kind: 'in-interface', name })],
  ['-o', (name) => ({ kind: 'out-interface', name })],
  ['-p', (protocol) => ({ kind: 'protocol', protocol })],
  ['--sport', (text) => readPorts('source-port', text)],
  ['--dport', (text) => readPorts('destination-port', text)],
  ['comment --comment', (text) => ({ kind: 'comment', text })],
  ['mark --mark', readMarkMatch],
  ['conntrack --ctstate', (text) => ({ kind: 'conntrack-state', states: text.split(',') })],
  ['addrtype --src-type', (type) => ({ kind: 'source-type', type })],
  ['addrtype --dst-type', (type) => ({ kind: 'destination-type', type })],
]);

/** The argument of an option with one value, `-s` or `mark --mark`; undefined if kpc does not read it. */
export function readOption(option: string, value: string, negated: boolean): RuleArg | undefined {
  const arg = readers.get(option)?.(value);
  if (!arg || !negated) return arg;
  return arg.kind === 'comment' ? undefined : ({ ...arg, negated } as RuleArg);
}

/** An argument as kube-proxy writes it. */
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
    case 'other':
      return formatWords(arg.words);
    default:
      return arg satisfies never;
  }
}

function not(arg: { readonly negated?: boolean | undefined }): string {
  return arg.negated ? '! ' : '';
}

function readRange<K extends 'source' | 'destination'>(kind: K, text: string) {
  const range = parseAddressRange(text);
  return range && !isMapped(range, text) ? { kind, range } : undefined;
}

function readPorts(kind: 'source-port' | 'destination-port', text: string): RuleArg | undefined {
  const ports = parsePortRange(text);
  return ports && { kind, ports };
}

/** iptables takes an IPv4-mapped address for IPv6. Here it would become IPv4, and could not be written back. */
function isMapped({ family }: AddressRange, text: string): boolean {
  return family === 'ipv4' && !/^\d+\./.test(text);
}

/** `-m ipvs` with its three options in any order. */
const serverPattern = /^ipvs(?=.* --vaddr (\S+))(?=.* --vproto (\S+))(?=.* --vport (\d+))(?: --v\w+ \S+){3}$/;

/** `-m recent` as kube-proxy writes it, and as iptables-save does, which prints the name last and two defaults after it. */
const recentPattern = new RegExp(
  '^recent(?: --name (\\S+))? (?:(--set)|--rcheck --seconds (\\d{1,9})( --reap)?)' +
    '(?: --name (\\S+)(?: --mask (?:255.255.255.255|ffff(?::ffff){7}) --rsource)?)?$',
);

/** Reads `-m NAME` with its words, if it is a match that has several options or values, or none. */
export function readLongMatch(words: readonly string[]): RuleArg | undefined {
  if (words.some((word) => /\s/.test(word))) return undefined;
  const text = words.join(' ');
  const [, notIn, isIn] = /^physdev (! )?(--physdev-is-in)$/.exec(text) ?? [];
  if (isIn !== undefined) return { kind: 'physdev-is-in', ...(notIn === undefined ? {} : { negated: true }) };
  const [, notSet, set, directions] = /^set (! )?--match-set (\S+) ((?:(?:src|dst)(?:,(?!$)|$))+)$/.exec(text) ?? [];
  if (set !== undefined && directions !== undefined) {
    const words = directions.split(',') as ('src' | 'dst')[];
    return { kind: 'match-set', set, directions: words, ...(notSet === undefined ? {} : { negated: true }) };
  }
  const [, probability] = /^statistic --mode random --probability (\S+)$/.exec(text) ?? [];
  if (probability !== undefined) return { kind: 'statistic', probability };
  const [isRecent, first, sets, seconds, reap, last] = recentPattern.exec(text) ?? [];
  const name = first ?? last;
  if (isRecent !== undefined && name !== undefined && (first === undefined || last === undefined)) {
    const check = { kind: 'rcheck', seconds: Number(seconds), reap: reap !== undefined } as const;
    return { kind: 'recent', name, action: sets === undefined ? check : { kind: 'set' } };
  }
  const [, to = '', protocol = '', portText = ''] = serverPattern.exec(text) ?? [];
  const range = readRange('destination', to)?.range;
  const address = range && singleAddress(range);
  const port = parsePort(portText);
  return address && port !== undefined
    ? { kind: 'virtual-server', address, protocol: nameProtocol(protocol), port }
    : undefined;
}

function readMarkMatch(text: string): RuleArg | undefined {
  const mark = readMark(text);
  return mark && { kind: 'mark', ...mark };
}

/** Reads `VALUE/MASK`; without a mask, it is all bits. */
function readMark(text: string): { readonly value: number; readonly mask: number } | undefined {
  const [first = '', second = '0xffffffff', ...more] = text.split('/');
  const [value, mask] = [parseNumber32(first), parseNumber32(second)];
  return value === undefined || mask === undefined || more.length > 0 ? undefined : { value, mask };
}

function formatMaskedMark({ value, mask }: { readonly value: number; readonly mask: number }): string {
  return `${formatMark(value)}/${formatMark(mask)}`;
}

/** The name by which iptables-save calls a protocol, of a name or number; `-m ipvs` alone is printed with a number. */
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

/** Targets that work without options, so that only the name distinguishes them from a chain. */
const otherTargets: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG MARK NETMAP NFLOG ' +
    'NFQUEUE NOTRACK QUEUE RATEEST REDIRECT SECMARK SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TEE TOS TPROXY TRACE ' +
    'TTL ULOG'
  ).split(' '),
);

const plainTargets: ReadonlyMap<string, Target> = new Map<string, Target>([
  ['ACCEPT', { kind: 'accept' }],
  ['DROP', { kind: 'drop' }],
  ['RETURN', { kind: 'return' }],
  ['REJECT', { kind: 'reject' }],
  ['MASQUERADE', { kind: 'masquerade', randomFully: false }],
  ['MASQUERADE --random-fully', { kind: 'masquerade', randomFully: true }],
]);

/** Reads the words of `-j` or `-g`; undefined if kpc does not know the target. */
export function readTarget(words: readonly string[]): Target | undefined {
  const [name = '', option = '', value = ''] = words;
  const plain = plainTargets.get(words.join(' '));
  if (plain) return plain;
  if (words.length === 1) return otherTargets.has(name) ? undefined : { kind: 'chain', chain: name };
  if (words.length !== 3) return undefined;
  if (name === 'REJECT' && option === '--reject-with') return { kind: 'reject', with: value };
  if (name === 'DNAT' && option === '--to-destination') return parseDnat(value);
  return name === 'MARK' ? parseMarkTarget(option, value) : undefined;
}

/** A range of addresses or ports, of which the kernel chooses one, is kept as words. */
function parseDnat(text: string): Target | undefined {
  const socket = parseSocketAddress(text);
  const address = socket?.address ?? parseAddress(text);
  if (!address || isMapped(address, text)) return undefined;
  return { kind: 'dnat', address, port: socket?.port };
}

function parseMarkTarget(option: string, text: string): Target | undefined {
  const mark = readMark(text);
  if (!mark) return undefined;
  if (option === '--set-xmark') return { kind: 'mark', operation: 'set', ...mark };
  const { value } = mark;
  if (text.includes('/')) return undefined;
  if (option === '--or-mark') return { kind: 'mark', operation: 'or', value, mask: value };
  return option === '--xor-mark' ? { kind: 'mark', operation: 'xor', value, mask: 0 } : undefined;
}

function formatTarget(target: Target): string {
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
      return `DNAT --to-destination ${
        target.port === undefined ? target.address.text : joinHostPort(target.address.text, target.port)
      }`;
    case 'mark':
      return `MARK ${formatMarkOperation(target)}`;
    case 'other':
      return formatWords(target.words);
    default:
      return target satisfies never;
  }
}

/** `--set-xmark` takes a mask; the others say theirs. */
function formatMarkOperation({ operation, value, mask }: Target & { readonly kind: 'mark' }): string {
  return operation === 'set'
    ? `--set-xmark ${formatMaskedMark({ value, mask })}`
    : `--${operation}-mark ${formatMark(value)}`;
}

function formatWords(words: readonly string[]): string {
  return words.map(formatWord).join(' ');
}

const plainWord = /^[\w./:,+@%=[\]-]+$/;

/**
 * One word of a restore file: as it is where that is safe, else in double quotes, with a backslash before a quote or
 * backslash. A line break cannot be written at all, and must have been refused long before.
 */
export function formatWord(word: string): string {
  if (plainWord.test(word) || word === '!') return word;
  if (/[\n\r\0]/.test(word)) throw new Error(`a line break in a rule: ${JSON.stringify(word)}`);
  return `"${word.replace(/["\\]/g, '\\$&')}"`;
}
