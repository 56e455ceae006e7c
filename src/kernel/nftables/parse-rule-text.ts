import type { Family } from '../family.ts';
import { parseSocketAddress } from '../socket-address.ts';
import type { Value, Verdict } from './element.ts';
import type { Expression, Field, Right, Selector, Target } from './expression.ts';
import { isQuoted, unquote, Words } from './words.ts';
import type { NftRule } from './table.ts';
import { parseAddress, parseNetwork } from '../address.ts';

/**
 * Reads a rule as nft prints it, or as kube-proxy writes it. From the first expression that kpc does not read on, the
 * words are kept as one of kind unknown.
 */
export function readRule(words: readonly string[], family: Family): NftRule {
  const quoted = words.at(-1);
  const hasComment = words.at(-2) === 'comment' && isQuoted(quoted);
  const reader = new Words(hasComment ? words.slice(0, -2) : words);
  const expressions: Expression[] = [];
  while (!reader.done) {
    const start = reader.position;
    const expression = readExpression(reader, family);
    if (expression) {
      expressions.push(expression);
      continue;
    }
    reader.position = start;
    expressions.push({ kind: 'unknown', text: reader.rest().join(' ') });
    break;
  }
  return hasComment ? { expressions, comment: unquote(quoted) } : { expressions };
}

function readExpression(words: Words, family: Family): Expression | undefined {
  const verdict = readVerdict(words);
  if (verdict) return { kind: 'verdict', verdict };
  if (words.take('reject')) return readReject(words, family);
  if (words.take('masquerade')) return { kind: 'masquerade', fullyRandom: words.take('fully-random') };
  if (words.take('dnat')) return readDnat(words, family);
  if (words.take('numgen')) return readRandomGoto(words);
  if (words.take('counter', 'name')) return readCounter(words);
  if (words.take('mark', 'set') || words.take('meta', 'mark', 'set')) return readSetMark(words);
  const operation = words.peek();
  if (operation === 'update' || operation === 'add' || operation === 'delete') {
    words.next();
    return readWriteSet(words, operation);
  }
  return readMatch(words);
}

function readCounter(words: Words): Expression | undefined {
  const name = words.next();
  return name === undefined ? undefined : { kind: 'counter', counter: unquote(name) };
}

/** Reads `accept`, `goto CHAIN` and so on; undefined, and no word taken, where there is none. */
export function readVerdict(words: Words): Verdict | undefined {
  const kind = words.peek();
  switch (kind) {
    case 'accept':
    case 'drop':
    case 'return':
    case 'continue':
      words.next();
      return { kind };
    case 'jump':
    case 'goto': {
      const chain = words.peek(1);
      if (chain === undefined) return undefined;
      words.position += 2;
      return { kind, chain };
    }
    default:
      return undefined;
  }
}

/** The word `type` before what is told is left out by newer versions of nft. */
function readReject(words: Words, family: Family): Expression {
  if (!words.take('with')) return { kind: 'reject' };
  const said = words.rest().filter((word) => word !== 'type');
  words.position += words.rest().length;
  return rejectWith(said.join(' '), family);
}

/** A reject with what is told to the sender: kind and code. */
function rejectWith(told: string, family: Family): Expression {
  return defaultReject[family].includes(told) ? { kind: 'reject' } : { kind: 'reject', with: told };
}

/** What nft writes for `reject` alone, with a number where the option -n asks for it. */
const defaultReject: { readonly [F in Family]: readonly string[] } = {
  ipv4: ['icmp port-unreachable', 'icmp 3'],
  ipv6: ['icmpv6 port-unreachable', 'icmpv6 4'],
};

function readDnat(words: Words, family: Family): Expression | undefined {
  // Some versions print "dnat ip to" for "dnat ip addr . port to".
  if (words.peek() === 'ip' || words.peek() === 'ip6') words.next();
  words.take('addr', '.', 'port');
  if (!words.take('to')) return undefined;
  if (words.take('numgen')) {
    const count = readRandom(words);
    if (count === undefined || !words.take('map')) return undefined;
    const targets = readPairs(words, count, () => readConcatTarget(words, family));
    return targets && { kind: 'dnat-random', targets };
  }
  const target = readSocket(words.next() ?? '', family);
  return target && { kind: 'dnat', target };
}

function readConcatTarget(words: Words, family: Family): Target | undefined {
  const address = words.next() ?? '';
  return words.take('.') ? readTarget(address, words.next() ?? '', family) : undefined;
}

function readSocket(text: string, family: Family): Target | undefined {
  const socket = parseSocketAddress(text);
  return socket?.address.family === family ? socket : undefined;
}

function readRandomGoto(words: Words): Expression | undefined {
  const count = readRandom(words);
  if (count === undefined || !words.take('vmap')) return undefined;
  const chains = readPairs(words, count, () => (words.take('goto') ? words.next() : undefined));
  return chains && { kind: 'goto-random', chains };
}

/** `random mod N`, of which N is the result. */
function readRandom(words: Words): number | undefined {
  if (!words.take('random', 'mod')) return undefined;
  const count = readNumber(words.next() ?? '');
  if (words.take('offset') && words.next() !== '0') return undefined;
  return count;
}

/** `{ 0 : …, 1 : … }`, in any order. */
function readPairs<T>(words: Words, count: number, readItem: () => T | undefined): readonly T[] | undefined {
  if (!words.take('{')) return undefined;
  const pairs: (readonly [number, T])[] = [];
  while (!words.take('}')) {
    const index = readNumber(words.next() ?? '');
    if (index === undefined || !words.take(':')) return undefined;
    const item = readItem();
    if (item === undefined) return undefined;
    pairs.push([index, item]);
    if (!words.take(',') && words.peek() !== '}') return undefined;
  }
  return inOrder(pairs, count);
}

const markOperators: Readonly<Record<string, 'or' | 'xor'>> = { or: 'or', '|': 'or', xor: 'xor', '^': 'xor' };

function readSetMark(words: Words): Expression | undefined {
  if (!words.take('mark') && !words.take('meta', 'mark')) {
    const value = readNumber(words.next() ?? '');
    return value === undefined ? undefined : { kind: 'set-mark', operation: 'set', value };
  }
  const operation = markOperators[words.next() ?? ''];
  const value = readNumber(words.next() ?? '');
  return operation && value !== undefined ? { kind: 'set-mark', operation, value } : undefined;
}

function readWriteSet(words: Words, operation: 'add' | 'update' | 'delete'): Expression | undefined {
  const set = readSetName(words);
  if (set === undefined || !words.take('{')) return undefined;
  const key = readSelector(words);
  return key && words.take('}') ? { kind: 'write-set', operation, set, key } : undefined;
}

function readSetName(words: Words): string | undefined {
  const word = words.peek();
  if (!word?.startsWith('@')) return undefined;
  words.next();
  return word.slice(1);
}

function readMatch(words: Words): Expression | undefined {
  const left = readSelector(words);
  if (!left) return undefined;
  if (words.take('vmap')) {
    const map = readSetName(words);
    return map === undefined ? undefined : { kind: 'verdict-map', key: left, map };
  }
  const negated = words.take('!=');
  if (!negated) words.take('==');
  const match = readMaskedPrefix(words, left) ?? readComparison(words, left);
  // More values follow, as in `ct state established,related`.
  if (!match || words.peek() === ',') return undefined;
  return { kind: 'match', left: match.left, ...(negated ? { negated } : {}), right: match.right };
}

/** A side of a match each. */
interface Comparison {
  readonly left: Selector;
  readonly right: Right;
}

function readComparison(words: Words, left: Selector): Comparison | undefined {
  const set = readSetName(words);
  if (set !== undefined) return { left, right: { kind: 'set', set } };
  const type = comparedType(left);
  if (type === undefined) return undefined;
  if (words.take('{')) {
    const values = readValues(words, type);
    return values && { left, right: { kind: 'any-of', values } };
  }
  const value = readValue(unquote(words.next() ?? ''), type);
  return value && { left, right: { kind: 'value', value } };
}

function readMaskedPrefix(words: Words, left: Selector): Comparison | undefined {
  const [, value, length] = /^(0x[\da-f]+|\d+)\/(\d{1,2})$/i.exec(words.peek() ?? '') ?? [];
  const [field] = left;
  if (!field || field.kind !== 'meta' || value === undefined || Number(length) > 32) return undefined;
  words.next();
  return maskedComparison(field, Number(length), Number(value));
}

/** `meta mark & MASK` against a number. */
function maskedComparison(field: Field, length: number, value: number): Comparison {
  return {
    left: [{ kind: 'masked', field, mask: prefixMask(length) }],
    right: { kind: 'value', value: { kind: 'number', value } },
  };
}

function readValues(words: Words, type: ValueType): readonly Value[] | undefined {
  const values: Value[] = [];
  while (!words.take('}')) {
    const value = readValue(unquote(words.next() ?? ''), type);
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

/** The fields that are read, by the word before their name: of others it is not known how many words they have. */
const fieldNames: Readonly<Record<string, ReadonlySet<string>>> = {
  ip: new Set(['saddr', 'daddr', 'protocol']),
  ip6: new Set(['saddr', 'daddr', 'nexthdr']),
  th: new Set(['sport', 'dport']),
  tcp: new Set(['sport', 'dport']),
  udp: new Set(['sport', 'dport']),
  sctp: new Set(['sport', 'dport']),
  meta: new Set(['mark', 'l4proto', 'nfproto', 'iifname', 'oifname', 'iif', 'oif', 'skuid', 'skgid', 'pkttype']),
  ct: new Set(['state', 'status', 'mark']),
};
const bareMeta = new Set(['mark', 'iifname', 'oifname', 'iif', 'oif']);

function readField(words: Words): Field | undefined {
  const word = words.next();
  if (word === undefined) return undefined;
  const field = readPlainField(words, word);
  if (!field || !(words.take('&') || words.take('and'))) return field;
  const mask = readNumber(words.next() ?? '');
  return mask === undefined ? undefined : { kind: 'masked', field, mask };
}

function readPlainField(words: Words, word: string): Field | undefined {
  if (bareMeta.has(word)) return { kind: 'meta', key: word };
  if (word === 'fib') return readFib(words);
  const name = words.next();
  if (name === undefined || !fieldNames[word]?.has(name)) return undefined;
  return word === 'meta' || word === 'ct'
    ? { kind: word, key: name }
    : { kind: 'payload', protocol: word, field: name };
}

function readFib(words: Words): Field | undefined {
  const flags = [words.next() ?? ''];
  while (words.take('.')) flags.push(words.next() ?? '');
  const result = words.next();
  return result === undefined ? undefined : { kind: 'fib', flags, result };
}

/** What a constant stands for, where it is compared or stored: nft prints some of them in several ways. */
export type ValueType = 'address' | 'number' | 'word' | NumberedType;

/** Types whose names nft prints as numbers with the option -n. */
type NumberedType = 'protocol' | 'ct-state' | 'ct-status' | 'address-type';

/** What the parts of a set's key are, by nft's name of their type. */
export function valueTypeOf(dataType: string): ValueType {
  switch (dataType) {
    case 'ipv4_addr':
    case 'ipv6_addr':
      return 'address';
    case 'inet_service':
    case 'mark':
      return 'number';
    case 'inet_proto':
      return 'protocol';
    default:
      return 'word';
  }
}

/** What a selector of one field is compared with. */
export function comparedType(selector: Selector): ValueType | undefined {
  const [field, second] = selector;
  return field === undefined || second !== undefined ? undefined : fieldType(field);
}

function fieldType(field: Field): ValueType {
  switch (field.kind) {
    case 'payload':
      if (field.field === 'saddr' || field.field === 'daddr') return 'address';
      return field.field === 'sport' || field.field === 'dport' ? 'number' : 'word';
    case 'meta':
      if (field.key === 'mark') return 'number';
      return field.key === 'l4proto' ? 'protocol' : 'word';
    case 'ct':
      return ctTypes[field.key] ?? 'word';
    case 'fib':
      return field.result === 'type' ? 'address-type' : 'word';
    case 'masked':
      return fieldType(field.field);
    default:
      return field satisfies never;
  }
}

/** Reads a constant of that type; undefined where it is none. */
export function readValue(text: string, type: ValueType): Value | undefined {
  switch (type) {
    case 'address':
      return readAddresses(text);
    case 'number': {
      const value = readNumber(text);
      return value === undefined ? undefined : { kind: 'number', value };
    }
    case 'protocol':
    case 'ct-state':
    case 'ct-status':
    case 'address-type':
      return { kind: 'word', text: nameOf(text, names[type]) };
    case 'word':
      return { kind: 'word', text };
    default:
      return type satisfies never;
  }
}

const ctTypes: Readonly<Record<string, ValueType>> = { mark: 'number', state: 'ct-state', status: 'ct-status' };

/** What nft calls these numbers. Where /etc/protocols is missing, it prints protocols as numbers without -n, too. */
const names: { readonly [T in NumberedType]: Readonly<Record<number, string>> } = {
  protocol: { 6: 'tcp', 17: 'udp', 132: 'sctp' },
  'ct-state': { 1: 'invalid', 2: 'established', 4: 'related', 8: 'new', 64: 'untracked' },
  'ct-status': { 1: 'expected', 2: 'seen-reply', 4: 'assured', 8: 'confirmed', 16: 'snat', 32: 'dnat', 512: 'dying' },
  'address-type': {
    0: 'unspec',
    1: 'unicast',
    2: 'local',
    3: 'broadcast',
    4: 'anycast',
    5: 'multicast',
    6: 'blackhole',
    7: 'unreachable',
    8: 'prohibit',
  },
};

function nameOf(text: string, known: Readonly<Record<number, string>>): string {
  const number = readNumber(text);
  return (number === undefined ? undefined : known[number]) ?? text;
}

/** Decimal or hex, of 32 bits at most. */
export function readNumber(text: string): number | undefined {
  if (!/^(?:\d{1,10}|0x[\da-f]{1,8})$/i.test(text)) return undefined;
  const value = Number(text);
  return value <= 0xffffffff ? value : undefined;
}

function readAddresses(text: string): Value | undefined {
  if (text.includes('/')) {
    const network = parseNetwork(text);
    return network && { kind: 'network', network };
  }
  const dash = text.indexOf('-');
  if (dash >= 0) return readRange(text.slice(0, dash), text.slice(dash + 1));
  const address = parseAddress(text);
  return address && { kind: 'address', address };
}

function readRange(from: string, to: string): Value | undefined {
  const first = parseAddress(from);
  const last = parseAddress(to);
  return first && last && first.family === last.family ? { kind: 'range', first, last } : undefined;
}

/** Reads "10.0.0.1" and "80". */
export function readTarget(address: string, port: string, family: Family): Target | undefined {
  const parsed = parseAddress(address);
  const number = readNumber(port);
  if (!parsed || parsed.family !== family || number === undefined || number > 65535) return undefined;
  return { address: parsed, port: number };
}

/**
 * The mask of a prefix of a 32-bit number: where the bits that a mask leaves are the uppermost ones, nft prints
 * `meta mark != 0x00000000/1` for `meta mark & 0x80000000 != 0`.
 */
export function prefixMask(length: number): number {
  return length === 0 ? 0 : (0xffffffff << (32 - length)) >>> 0;
}

/** Items of a map whose keys are 0, 1, 2 and so on, one for each of `count` draws; undefined for any other map. */
export function inOrder<T>(pairs: readonly (readonly [number, T])[], count: number): readonly T[] | undefined {
  if (pairs.length !== count || count === 0) return undefined;
  const items = new Map(pairs);
  const ordered: T[] = [];
  for (let index = 0; index < count; index++) {
    const item = items.get(index);
    if (item === undefined) return undefined;
    ordered.push(item);
  }
  return ordered;
}
