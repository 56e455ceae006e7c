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
    const option = words[first] ?? '';
    const value = words[first + 1];
    let end = first + 2;
    let arg = value === undefined ? undefined : readOption(options, option, [value], negated);
    if (!arg && value !== undefined && !negated && (option === '-m' || option === '-j' || option === '-g')) {
      const next = findOption(words, end);
      // The port options of tcp, udp and sctp are options of their own, and may come anywhere.
      if (option === '-m' && (next === end || portMatches.has(value))) arg = { kind: 'module', name: value };
      else {
        end = next;
        const rest = words.slice(first + 1, end);
        arg = option === '-m' ? readMatch(value, rest.slice(1)) : readJump(option, rest);
      }
    } else if (!arg) end = findOption(words, first + 1);
    // An option without its value, or a stray word, ends up as words kept as they are.
    args.push(arg ?? { kind: 'other', words: words.slice(at, end) });
    at = end;
  }
  return args;
}

/** How many values an option takes, and the argument made from them; undefined if kpc does not read the values. */
type OptionReader = readonly [count: 0 | 1 | 2, read: (value: string, second: string) => RuleArg | undefined];

/** The options of iptables itself, and of the matches tcp, udp and sctp, that are arguments. */
const options: ReadonlyMap<string, OptionReader> = new Map<string, OptionReader>([
  ['-s', [1, (text) => ranged('source', text)]],
  ['-d', [1, (text) => ranged('destination', text)]],
  ['-i', [1, (name) => ({ kind: 'in-interface', name })]],
  ['-o', [1, (name) => ({ kind: 'out-interface', name })]],
  ['-p', [1, (protocol) => ({ kind: 'protocol', protocol })]],
  ['--dport', [1, (text) => portRange('destination-port', text)]],
  ['--sport', [1, (text) => portRange('source-port', text)]],
]);

const portMatches: ReadonlySet<string> = new Set(['tcp', 'udp', 'sctp']);

/** The matches with one option, by "MATCH --OPTION". */
const matches: ReadonlyMap<string, OptionReader> = new Map<string, OptionReader>([
  ['comment --comment', [1, (text) => ({ kind: 'comment', text })]],
  ['mark --mark', [1, readMarkMatch]],
  ['conntrack --ctstate', [1, (states) => ({ kind: 'conntrack-state', states: states.split(',') })]],
  ['addrtype --src-type', [1, (type) => ({ kind: 'address-type', which: 'source', type })]],
  ['addrtype --dst-type', [1, (type) => ({ kind: 'address-type', which: 'destination', type })]],
  ['set --match-set', [2, readSetMatch]],
  ['physdev --physdev-is-in', [0, () => ({ kind: 'physdev-is-in' })]],
]);

function readOption(
  known: typeof options,
  name: string,
  values: readonly string[],
  negated: boolean,
): RuleArg | undefined {
  const [count, read] = known.get(name) ?? [];
  const arg = count === values.length ? read?.(values[0] ?? '', values[1] ?? '') : undefined;
  if (!arg || !negated) return arg;
  return arg.kind === 'comment' ? undefined : ({ ...arg, negated } as RuleArg);
}

/** Reads the options of `-m NAME`. */
function readMatch(name: string, words: readonly string[]): RuleArg | undefined {
  const negated = words[0] === '!';
  const at = negated ? 1 : 0;
  const short = readOption(matches, `${name} ${words[at]}`, words.slice(at + 1), negated);
  return short ?? readLongMatch([name, ...words]);
}

function ranged(kind: 'source' | 'destination', text: string): RuleArg | undefined {
  const range = readRange(text);
  return range && { kind, range };
}

function portRange(kind: 'source-port' | 'destination-port', text: string): RuleArg | undefined {
  const ports = parsePortRange(text);
  return ports && { kind, ports };
}

function readMarkMatch(text: string): RuleArg | undefined {
  const mark = parseMark(text);
  return mark && { kind: 'mark', value: mark.value, mask: mark.mask ?? 0xffffffff };
}

function readSetMatch(set: string, text: string): RuleArg | undefined {
  const directions = text.split(',');
  const areKnown = directions.every((word) => word === 'src' || word === 'dst');
  return areKnown ? { kind: 'match-set', set, directions } : undefined;
}

function readRange(text: string): AddressRange | undefined {
  const range = parseAddressRange(text);
  return range && isMapped(range, text) ? undefined : range;
}

/** iptables takes an IPv4-mapped address for IPv6. Here it would become IPv4, and could not be written back. */
function isMapped({ family }: AddressRange, text: string): boolean {
  return family === 'ipv4' && !/^\d+\./.test(text);
}

/** Options that belong to no match, and those of the matches tcp, udp and sctp, as iptables-save and kube-proxy write them. */
const ownOptions: ReadonlySet<string> = new Set('-s -d -i -o -p -m -j -g -f -c --dport --sport'.split(' '));

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
    else if (ownOptions.has(word)) return at > from && words[at - 1] === '!' && at - 1 !== value ? at - 1 : at;
  }
  return words.length;
}

/** `-m ipvs` with its three options in any order. */
const serverPattern = /^ipvs(?=.* --vaddr (\S+))(?=.* --vproto (\S+))(?=.* --vport (\d+))(?: --v\w+ \S+){3}$/;

/** `-m recent` as kube-proxy writes it, and as iptables-save does, which prints the name last and two defaults after it. */
const recentPattern = new RegExp(
  '^recent(?: --name (\\S+))? (?:(--set)|--rcheck --seconds (\\d{1,9})( --reap)?)' +
    '(?: --name (\\S+)(?: --mask (?:255.255.255.255|ffff(?::ffff){7}) --rsource)?)?$',
);

/** Reads `-m NAME` with several options. */
function readLongMatch(words: readonly string[]): RuleArg | undefined {
  if (words.some((word) => /\s/.test(word))) return undefined;
  const text = words.join(' ');
  const [, probability] = /^statistic --mode random --probability (\S+)$/.exec(text) ?? [];
  if (probability !== undefined) return { kind: 'statistic', probability };
  const [isRecent, first, sets, seconds, reap, last] = recentPattern.exec(text) ?? [];
  const name = first ?? last;
  if (isRecent !== undefined && name !== undefined && (first === undefined || last === undefined)) {
    const check = { kind: 'rcheck', seconds: Number(seconds), reap: reap !== undefined } as const;
    return { kind: 'recent', name, action: sets === undefined ? check : { kind: 'set' } };
  }
  const [, to = '', protocol = '', portText = ''] = serverPattern.exec(text) ?? [];
  const range = readRange(to);
  const address = range && singleAddress(range);
  const port = parsePort(portText);
  return address && port !== undefined
    ? { kind: 'virtual-server', address, protocol: nameProtocol(protocol), port }
    : undefined;
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

/** Reads `-j` or `-g`, and the words of the target. */
function readJump(option: string, words: readonly string[]): RuleArg {
  const target = readTarget(words) ?? { kind: 'other', words };
  return option === '-g' ? { kind: 'jump', target, goto: true } : { kind: 'jump', target };
}

/** Targets that work without options, so that only the name distinguishes them from a chain. */
const otherTargets: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG MARK NETMAP NFLOG ' +
    'NFQUEUE NOTRACK QUEUE RATEEST REDIRECT SECMARK SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TEE TOS TPROXY TRACE ' +
    'TTL ULOG'
  ).split(' '),
);

const bareTargets: ReadonlyMap<string, Target> = new Map<string, Target>([
  ['ACCEPT', { kind: 'accept' }],
  ['DROP', { kind: 'drop' }],
  ['RETURN', { kind: 'return' }],
  ['REJECT', { kind: 'reject' }],
  ['MASQUERADE', { kind: 'masquerade', randomFully: false }],
]);

/** Undefined if kpc does not know the target. */
function readTarget(words: readonly string[]): Target | undefined {
  const [name = '', option = '', value = ''] = words;
  switch (words.length) {
    case 1:
      return bareTargets.get(name) ?? (otherTargets.has(name) ? undefined : { kind: 'chain', chain: name });
    case 2:
      return name === 'MASQUERADE' && option === '--random-fully'
        ? { kind: 'masquerade', randomFully: true }
        : undefined;
    case 3:
      if (name === 'REJECT' && option === '--reject-with') return { kind: 'reject', with: value };
      if (name === 'DNAT' && option === '--to-destination') return parseDnat(value);
      return name === 'MARK' ? parseMarkTarget(option, value) : undefined;
    default:
      return undefined;
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

/** A word, with strings in it that hold blanks; or the rest of the line, from a quote on that is not closed. */
const wordPattern = /(?:[^ \t"]+|"[^"\\]*(?:\\.[^"\\]*)*")+|"[^]*/g;

/**
 * Splits a line into words as iptables-restore does: blanks separate, double quotes hold a word together, and within
 * them a backslash takes the next character as it is. Undefined if a quote is not closed.
 */
export function splitWords(line: string): string[] | undefined {
  if (!line.includes('"') && !line.includes('\t')) {
    const words = line.split(' ');
    return words.includes('') ? words.filter((word) => word !== '') : words;
  }
  const words: string[] = line.match(wordPattern) ?? [];
  const isOpen = /^"(?![^"\\]*(?:\\.[^"\\]*)*")/.test(words.at(-1) ?? '');
  return isOpen ? undefined : words.map(unquote);
}

function unquote(word: string): string {
  if (!word.includes('"')) return word;
  if (!word.includes('\\')) return word.replaceAll('"', '');
  return word.replace(/"((?:[^"\\]|\\.)*)"/g, (_, quoted: string) => quoted.replace(/\\(.)/g, '$1'));
}
