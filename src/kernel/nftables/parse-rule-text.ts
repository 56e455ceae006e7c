import { parseAddress, parseNetwork } from '../address.ts';
import type { Family } from '../family.ts';
import { parseNumber32, parseSocketAddress } from '../ports-and-marks.ts';
import type { Value, NftVerdict, Expression, Field, Right, Selector, DnatTarget, NftRule } from './table.ts';
import { bareMeta } from './format.ts';
import { unquote, type Words } from './tokens.ts';

/** Reads a rule of nft or kube-proxy. From the first unknown expression on, keeps the words. */
export function readRule(words: Words, family: Family): NftRule {
  const comment = words.takeComment();
  const expressions: Expression[] = [];
  while (!words.done) {
    const start = words.position;
    const expression = readExpression(words, family);
    if (expression) {
      expressions.push(expression);
      continue;
    }
    words.position = start;
    expressions.push({ kind: 'unknown', text: words.takeRest().join(' ') });
  }
  return comment === undefined ? { expressions } : { expressions, comment };
}

/** Reads one expression as kube-proxy writes it or nft prints it; undefined if unknown, and then any number of words may be consumed. */
export function readExpression(words: Words, family: Family): Expression | undefined {
  const verdict = readVerdict(words);
  if (verdict) return { kind: 'verdict', verdict };
  if (words.take('reject')) return readReject(words, family);
  if (words.take('masquerade')) return { kind: 'masquerade', fullyRandom: words.take('fully-random') };
  if (words.take('dnat')) return readDnat(words, family);
  if (words.take('numgen')) {
    const chains = readRandom(words, 'vmap', () => (words.take('goto') ? words.next() : undefined));
    return chains && { kind: 'goto-random', chains };
  }
  if (words.take('counter', 'name'))
    return words.done ? undefined : { kind: 'counter', counter: unquote(words.next()) };
  if (words.take('mark', 'set') || words.take('meta', 'mark', 'set')) return readSetMark(words);
  const operation = words.peek();
  if (operation === 'update' || operation === 'add' || operation === 'delete') {
    words.next();
    const set = readSetName(words);
    const key = set !== undefined && words.take('{') ? readSelector(words) : undefined;
    return set !== undefined && key && words.take('}') ? { kind: 'write-set', operation, set, key } : undefined;
  }
  return readMatch(words);
}

const plainVerdicts: ReadonlyMap<string, NftVerdict> = new Map(
  (['accept', 'drop', 'return', 'continue'] as const).map((kind) => [kind, { kind }]),
);

/** Reads `accept`, `goto CHAIN` and so on. If the next words are no verdict, consumes none and returns undefined. */
export function readVerdict(words: Words): NftVerdict | undefined {
  const kind = words.peek() ?? '';
  const chain = words.peek(1);
  const goesOn = (kind === 'goto' || kind === 'jump') && chain !== undefined;
  const verdict: NftVerdict | undefined = goesOn ? { kind, chain } : plainVerdicts.get(kind);
  if (verdict) words.position += goesOn ? 2 : 1;
  return verdict;
}

/** nft's spellings of a plain `reject`; a number with -n. */
const defaultReject: { readonly [F in Family]: readonly string[] } = {
  ipv4: ['icmp port-unreachable', 'icmp 3'],
  ipv6: ['icmpv6 port-unreachable', 'icmpv6 4'],
};

/** Newer versions of nft omit the word `type` before the code. */
function readReject(words: Words, family: Family): Expression {
  if (!words.take('with')) return { kind: 'reject' };
  const answer = words
    .takeRest()
    .filter((word) => word !== 'type')
    .join(' ');
  return defaultReject[family].includes(answer) ? { kind: 'reject' } : { kind: 'reject', with: answer };
}

function readDnat(words: Words, family: Family): Expression | undefined {
  // Some versions print "dnat ip to" for "dnat ip addr . port to".
  if (words.peek() === 'ip' || words.peek() === 'ip6') words.next();
  words.take('addr', '.', 'port');
  if (!words.take('to')) return undefined;
  if (words.take('numgen')) {
    const targets = readRandom(words, 'map', () => readTarget(words, family));
    return targets && { kind: 'dnat-random', targets };
  }
  const target = parseSocketAddress(words.next());
  return target?.address.family === family ? { kind: 'dnat', target } : undefined;
}

/** Reads `10.0.0.1 . 80`. */
function readTarget(words: Words, family: Family): DnatTarget | undefined {
  const address = parseAddress(words.next());
  const port = words.take('.') ? parseNumber32(words.next()) : undefined;
  return address?.family === family && port !== undefined && port <= 65535 ? { address, port } : undefined;
}

/** Reads `random mod N map { 0 : …, 1 : … }` in any order. Undefined unless each of the N draws has an item. */
function readRandom<T>(words: Words, map: 'map' | 'vmap', readItem: () => T | undefined): readonly T[] | undefined {
  if (!words.take('random', 'mod')) return undefined;
  const count = parseNumber32(words.next());
  if (words.take('offset') && words.next() !== '0') return undefined;
  if (!words.take(map, '{')) return undefined;
  const items = new Map<number, T>();
  while (!words.take('}')) {
    const index = parseNumber32(words.next());
    const item = index !== undefined && words.take(':') ? readItem() : undefined;
    if (index === undefined || item === undefined) return undefined;
    items.set(index, item);
    if (!words.take(',') && words.peek() !== '}') return undefined;
  }
  const ordered = Array.from(items.keys(), (_, index) => items.get(index));
  return count === items.size && count > 0 && ordered.every((item) => item !== undefined) ? ordered : undefined;
}

function readSetMark(words: Words): Expression | undefined {
  const hasOwn = words.take('mark') || words.take('meta', 'mark');
  const operator = hasOwn ? words.next() : '';
  const value = parseNumber32(words.next());
  if (value === undefined) return undefined;
  if (operator === '') return { kind: 'set-mark', operation: 'set', value };
  if (operator === 'or' || operator === '|') return { kind: 'set-mark', operation: 'or', value };
  return operator === 'xor' || operator === '^' ? { kind: 'set-mark', operation: 'xor', value } : undefined;
}

function readSetName(words: Words): string | undefined {
  return words.peek()?.startsWith('@') ? words.next().slice(1) : undefined;
}

function readMatch(words: Words): Expression | undefined {
  const left = readSelector(words);
  if (!left) return undefined;
  if (words.take('vmap')) {
    const map = readSetName(words);
    return map === undefined ? undefined : { kind: 'verdict-map', key: left, map };
  }
  const negated = words.take('!=') || undefined;
  // Without `==`, this field is tested for a bit; with it, as a whole.
  if (!negated && words.take('==') && left[0]?.name === 'ct status') return undefined;
  const masked = readMaskedPrefix(words, left);
  const right = masked?.right ?? readRight(words, left);
  // More values follow, as in `ct state established,related`.
  if (!right || words.peek() === ',') return undefined;
  return { kind: 'match', left: masked?.left ?? left, ...(negated ? { negated } : {}), right };
}

/** Reads nft's form of masks of high bits: `meta mark != 0x00000000/1` for `meta mark & 0x80000000 != 0`. */
function readMaskedPrefix(words: Words, left: Selector): { left: Selector; right: Right } | undefined {
  const [, number, digits] = /^(0x[\da-f]+|\d+)\/(\d{1,2})$/i.exec(words.peek() ?? '') ?? [];
  const [field] = left;
  const length = Number(digits);
  if (field?.name !== 'mark' || number === undefined || length > 32) return undefined;
  words.next();
  const mask = length === 0 ? 0 : (0xffffffff << (32 - length)) >>> 0;
  return {
    left: [{ ...field, mask }],
    right: { kind: 'value', value: { kind: 'number', value: Number(number) } },
  };
}

function readRight(words: Words, left: Selector): Right | undefined {
  const set = readSetName(words);
  if (set !== undefined) return { kind: 'set', set };
  const [field, second] = left;
  if (!field || second) return undefined;
  const type = fieldType(field);
  if (words.take('{')) {
    const values = readValues(words, type);
    return values && { kind: 'any-of', values };
  }
  const value = readValue(unquote(words.next()), type);
  return value && { kind: 'value', value };
}

function readValues(words: Words, type: ValueType): readonly Value[] | undefined {
  const values: Value[] = [];
  while (!words.take('}')) {
    const value = readValue(unquote(words.next()), type);
    if (!value) return undefined;
    values.push(value);
    if (!words.take(',') && words.peek() !== '}') return undefined;
  }
  return values;
}

function readSelector(words: Words): Selector | undefined {
  const fields: Field[] = [];
  do {
    const field = readField(words);
    if (!field) return undefined;
    fields.push(field);
  } while (words.take('.'));
  return fields;
}

function readField(words: Words): Field | undefined {
  const name = readFieldName(words);
  if (name === undefined || !(words.take('&') || words.take('and'))) return name === undefined ? undefined : { name };
  const mask = parseNumber32(words.next());
  return mask === undefined ? undefined : { name, mask };
}

function readFieldName(words: Words): string | undefined {
  const first = words.next();
  if (bareMeta.has(first)) return first;
  const second = words.next();
  if (first === 'meta' && bareMeta.has(second)) return second;
  if (first !== 'fib') return fieldTypes.has(`${first} ${second}`) ? `${first} ${second}` : undefined;
  let flags = second;
  while (words.take('.')) flags += ` . ${words.next()}`;
  return words.done ? undefined : `fib ${flags} ${words.next()}`;
}

/** How to read the constants of a field or key: nft prints some in several ways. */
export type ValueType = 'address' | 'number' | 'word' | keyof typeof names;

/** nft's names for these numbers. It prints numbers with -n, and protocol numbers also if /etc/protocols is missing. */
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

/** How to read a part of a set's key, by nft's name for its type. */
export function valueTypeOf(dataType: string): ValueType {
  return dataTypes.get(dataType) ?? 'word';
}

/** The fields that kpc reads, except those of fib. The number of words of any other field is unknown. */
const fieldsOfType: readonly (readonly [ValueType, string])[] = [
  ['address', 'ip saddr, ip daddr, ip6 saddr, ip6 daddr'],
  ['number', 'th sport, th dport, tcp sport, tcp dport, udp sport, udp dport, sctp sport, sctp dport, mark, ct mark'],
  ['protocol', 'meta l4proto'],
  ['ct-state', 'ct state'],
  ['ct-status', 'ct status'],
  ['word', 'ip protocol, ip6 nexthdr, iifname, oifname, iif, oif, meta nfproto, meta skuid, meta skgid, meta pkttype'],
];
const fieldTypes = new Map(
  fieldsOfType.flatMap(([type, listed]) => listed.split(', ').map((name) => [name, type] as const)),
);

function fieldType({ name }: Field): ValueType {
  return fieldTypes.get(name) ?? (/^fib .* type$/.test(name) ? 'address-type' : 'word');
}

/** Reads a constant of that type; undefined if it is not one. */
export function readValue(text: string, type: ValueType): Value | undefined {
  if (type === 'word') return { kind: 'word', text };
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
