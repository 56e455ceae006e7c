import { contains, type Address } from '../kernel/address.ts';
import { networkOfRange } from '../kernel/address-range.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import type { SetEntry } from '../kernel/ipset/set-entry.ts';
import type { Flow } from './flow.ts';
import type { Maybe } from './maybe.ts';

/** Whether what a packet has in those directions is in a set. */
export type IpSetTest = (flow: Flow, directions: readonly ('src' | 'dst')[]) => Maybe;

const unknowable: IpSetTest = () => undefined;

/** Hashes a set's entries. Of types that no set of kube-proxy's has, only those of addresses and ports are read. */
export function indexIpSet(set: IpSet): IpSetTest {
  const [method, parts = ''] = set.type.split(':');
  const dimensions = parts.split(',');
  if (set.entries.some((entry) => entry.options?.includes('nomatch'))) return unknowable;
  if (set.type === 'bitmap:port') return portTest(set.entries);
  const isKnown = dimensions.every((part, at) =>
    at === 1 ? part === 'port' : at < 3 && (part === 'ip' || part === 'net'),
  );
  return (method === 'hash' || set.type === 'bitmap:ip') && isKnown ? addressTest(set, dimensions.length) : unknowable;
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
function addressTest(set: IpSet, dimensions: number): IpSetTest {
  const exact = new Map<string, SetEntry[]>();
  const networks: SetEntry[] = [];
  let isWhole = true;
  for (const entry of set.entries) {
    if (entry.other !== undefined) isWhole = false;
    else if (entry.address) {
      const key = keyOf(entry.address, entry.protocol?.toLowerCase(), entry.port);
      const same = exact.get(key);
      if (same) same.push(entry);
      else exact.set(key, [entry]);
    } else networks.push(entry);
  }
  const family = set.family === 'inet6' ? 'ipv6' : 'ipv4';
  return (flow, directions) => {
    if (directions.length < dimensions) return undefined;
    const [first, second, third] = directions;
    const address = addressIn(flow, first);
    if (address.family !== family) return false;
    const { port } = flow;
    if (dimensions > 1 && second === 'src') return undefined;
    const other = dimensions > 2 ? addressIn(flow, third) : undefined;
    const isHit = ({ source }: SetEntry): boolean =>
      other === undefined || (source !== undefined && contains(networkOfRange(source), other));
    const key = dimensions > 1 ? keyOf(address, flow.protocol, port) : keyOf(address, undefined, undefined);
    if (exact.get(key)?.some(isHit)) return true;
    const isInNetwork = networks.some(
      (entry) =>
        entry.network !== undefined &&
        contains(entry.network, address) &&
        (dimensions === 1 || (entry.port === port && entry.protocol?.toLowerCase() === flow.protocol)) &&
        isHit(entry),
    );
    return isInNetwork || (isWhole ? false : undefined);
  };
}

function addressIn(flow: Flow, direction: 'src' | 'dst' | undefined): Address {
  return direction === 'src' ? flow.source : flow.destination;
}

function keyOf({ text }: Address, protocol: string | undefined, port: number | undefined): string {
  return protocol === undefined ? text : `${text},${protocol}:${port}`;
}
