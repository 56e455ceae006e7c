import { parseAddress } from '../address.ts';
import { parseAddressRange, singleAddress, type AddressRange } from '../address-range.ts';
import type { RecentAction, Rule, RuleArg, Target } from './iptables.ts';
import { parseSocketAddress, parsePort, parsePortRange } from '../socket-address.ts';

/**
 * Reads the arguments of a rule, as kube-proxy or as iptables-save writes them, without `-A CHAIN`. Matches and targets
 * that kpc does not know are kept as words. Undefined where a quote is not closed.
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
    const option = words[negated ? at + 1 : at];
    const value = words[negated ? at + 2 : at + 1];
    // An option without its value, or a stray word, ends up as words kept as they are.
    const simple = option !== undefined && value !== undefined ? parseOption(option, value, negated) : undefined;
    if (simple) {
      args.push(simple);
      at += negated ? 3 : 2;
    } else if (!negated && value !== undefined && option === '-m') {
      const end = findOption(words, at + 2);
      at = pushMatch(args, words, at, end);
    } else if (!negated && value !== undefined && (option === '-j' || option === '-g')) {
      const end = findOption(words, at + 2);
      args.push(parseJump(words, at + 1, end, option === '-g'));
      at = end;
    } else {
      const end = findOption(words, negated ? at + 2 : at + 1);
      args.push({ kind: 'other', words: words.slice(at, end) });
      at = end;
    }
  }
  return args;
}

/** An option of iptables itself or of the tcp, udp and sctp matches that takes one value. */
function parseOption(option: string, value: string, negated: boolean): RuleArg | undefined {
  switch (option) {
    case '-s':
      return readAddresses('source', value, negated);
    case '-d':
      return readAddresses('destination', value, negated);
    case '-i':
      return withNegation({ kind: 'in-interface', name: value }, negated);
    case '-o':
      return withNegation({ kind: 'out-interface', name: value }, negated);
    case '-p':
      return withNegation({ kind: 'protocol', protocol: value }, negated);
    case '--dport':
      return readPorts('destination-port', value, negated);
    case '--sport':
      return readPorts('source-port', value, negated);
    default:
      return undefined;
  }
}

function readAddresses(kind: 'source' | 'destination', text: string, negated: boolean): RuleArg | undefined {
  const range = readRange(text);
  return range && withNegation({ kind, range }, negated);
}

function readRange(text: string): AddressRange | undefined {
  const range = parseAddressRange(text);
  return range && isMapped(range, text) ? undefined : range;
}

/** iptables takes an IPv4-mapped address for IPv6. Here it would become IPv4, and could not be written back. */
function isMapped({ family }: AddressRange, text: string): boolean {
  return family === 'ipv4' && !/^\d+\./.test(text);
}

function readPorts(kind: 'source-port' | 'destination-port', text: string, negated: boolean): RuleArg | undefined {
  const ports = parsePortRange(text);
  return ports && withNegation({ kind, ports }, negated);
}

function withNegation<A extends RuleArg>(arg: A, negated: boolean): A {
  return negated ? { ...arg, negated: true } : arg;
}

/** Options that belong to no match, and those of the matches tcp, udp and sctp, as iptables-save and kube-proxy write them. */
const options: ReadonlySet<string> = new Set('-s -d -i -o -p -m -j -g -f -c --dport --sport'.split(' '));

/** Options whose value is free text, which may look like an option and is none. */
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

/** Reads `-m NAME` and its options, which stand in words[at..end). Returns where to go on. */
function pushMatch(args: RuleArg[], words: readonly string[], at: number, end: number): number {
  const name = words[at + 1] ?? '';
  // Their port options are options to parseOption, wherever they stand.
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
  switch (name) {
    case 'comment':
      if (option !== '--comment' || value === undefined || count !== 2 || negated) return undefined;
      return { kind: 'comment', text: value };
    case 'mark': {
      const mark = option === '--mark' && count === 2 ? parseMark(value) : undefined;
      return mark && withNegation({ kind: 'mark', value: mark.value, mask: mark.mask ?? 0xffffffff }, negated);
    }
    case 'conntrack':
      if (option !== '--ctstate' || value === undefined || count !== 2) return undefined;
      return withNegation({ kind: 'conntrack-state', states: value.split(',') }, negated);
    case 'addrtype':
      if ((option !== '--src-type' && option !== '--dst-type') || value === undefined || count !== 2) return undefined;
      return withNegation(
        { kind: 'address-type', which: option === '--src-type' ? 'source' : 'destination', type: value },
        negated,
      );
    case 'set': {
      const directions = option === '--match-set' && count === 3 ? parseDirections(second) : undefined;
      if (value === undefined || !directions) return undefined;
      return withNegation({ kind: 'match-set', set: value, directions }, negated);
    }
    case 'physdev':
      if (option !== '--physdev-is-in' || count !== 1) return undefined;
      return withNegation({ kind: 'physdev-is-in' }, negated);
    default:
      return undefined;
  }
}

/** A match with several options, which stand in words[from..end) in any order. */
function parseLongMatch(name: string, words: readonly string[], from: number, end: number): RuleArg | undefined {
  switch (name) {
    case 'ipvs':
      return parseIpvsMatch(words.slice(from, end));
    case 'statistic':
      return parseStatistic(words, from, end);
    case 'recent':
      return parseRecent(words.slice(from, end));
    default:
      return undefined;
  }
}

const number = /^(0x[0-9a-f]{1,8}|0|[1-9]\d{0,9})$/i;

function parseMark(text: string | undefined): { value: number; mask: number | undefined } | undefined {
  if (text === undefined) return undefined;
  const slash = text.indexOf('/');
  const value = parseNumber(slash < 0 ? text : text.slice(0, slash));
  const mask = slash < 0 ? undefined : parseNumber(text.slice(slash + 1));
  if (value === undefined || (slash >= 0 && mask === undefined)) return undefined;
  return { value, mask };
}

/** A number of 32 bits, decimal or hexadecimal; octal ones are not read. */
function parseNumber(text: string): number | undefined {
  if (!number.test(text)) return undefined;
  const value = Number(text);
  return value <= 0xffffffff ? value : undefined;
}

function parseDirections(text: string | undefined): ('src' | 'dst')[] | undefined {
  const directions: ('src' | 'dst')[] = [];
  for (const word of text?.split(',') ?? []) {
    if (word !== 'src' && word !== 'dst') return undefined;
    directions.push(word);
  }
  return directions.length === 0 ? undefined : directions;
}

function parseIpvsMatch(words: readonly string[]): RuleArg | undefined {
  const values = readPairs(words, ['--vaddr', '--vproto', '--vport']);
  const range = readRange(values?.get('--vaddr') ?? '');
  const address = range && singleAddress(range);
  const protocol = values?.get('--vproto');
  const port = parsePort(values?.get('--vport') ?? '');
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

function parseStatistic(words: readonly string[], from: number, end: number): RuleArg | undefined {
  const probability = words[from + 3];
  if (end !== from + 4 || words[from] !== '--mode' || words[from + 1] !== 'random') return undefined;
  return words[from + 2] === '--probability' && probability !== undefined
    ? { kind: 'statistic', probability }
    : undefined;
}

/** Reads `--option value` pairs of the options given, each at most once; undefined where anything else is there. */
function readPairs(words: readonly string[], names: readonly string[]): ReadonlyMap<string, string> | undefined {
  const values = new Map<string, string>();
  for (let i = 0; i < words.length; i += 2) {
    const name = words[i] ?? '';
    const value = words[i + 1];
    if (!names.includes(name) || value === undefined || values.has(name)) return undefined;
    values.set(name, value);
  }
  return values;
}

const fullMasks = new Set(['255.255.255.255', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']);

/** iptables-save adds the defaults `--mask` and `--rsource`; other values of theirs are not read. */
function parseRecent(words: readonly string[]): RuleArg | undefined {
  let name = 'DEFAULT';
  let action: 'set' | 'rcheck' | undefined;
  let seconds: number | undefined;
  let reap = false;
  for (let i = 0; i < words.length; i++) {
    switch (words[i]) {
      case '--name':
        name = words[++i] ?? '';
        break;
      case '--set':
        if (action) return undefined;
        action = 'set';
        break;
      case '--rcheck':
        if (action) return undefined;
        action = 'rcheck';
        break;
      case '--seconds':
        seconds = parseNumber(words[++i] ?? '');
        if (seconds === undefined) return undefined;
        break;
      case '--reap':
        reap = true;
        break;
      case '--mask':
        if (!fullMasks.has(words[++i] ?? '')) return undefined;
        break;
      case '--rsource':
        break;
      default:
        return undefined;
    }
  }
  const read = recentAction(action, seconds, reap);
  return name === '' || !read ? undefined : { kind: 'recent', name, action: read };
}

function recentAction(
  action: 'set' | 'rcheck' | undefined,
  seconds: number | undefined,
  reap: boolean,
): RecentAction | undefined {
  if (action === 'set') return seconds === undefined && !reap ? { kind: 'set' } : undefined;
  if (action === 'rcheck') return seconds === undefined ? undefined : { kind: 'rcheck', seconds, reap };
  return undefined;
}

/** Reads the target in words[from..end). */
function parseJump(words: readonly string[], from: number, end: number, goto: boolean): RuleArg {
  const target =
    (end === from + 1 ? parseBareTarget(words[from] ?? '') : parseTarget(words, from, end)) ??
    ({ kind: 'other', words: words.slice(from, end) } as const);
  return goto ? { kind: 'jump', target, goto: true } : { kind: 'jump', target };
}

/** Targets that work without options, so that only the name tells them from a chain. */
const otherTargets: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG MARK NETMAP NFLOG ' +
    'NFQUEUE NOTRACK QUEUE RATEEST REDIRECT SECMARK SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TEE TOS TPROXY TRACE ' +
    'TTL ULOG'
  ).split(' '),
);

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

function parseTarget(words: readonly string[], from: number, end: number): Target | undefined {
  const name = words[from];
  const option = words[from + 1];
  const value = words[from + 2];
  if (name === 'MASQUERADE' && option === '--random-fully' && end === from + 2) {
    return { kind: 'masquerade', randomFully: true };
  }
  if (end !== from + 3 || value === undefined) return undefined;
  if (name === 'REJECT' && option === '--reject-with') return { kind: 'reject', with: value };
  if (name === 'DNAT' && option === '--to-destination') return parseDnat(value);
  return name === 'MARK' ? parseMarkTarget(option ?? '', value) : undefined;
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
  const { value, mask } = mark;
  switch (option) {
    case '--set-xmark':
      return { kind: 'mark', operation: 'set', value, mask: mask ?? 0xffffffff };
    case '--or-mark':
      return mask === undefined ? { kind: 'mark', operation: 'or', value, mask: value } : undefined;
    case '--xor-mark':
      return mask === undefined ? { kind: 'mark', operation: 'xor', value, mask: 0 } : undefined;
    default:
      return undefined;
  }
}

/**
 * Splits a line into words as iptables-restore does: blanks separate, double quotes hold a word together, and within
 * them a backslash takes the next character as it is. Undefined where a quote is not closed.
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
