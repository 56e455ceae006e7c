// The operands of nft's rules and sets: fields of packets, and constants, which nft prints in several ways.
import { parseAddress, parseNetwork } from '../address.ts';
import { parseNumber32 } from '../ports-and-marks.ts';
import type { Field, Selector, Value } from './table.ts';
import type { Words } from './tokens.ts';

/** How to read the constants of a field or key. `content`: as words, which kpc cannot write back. */
export type ValueType = 'address' | 'number' | 'word' | 'content' | keyof typeof names;

/** nft's names for these numbers. nft prints numbers with -n, and protocol numbers also if /etc/protocols is missing. */
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

/** Metadata that nft accepts without the word meta, as kube-proxy writes it. */
export const bareMeta: ReadonlySet<string> = new Set(['mark', 'iifname', 'oifname', 'iif', 'oif']);

/** Reads one field, or the several fields of a key. */
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

/** Reads a constant of that type; undefined if it is not one. */
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
