import { allBits, type RuleVerdict, parseNumber32 } from '../ports-and-marks.ts';
import type { Element, Field, Match, Right, Selector, Value } from './table.ts';
import { unquote, type Words } from './tokens.ts';
import { parseAddress, parseNetwork } from '../address.ts';

/** How to read the constants of a field or key. `content`: as words that kpc cannot write back. */
type ValueType = 'address' | 'number' | 'word' | 'content' | keyof typeof names;

/**
 * The names that nft prints for numbers. With -n it prints the numbers themselves. It also prints protocol numbers if /etc/protocols is
 * missing.
 */
const names = {
  protocol: { 1: 'icmp', 6: 'tcp', 17: 'udp', 58: 'ipv6-icmp', 132: 'sctp' },
  'ct-state': { 1: 'invalid', 2: 'established', 4: 'related', 8: 'new', 64: 'untracked' },
  'ct-status': { 1: 'expected', 2: 'seen-reply', 4: 'assured', 8: 'confirmed', 16: 'snat', 32: 'dnat', 512: 'dying' },
  'address-type': 'unspec unicast local broadcast anycast multicast blackhole unreachable prohibit'.split(' '),
} as const satisfies Readonly<Record<string, Readonly<Record<number, string>>>>;

const dataTypes: ReadonlyMap<string, ValueType> = new Map([
  ['ipv4_addr', 'address'],
  ['ipv6_addr', 'address'],
  ['inet_service', 'number'],
  ['mark', 'number'],
  ['inet_proto', 'protocol'],
]);

export function valueTypeOf(dataType: string): ValueType {
  return dataTypes.get(dataType) ?? 'word';
}

/** The fields that kpc reads, except those of fib. For any other field, the number of words is unknown. */
const fieldTypes: ReadonlyMap<string, ValueType> = new Map(
  (
    [
      ['address', 'ip saddr, ip daddr, ip6 saddr, ip6 daddr, ct original ip daddr, ct original ip6 daddr'],
      ['number', 'mark, ct mark, ct zone, ct original proto-dst'],
      ['number', 'th sport, th dport, tcp sport, tcp dport, udp sport, udp dport, sctp sport, sctp dport'],
      ['number', 'udplite sport, udplite dport, dccp sport, dccp dport'],
      ['protocol', 'meta l4proto, ip protocol, ip6 nexthdr'],
      ['ct-state', 'ct state'],
      ['ct-status', 'ct status'],
      ['word', 'iifname, oifname, iif, oif, meta nfproto, meta protocol, meta skuid, meta skgid, meta pkttype'],
      ['word', 'ct direction, icmp type, icmpv6 type'],
      [
        'content',
        'ip ttl, ip6 hoplimit, ip length, ip6 length, ip dscp, ip6 dscp, ip id, ip frag-off, ip ecn, ip version, ' +
          'ip hdrlength, meta length, meta priority, meta iifgroup, meta oifgroup, meta iiftype, meta oiftype, ' +
          'meta rtclassid, meta time, meta hour, meta day, meta cpu, meta cgroup, meta ibrname, meta obrname, ' +
          'meta iifkind, meta oifkind, ether saddr, ether daddr, ether type, vlan id, ct helper, ct expiration, ' +
          'ct label, ct bytes, ct packets, ct avgpkt, tcp sequence, tcp window, tcp doff, tcp option maxseg size, ' +
          'udp length, icmp code, icmpv6 code, icmp id, rt classid, rt ipsec, ipsec in reqid',
      ],
    ] as const
  ).flatMap(([type, listed]) => listed.split(', ').map((name) => [name, type] as const)),
);

export function fieldType({ name }: Field): ValueType {
  return fieldTypes.get(name) ?? (/^fib .* type$/.test(name) ? 'address-type' : 'word');
}

/** Returns the data type of a field, or the field's name if kpc reads its constants as words. */
export function dataTypeOf(field: Field): string {
  const type = fieldType(field);
  const isOf = (dataType: string): boolean => dataTypes.get(dataType) === type && !/ip6/.test(field.name);
  return [field.name, ...dataTypes.keys()].find(isOf) ?? (type === 'address' ? 'ipv6_addr' : field.name);
}

/** Metadata that nft accepts without the word meta, which kube-proxy leaves out. */
export const bareMeta: ReadonlySet<string> = new Set(['mark', 'iifname', 'oifname', 'iif', 'oif']);

export function readSelector(words: Words): Selector | undefined {
  const fields: Field[] = [];
  do {
    const name = readFieldName(words);
    const isMasked = name !== undefined && (words.take('&') || words.take('and'));
    const mask = isMasked ? parseNumber32(words.next()) : undefined;
    if (name === undefined || (isMasked && mask === undefined)) return undefined;
    fields.push(isMasked ? { name, mask } : { name });
  } while (words.take('.'));
  return fields;
}

const longest = 4;

export function readFieldName(words: Words): string | undefined {
  if (words.take('fib')) {
    let flags = words.next();
    while (words.take('.')) flags += ` . ${words.next()}`;
    const asked = words.next();
    return /^(?:type|oif|oifname|check)$/.test(asked) ? `fib ${flags} ${asked}` : undefined;
  }
  if (words.peek() === 'meta' && bareMeta.has(words.peek(1) ?? '')) words.next();
  let name = words.next();
  for (let length = 1; length < longest && !fieldTypes.has(name); length++) name += ` ${words.next()}`;
  return fieldTypes.has(name) ? name : undefined;
}

export function readValue(text: string, type: ValueType): Value | undefined {
  if (type === 'word' || type === 'content') return { kind: 'word', text };
  if (type === 'address') return readAddresses(text);
  const value = parseNumber32(text);
  if (type === 'number') return value === undefined ? readNumbers(text) : { kind: 'number', value };
  const known: Readonly<Record<number, string>> = names[type];
  return { kind: 'word', text: (value === undefined ? undefined : known[value]) ?? text };
}

function readNumbers(text: string): Value | undefined {
  const [first, last, ...more] = text.split('-').map(parseNumber32);
  if (first === undefined || last === undefined || more.length > 0) return undefined;
  return { kind: 'numbers', first, last };
}

function readAddresses(text: string): Value | undefined {
  if (text.includes('/')) {
    const network = parseNetwork(text);
    return network && { kind: 'network', network };
  }
  const dash = text.indexOf('-');
  if (dash >= 0) {
    const first = parseAddress(text.slice(0, dash));
    const last = parseAddress(text.slice(dash + 1));
    return first && last && first.family === last.family ? { kind: 'range', first, last } : undefined;
  }
  const address = parseAddress(text);
  return address && { kind: 'address', address };
}

const plainVerdicts: ReadonlyMap<string, RuleVerdict> = new Map(
  (['accept', 'drop', 'return', 'continue'] as const).map((kind) => [kind, { kind }]),
);

/** Reads `accept`, `goto CHAIN` and so on. If the next words are not a verdict, consumes none and returns undefined. */
export function readVerdict(words: Words): RuleVerdict | undefined {
  const kind = words.peek() ?? '';
  const chain = words.peek(1);
  const goesOn = (kind === 'goto' || kind === 'jump') && chain !== undefined;
  const verdict: RuleVerdict | undefined = goesOn ? { kind, chain } : plainVerdicts.get(kind);
  if (verdict) words.position += goesOn ? 2 : 1;
  return verdict;
}

/** The largest N for which readDraws accepts ranges, to limit memory. */
const mostDraws = 10_000;

/** Reads `mod N map { 0 : …, 1-2 : … }` in any order. Undefined unless each of the N draws has an item. */
export function readDraws<T>(
  words: Words,
  map: 'map' | 'vmap',
  readItem: () => T | undefined,
): readonly T[] | undefined {
  const count = readModulus(words) ?? 0;
  if (!words.take(map, '{')) return undefined;
  let drawn = 0;
  const items = new Map<number, T>();
  while (!words.take('}')) {
    const [first, last = first] = words.next().split('-').map(parseNumber32);
    const item = words.take(':') ? readItem() : undefined;
    if (first === undefined || last === undefined || item === undefined) return undefined;
    drawn += last - first + 1;
    if (last < first || drawn > count || (last > first && count > mostDraws)) return undefined;
    for (let draw = first; draw <= last; draw++) items.set(draw, item);
    if (!words.take(',') && words.peek() !== '}') return undefined;
  }
  const ordered = Array.from(items.keys(), (_, draw) => items.get(draw));
  return count === items.size && count > 0 && ordered.every((item) => item !== undefined) ? ordered : undefined;
}

export function readModulus(words: Words): number | undefined {
  const count = words.take('mod') ? parseNumber32(words.next()) : undefined;
  return words.take('offset') && words.next() !== '0' ? undefined : count;
}

export function readSetName(words: Words): string | undefined {
  return words.peek()?.startsWith('@') ? words.next().slice(1) : undefined;
}

const comparisons: ReadonlyMap<string, NonNullable<Match['operator']>> = new Map(
  (['==', '!=', '<=', '>=', '<', '>'] as const).map((each) => [each, each]),
);

/**
 * Reads fields and the values to compare them with. With `isOwn`, accepts only constants that kpc can write; without it, only constants
 * that kpc cannot write.
 */
export function readMatch(words: Words, isOwn: boolean) {
  const left = readSelector(words);
  const types = left?.map(fieldType);
  if (!left || !types || types.includes('content') === isOwn) return undefined;
  if (words.take('vmap')) {
    const right = readBraced(words, types);
    return right && ({ kind: 'verdict-map', left, right } as const);
  }
  const compared = comparisons.get(words.peek() ?? '');
  if (compared) words.next();
  const isPlain = compared === undefined || (compared === '==' && left[0]?.name !== 'ct status');
  const masked = left[0]?.name === 'mark' ? readMaskedPrefix(words, left[0]) : undefined;
  const right = masked?.right ?? readRight(words, types);
  if (!right) return undefined;
  const match = { kind: 'match', left: masked?.left ?? left, right } as const;
  return isPlain ? match : { ...match, operator: compared };
}

/** Reads nft's form of a mask of high bits: `meta mark != 0x00000000/1` for `meta mark & 0x80000000 != 0`. */
function readMaskedPrefix(words: Words, field: Field): { left: Selector; right: Right } | undefined {
  const [, number, digits] = /^(0x[\da-f]+|\d+)\/(\d{1,2})$/i.exec(words.peek() ?? '') ?? [];
  const length = Number(digits);
  if (number === undefined || length > 32) return undefined;
  words.next();
  const mask = length === 0 ? 0 : (allBits << (32 - length)) >>> 0;
  return { left: [{ ...field, mask }], right: { elements: [{ key: [{ kind: 'number', value: Number(number) }] }] } };
}

function readRight(words: Words, types: readonly ValueType[]): Right | undefined {
  if (/^[{@]/.test(words.peek() ?? '')) return readBraced(words, types);
  const elements: Element[] = [];
  do {
    const key = readKey(words, types);
    if (!key) return undefined;
    elements.push({ key });
  } while (words.take(','));
  return { elements };
}

function readBraced(words: Words, types: readonly ValueType[]): Right | undefined {
  const set = readSetName(words);
  if (set !== undefined) return { set };
  if (!words.take('{')) return undefined;
  const elements: Element[] = [];
  while (!words.take('}')) {
    const key = readKey(words, types);
    if (!key) return undefined;
    if (words.take('counter', 'packets')) words.position += 3;
    elements.push(words.take(':') ? { key, value: readVerdict(words) } : { key });
    if (!words.take(',') && words.peek() !== '}') return undefined;
  }
  return { elements, isBraced: true };
}

function readKey(words: Words, types: readonly ValueType[]): readonly Value[] | undefined {
  const key: Value[] = [];
  for (const type of types) {
    if (key.length > 0 && !words.take('.')) return undefined;
    const text = words.next();
    const value = text === '' ? undefined : readValue(unquote(text), type);
    if (!value) return undefined;
    key.push(value);
  }
  return key;
}
