import { parseAddress } from '../address.ts';
import { parseAddressRange, singleAddress, type AddressRange } from '../address-range.ts';
import { parsePort, parsePortRange, parseSocketAddress } from '../socket-address.ts';
import type { Rule, RuleArg, Target } from './iptables.ts';

/**
 * Reads the arguments of a rule, as kube-proxy or as iptables-save writes them, without `-A CHAIN`. Matches and targets
 * that kpc does not know are kept as words. Undefined if a quote is not closed.
 */
export function parseRule(text: string): Rule | undefined {
  const words = splitWords(text);
  return words && { args: parseRuleWords(words, 0) };
}

/** As parseRule, from words already split, beginning at `start`. Takes any words. */
export function parseRuleWords(words: readonly string[], start: number): RuleArg[] {
  const args: RuleArg[] = [];
  let at = start;
  while (at < words.length) {
    const negated = words[at] === '!';
    const first = negated ? at + 1 : at;
    const option = words[first];
    const value = words[first + 1];
    // An option without its value, or a stray word, ends up as words kept as they are.
    const simple = option !== undefined && value !== undefined ? parseOption(option, value, negated) : undefined;
    if (simple) {
      args.push(simple);
      at = first + 2;
    } else if (!negated && value !== undefined && option === '-m') {
      at = pushMatch(args, words, at, findOption(words, at + 2));
    } else {
      const isJump = !negated && value !== undefined && (option === '-j' || option === '-g');
      const end = findOption(words, isJump ? at + 2 : first + 1);
      args.push(isJump ? parseJump(words, at, end) : { kind: 'other', words: words.slice(at, end) });
      at = end;
    }
  }
  return args;
}

/** An option of iptables itself or of the tcp, udp and sctp matches that takes one value. */
function parseOption(option: string, value: string, negated: boolean): RuleArg | undefined {
  switch (option) {
    case '-s':
    case '-d': {
      const range = readRange(value);
      return range && withNegation({ kind: option === '-s' ? 'source' : 'destination', range }, negated);
    }
    case '-i':
    case '-o':
      return withNegation({ kind: option === '-i' ? 'in-interface' : 'out-interface', name: value }, negated);
    case '-p':
      return withNegation({ kind: 'protocol', protocol: value }, negated);
    case '--dport':
    case '--sport': {
      const ports = parsePortRange(value);
      return ports && withNegation({ kind: option === '--dport' ? 'destination-port' : 'source-port', ports }, negated);
    }
    default:
      return undefined;
  }
}

function readRange(text: string): AddressRange | undefined {
  const range = parseAddressRange(text);
  return range && isMapped(range, text) ? undefined : range;
}

/** iptables takes an IPv4-mapped address for IPv6. Here it would become IPv4, and could not be written back. */
function isMapped({ family }: AddressRange, text: string): boolean {
  return family === 'ipv4' && !/^\d+\./.test(text);
}

function withNegation<A extends RuleArg>(arg: A, negated: boolean): A {
  return negated ? { ...arg, negated: true } : arg;
}

/** Options that belong to no match, and those of the matches tcp, udp and sctp, as iptables-save and kube-proxy write them. */
const options: ReadonlySet<string> = new Set('-s -d -i -o -p -m -j -g -f -c --dport --sport'.split(' '));

/** Options whose value is free text, and may look like an option. */
const textOptions: ReadonlySet<string> = new Set(
  '--comment --log-prefix --nflog-prefix --ulog-prefix --string --hex-string'.split(' '),
);

/** The index at or after `from` of the next option that belongs to no match, or the end. */
function findOption(words: readonly string[], from: number): number {
  let value = -1;
  for (let at = from; at < words.length; at++) {
    const word = words[at] ?? '';
    if (textOptions.has(word)) value = ++at;
    else if (options.has(word)) return at > from && words[at - 1] === '!' && at - 1 !== value ? at - 1 : at;
  }
  return words.length;
}

/** Reads `-m NAME` and its options, which are in words[at..end). Returns where to go on. */
function pushMatch(args: RuleArg[], words: readonly string[], at: number, end: number): number {
  const name = words[at + 1] ?? '';
  // Their port options are options to parseOption, in any place.
  if (end === at + 2 || name === 'tcp' || name === 'udp' || name === 'sctp') {
    args.push({ kind: 'module', name });
    return at + 2;
  }
  const negated = words[at + 2] === '!';
  const first = negated ? at + 3 : at + 2;
  const match =
    parseShortMatch(name, words[first], words[first + 1], words[first + 2], end - first, negated) ??
    (negated ? undefined : parseLongMatch(name, words, first, end));
  args.push(match ?? { kind: 'other', words: words.slice(at, end) });
  return end;
}

/** A match with one option of at most two values; `count` is how many words there are. */
function parseShortMatch(
  name: string,
  option: string | undefined,
  value: string | undefined,
  second: string | undefined,
  count: number,
  negated: boolean,
): RuleArg | undefined {
  if (name === 'physdev') {
    return option === '--physdev-is-in' && count === 1 ? withNegation({ kind: 'physdev-is-in' }, negated) : undefined;
  }
  if (value === undefined || count !== (name === 'set' ? 3 : 2)) return undefined;
  switch (name) {
    case 'comment':
      return option === '--comment' && !negated ? { kind: 'comment', text: value } : undefined;
    case 'mark': {
      const mark = option === '--mark' ? parseMark(value) : undefined;
      return mark && withNegation({ kind: 'mark', value: mark.value, mask: mark.mask ?? 0xffffffff }, negated);
    }
    case 'conntrack':
      if (option !== '--ctstate') return undefined;
      return withNegation({ kind: 'conntrack-state', states: value.split(',') }, negated);
    case 'addrtype': {
      const which = option === '--src-type' ? 'source' : option === '--dst-type' ? 'destination' : undefined;
      return which && withNegation({ kind: 'address-type', which, type: value }, negated);
    }
    case 'set': {
      const directions = option === '--match-set' ? (second?.split(',') ?? []) : [''];
      const areKnown = directions.every((word) => word === 'src' || word === 'dst');
      return areKnown ? withNegation({ kind: 'match-set', set: value, directions }, negated) : undefined;
    }
    default:
      return undefined;
  }
}

/** A match with several options, which are in words[from..end) in any order. */
function parseLongMatch(name: string, words: readonly string[], from: number, end: number): RuleArg | undefined {
  switch (name) {
    case 'ipvs':
      return parseIpvsMatch(readOptions(words, from, end, ['--vaddr', '--vproto', '--vport']));
    case 'statistic': {
      const read = readOptions(words, from, end, ['--mode', '--probability']);
      const probability = read?.get('--mode') === 'random' ? read.get('--probability') : undefined;
      return probability === undefined ? undefined : { kind: 'statistic', probability };
    }
    case 'recent':
      return parseRecent(readOptions(words, from, end, ['--name', '--seconds', '--mask'], recentSwitches));
    default:
      return undefined;
  }
}

/** Reads options with a value, and switches, each at most once; undefined where anything else is there. */
function readOptions(
  words: readonly string[],
  from: number,
  end: number,
  valued: readonly string[],
  switches: readonly string[] = [],
): ReadonlyMap<string, string> | undefined {
  const read = new Map<string, string>();
  for (let i = from; i < end; i++) {
    const name = words[i] ?? '';
    const value = switches.includes(name) ? '' : valued.includes(name) && i + 1 < end ? words[++i] : undefined;
    if (value === undefined || read.has(name)) return undefined;
    read.set(name, value);
  }
  return read;
}

const numberPattern = /^(0x[0-9a-f]{1,8}|0|[1-9]\d{0,9})$/i;

/** A number of 32 bits, decimal or hexadecimal; octal ones are not read. */
function parseNumber(text: string): number | undefined {
  if (!numberPattern.test(text)) return undefined;
  const value = Number(text);
  return value <= 0xffffffff ? value : undefined;
}

function parseMark(text: string): { value: number; mask: number | undefined } | undefined {
  const slash = text.indexOf('/');
  const value = parseNumber(slash < 0 ? text : text.slice(0, slash));
  const mask = slash < 0 ? undefined : parseNumber(text.slice(slash + 1));
  return value === undefined || (slash >= 0 && mask === undefined) ? undefined : { value, mask };
}

function parseIpvsMatch(read: ReadonlyMap<string, string> | undefined): RuleArg | undefined {
  const range = readRange(read?.get('--vaddr') ?? '');
  const address = range && singleAddress(range);
  const protocol = read?.get('--vproto');
  const port = parsePort(read?.get('--vport') ?? '');
  if (address === undefined || protocol === undefined || port === undefined) return undefined;
  return { kind: 'virtual-server', address, protocol: nameProtocol(protocol), port };
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

const recentSwitches = ['--set', '--rcheck', '--reap', '--rsource'];
const fullMasks = new Set(['255.255.255.255', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']);

/** iptables-save adds the defaults `--mask` and `--rsource`; other values of theirs are not read. */
function parseRecent(read: ReadonlyMap<string, string> | undefined): RuleArg | undefined {
  const name = read?.get('--name') ?? 'DEFAULT';
  const mask = read?.get('--mask');
  if (!read || name === '' || (mask !== undefined && !fullMasks.has(mask))) return undefined;
  const reap = read.has('--reap');
  if (read.has('--set')) {
    const isOnlySet = !read.has('--rcheck') && !read.has('--seconds') && !reap;
    return isOnlySet ? { kind: 'recent', name, action: { kind: 'set' } } : undefined;
  }
  const seconds = parseNumber(read.get('--seconds') ?? '');
  if (!read.has('--rcheck') || seconds === undefined) return undefined;
  return { kind: 'recent', name, action: { kind: 'rcheck', seconds, reap } };
}

/** Reads `-j` or `-g` and the target in words[at..end). */
function parseJump(words: readonly string[], at: number, end: number): RuleArg {
  const target = parseTarget(words, at + 1, end - at - 1) ?? { kind: 'other', words: words.slice(at + 1, end) };
  return words[at] === '-g' ? { kind: 'jump', target, goto: true } : { kind: 'jump', target };
}

/** Targets that work without options, so that only the name distinguishes them from a chain. */
const otherTargets: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG MARK NETMAP NFLOG ' +
    'NFQUEUE NOTRACK QUEUE RATEEST REDIRECT SECMARK SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TEE TOS TPROXY TRACE ' +
    'TTL ULOG'
  ).split(' '),
);

/** A target of `count` words; undefined if kpc does not know it. */
function parseTarget(words: readonly string[], from: number, count: number): Target | undefined {
  const name = words[from] ?? '';
  if (count === 1) return parseBareTarget(name);
  const option = words[from + 1] ?? '';
  const value = words[from + 2];
  if (name === 'MASQUERADE' && option === '--random-fully' && count === 2) {
    return { kind: 'masquerade', randomFully: true };
  }
  if (count !== 3 || value === undefined) return undefined;
  if (name === 'REJECT' && option === '--reject-with') return { kind: 'reject', with: value };
  if (name === 'DNAT' && option === '--to-destination') return parseDnat(value);
  return name === 'MARK' ? parseMarkTarget(option, value) : undefined;
}

function parseBareTarget(name: string): Target | undefined {
  switch (name) {
    case 'ACCEPT':
      return { kind: 'accept' };
    case 'DROP':
      return { kind: 'drop' };
    case 'RETURN':
      return { kind: 'return' };
    case 'REJECT':
      return { kind: 'reject' };
    case 'MASQUERADE':
      return { kind: 'masquerade', randomFully: false };
    default:
      return otherTargets.has(name) ? undefined : { kind: 'chain', chain: name };
  }
}

/** A range of addresses or ports, of which the kernel chooses one, is kept as words. */
function parseDnat(text: string): Target | undefined {
  const socket = parseSocketAddress(text);
  const address = socket?.address ?? parseAddress(text);
  if (!address || isMapped(address, text)) return undefined;
  return { kind: 'dnat', address, port: socket?.port };
}

function parseMarkTarget(option: string, text: string): Target | undefined {
  const mark = parseMark(text);
  if (!mark) return undefined;
  const { value } = mark;
  if (option === '--set-xmark') return { kind: 'mark', operation: 'set', value, mask: mark.mask ?? 0xffffffff };
  if (mark.mask !== undefined) return undefined;
  if (option === '--or-mark') return { kind: 'mark', operation: 'or', value, mask: value };
  return option === '--xor-mark' ? { kind: 'mark', operation: 'xor', value, mask: 0 } : undefined;
}

/**
 * Splits a line into words as iptables-restore does: blanks separate, double quotes hold a word together, and within
 * them a backslash takes the next character as it is. Undefined if a quote is not closed.
 */
export function splitWords(line: string): string[] | undefined {
  if (!line.includes('"') && !line.includes('\t')) {
    const words = line.split(' ');
    return words.includes('') ? words.filter((word) => word !== '') : words;
  }
  const words: string[] = [];
  let word = '';
  /** Where the piece of the word begins that is not in `word` yet. */
  let from = 0;
  let started = false;
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const code = line.charCodeAt(i);
    if (code === quote || (code === backslash && quoted && i + 1 < line.length)) {
      word = from === i ? word : word + line.slice(from, i);
      if (code === quote) quoted = !quoted;
      else word += line.charAt(++i);
      from = i + 1;
      started = true;
    } else if (!quoted && (code === blank || code === tab)) {
      if (started || from < i) words.push(word === '' ? line.slice(from, i) : word + line.slice(from, i));
      word = '';
      from = i + 1;
      started = false;
    }
  }
  if (quoted) return undefined;
  if (started || from < line.length) words.push(word + line.slice(from));
  return words;
}

const tab = 9;
const blank = 32;
const quote = 34;
const backslash = 92;
