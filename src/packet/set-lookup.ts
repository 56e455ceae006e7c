import { networkOfRange, singleAddress } from '../kernel/address-range.ts';
import { compareAddresses, contains, type Address } from '../kernel/address.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import type { SetEntry } from '../kernel/ipset/set-entry.ts';
import type { Element, Value } from '../kernel/nftables/element.ts';
import { keyMeaning } from '../kernel/nftables/nft-meaning.ts';
import type { NftMap, NftSet } from '../kernel/nftables/table.ts';
import { isInterface, type Flow } from './flow.ts';
import type { Maybe } from './maybe.ts';

/** What a packet has in a field: an address, a port or mark, or a word of nft's. */
export type FieldValue = Address | number | string;

/** The element that holds a key; undefined for none. */
export type NftSetLookup = (flow: Flow, key: readonly FieldValue[]) => Element | undefined;

/**
 * Hashes a set's or map's elements; networks and ranges are tried one by one. The part of keys that is the packet's source,
 * if there is one, is not hashed: which sources a set has for a packet tells clients apart.
 */
export function indexNftSet({ elements }: NftSet | NftMap, sourceAt: number): NftSetLookup {
  const exact = new Map<string, Element[]>();
  const ranges: Element[] = [];
  const hashed = <T>(key: readonly T[]): readonly T[] => key.filter((_, i) => i !== sourceAt);
  for (const element of elements) {
    const key = hashed(element.key);
    const text = keyMeaning(key);
    const same = exact.get(text);
    if (!key.every(isSingle)) ranges.push(element);
    else if (same) same.push(element);
    else exact.set(text, [element]);
  }
  const textOf = (value: FieldValue): string => (typeof value === 'object' ? value.text : String(value));
  return (flow, key) => {
    const same = exact.get(hashed(key).map(textOf).join(' . ')) ?? [];
    if (sourceAt < 0 && same[0]) return same[0];
    const isHeld = (value: Value, i: number): Maybe => i === sourceAt || holds(value, key[i]);
    const found = [...same, ...ranges].filter((element) => element.key.every(isHeld));
    if (sourceAt < 0) return found[0];
    for (const element of found) flow.choices.sources.add(element.key[sourceAt] as Value);
    return found.find((element) => holds(element.key[sourceAt] as Value, key[sourceAt]));
  };
}

function isSingle(value: Value): boolean {
  if (value.kind === 'network') return singleAddress(value.network) !== undefined;
  return value.kind !== 'range' && !(value.kind === 'word' && value.text.endsWith('*'));
}

/** Whether a constant matches what a packet has. */
export function holds(constant: Value, value: FieldValue | undefined): Maybe {
  if (value === undefined) return constant.kind === 'word' ? isInterface(undefined, constant.text, '*') : undefined;
  switch (constant.kind) {
    case 'number':
      return value === constant.value;
    case 'word':
      if (constant.text.endsWith('*')) return typeof value === 'string' && value.startsWith(constant.text.slice(0, -1));
      return value === constant.text;
    case 'address':
      return typeof value === 'object' && value.text === constant.address.text;
    case 'network':
      return typeof value === 'object' && contains(constant.network, value);
    case 'range': {
      const { first, last } = constant;
      return typeof value === 'object' && compareAddresses(first, value) <= 0 && compareAddresses(value, last) <= 0;
    }
    default:
      return constant satisfies never;
  }
}

/** Whether what a packet has in those directions is in a set. */
export type IpSetTest = (flow: Flow, directions: readonly ('src' | 'dst')[]) => Maybe;

/** Hashes a set's entries. Of types that no set of kube-proxy's has, only those of addresses and ports are read. */
export function indexIpSet({ type, family, entries }: IpSet): IpSetTest {
  const hasExceptions = entries.some((entry) => entry.options?.includes('nomatch'));
  if (!hasExceptions && type === 'bitmap:port') return portTest(entries);
  const [, parts] = /^(?:hash|bitmap(?=:ip$)):((?:ip|net)(?:,port(?:,(?:ip|net))?)?)$/.exec(type) ?? [];
  if (hasExceptions || parts === undefined) return () => undefined;
  return addressTest(entries, family === 'inet6' ? 'ipv6' : 'ipv4', parts.split(',').length);
}

function portTest(entries: readonly SetEntry[]): IpSetTest {
  const ports = new Set(entries.map(({ port }) => port));
  return (flow, [direction]) => {
    // The kernel reads no ports of SCTP here.
    if (flow.protocol !== 'tcp' && flow.protocol !== 'udp') return false;
    return direction === 'src' ? undefined : ports.has(flow.port);
  };
}

/** Sets of an address or network, with or without a port, with or without another address or network. */
function addressTest(entries: readonly SetEntry[], family: Address['family'], dimensions: number): IpSetTest {
  const exact = new Map<string, SetEntry[]>();
  const networks: SetEntry[] = [];
  for (const entry of entries) {
    if (!entry.address) {
      if (entry.other === undefined) networks.push(entry);
      continue;
    }
    const key = keyOf(entry.address, entry.protocol, entry.port);
    const same = exact.get(key);
    if (same) same.push(entry);
    else exact.set(key, [entry]);
  }
  // What an entry holds that kpc cannot read may be the packet's.
  const otherwise = entries.some(({ other }) => other !== undefined) ? undefined : false;
  return (flow, directions) => {
    const [first, second, third] = directions;
    if (directions.length < dimensions) return undefined;
    const address = addressIn(flow, first);
    if (address.family !== family) return false;
    if (dimensions > 1 && second === 'src') return undefined;
    const asked = dimensions > 1 ? keyOf(address, flow.protocol, flow.port) : address.text;
    const other = dimensions > 2 ? addressIn(flow, third) : undefined;
    const isHit = ({ source }: SetEntry): boolean =>
      other === undefined || (source !== undefined && contains(networkOfRange(source), other));
    const ofNetworks = networks.filter(({ network, protocol, port }) => {
      return network && contains(network, address) && keyOf(address, protocol, port) === asked;
    });
    const same = [...(exact.get(asked) ?? []), ...ofNetworks];
    const sources =
      first === 'src'
        ? entries.map((entry) => entry.address ?? entry.network)
        : third === 'src'
          ? same.map(({ source }) => source)
          : [];
    for (const source of sources) if (source) flow.choices.sources.add(source);
    return same.some(isHit) || otherwise;
  };
}

function addressIn(flow: Flow, direction: 'src' | 'dst' | undefined): Address {
  return direction === 'src' ? flow.source : flow.destination;
}

function keyOf({ text }: Address, protocol: string | undefined, port: number | undefined): string {
  return protocol === undefined ? text : `${text},${protocol.toLowerCase()}:${port}`;
}
