import { contains, type Address } from '../kernel/address.ts';
import { networkOfRange } from '../kernel/address-range.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { formatEntry, type SetEntry } from '../kernel/ipset/set-entry.ts';
import { testDestination, testSource, type Flow } from './flow.ts';
import { someOf, circumstance, lacks, unreadRule, unreadValue, type Answer } from './reason.ts';

export type SetDirection = 'src' | 'dst';

export type IpSetTest = (flow: Flow, directions: readonly SetDirection[]) => Answer;

type IpSetTests = ReadonlyMap<string, IpSetTest>;

/** Returns a set's test, which is built on first use. `all`: the tests of all sets, because a set may contain sets. */
export function indexIpSet(set: IpSet, all: IpSetTests): IpSetTest {
  let test: IpSetTest | undefined;
  return (flow, directions) => (test ??= setTestOf(set, all))(flow, directions);
}

/** Builds a set's test. Of the set types that kube-proxy does not use, reads only those with addresses and ports. */
function setTestOf({ name, type, family, entries, options }: IpSet, all: IpSetTests): IpSetTest {
  const shaping = options?.find((option) => /^(?:netmask|bitmask|markmask)$/.test(option));
  if (shaping !== undefined) return () => unreadRule(`set ${name} with ${shaping}`);
  if (type === 'bitmap:port') return portTest(entries);
  if (type === 'list:set') {
    return (flow, directions) =>
      someOf(entries, (entry) => {
        const member = formatEntry(entry);
        return all.get(member)?.(flow, directions) ?? lacks({ kind: 'set', tool: 'iptables', set: member });
      });
  }
  const [, parts] = /^(?:hash|bitmap(?=:ip$)):((?:ip|net)(?:,port(?:,(?:ip|net))?)?)$/.exec(type) ?? [];
  if (parts === undefined) return () => unreadRule(`set ${name} of type ${type}`);
  return addressTest(name, entries, family === 'inet6' ? 'ipv6' : 'ipv4', parts.split(',').length);
}

function portTest(entries: readonly SetEntry[]): IpSetTest {
  const ports = new Set(entries.map(({ port }) => port));
  const unread = entries.find(({ other }) => other !== undefined)?.other;
  return (flow, [direction]) => {
    // The kernel does not read SCTP ports here.
    if (flow.protocol !== 'tcp' && flow.protocol !== 'udp') return false;
    if (direction === 'src') return circumstance('source-port', 'a set of ports');
    return ports.has(flow.port) || (unread !== undefined && unreadValue(unread));
  };
}

function addressTest(
  name: string,
  entries: readonly SetEntry[],
  family: Address['family'],
  dimensions: number,
): IpSetTest {
  const exact = new Map<string, SetEntry[]>();
  const networks: SetEntry[] = [];
  for (const entry of entries) {
    if (!entry.address) {
      if (entry.other === undefined) networks.push(entry);
      continue;
    }
    const key = memberKey(entry.address, entry.protocol, entry.port);
    const same = exact.get(key);
    if (same) same.push(entry);
    else exact.set(key, [entry]);
  }
  const unread = entries.find(({ other }) => other !== undefined)?.other;
  const otherwise: Answer = unread !== undefined && unreadValue(unread);
  const findFirst = (flow: Flow, address: Address): readonly SetEntry[] => {
    const asked = dimensions > 1 ? memberKey(address, flow.protocol, flow.port) : address.text;
    const ofNetworks = networks.filter(({ network, protocol, port }) => {
      return network && contains(network, address) && memberKey(address, protocol, port) === asked;
    });
    return [...(exact.get(asked) ?? []), ...ofNetworks.toSorted(byLength)];
  };
  return (flow, [first, second, third]) => {
    if ([second, third].slice(0, dimensions - 1).includes(undefined)) return unreadRule(`--match-set ${name}`);
    if (flow.family !== family) return false;
    if (dimensions > 1 && second === 'src') return circumstance('source-port', 'a set of addresses and ports');
    const testFirst = (address: Address): Answer => {
      const same = findFirst(flow, address);
      if (dimensions < 3) return same.length > 0 ? !isException(same[0]) : otherwise;
      return testThird(flow, same, third === 'src') || otherwise;
    };
    const fact = `set ${name}`;
    return first === 'src' ? testSource(flow, entries, fact, testFirst) : testDestination(flow, fact, testFirst);
  };
}

/** Reports whether the entries, most specific first, also match the other address. */
function testThird(flow: Flow, entries: readonly SetEntry[], isSource: boolean): Answer {
  const ofOther = (address: Address) => {
    const held = entries.filter(({ source }) => source !== undefined && contains(networkOfRange(source), address));
    const lengthOf = ({ source }: SetEntry): number => (source ? networkOfRange(source).prefixLength : 0);
    const [nearest] = held.toSorted((a, b) => lengthOf(b) - lengthOf(a));
    return nearest !== undefined && !isException(nearest);
  };
  if (!isSource) return ofOther(flow.destination);
  for (const { source } of entries) if (source) flow.choices.sources.add(source);
  const [first] = entries;
  return first === undefined ? false : testSource(flow, first.source ?? entries, formatEntry(first), ofOther);
}

/** Sorts the most specific network first, because it decides. A network with nomatch is an exception to wider networks. */
function byLength(a: SetEntry, b: SetEntry): number {
  return (b.network?.prefixLength ?? 0) - (a.network?.prefixLength ?? 0);
}

function isException(entry: SetEntry | undefined): boolean {
  return entry?.options?.includes('nomatch') === true;
}

function memberKey({ text }: Address, protocol: string | undefined, port: number | undefined): string {
  return protocol === undefined ? text : `${text},${protocol.toLowerCase()}:${port}`;
}
