import { parseAddress, parseNetwork } from '../address.ts';
import type { Family } from '../family.ts';
import type { Value } from './element.ts';
import type { Field, Selector, Target } from './expression.ts';

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
