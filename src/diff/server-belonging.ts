import { ipvsLink } from '../ipvs/compile-ipvs.ts';
import { contains, parseAddress, parseNetwork } from '../kernel/address.ts';
import { families } from '../kernel/family.ts';
import type { VirtualServer } from '../kernel/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Side } from './side.ts';

/** Whose a virtual server is; `untold` where a dump lacks what would tell. */
export type ServerBelonging = 'kube-proxy' | 'other' | 'untold';

/**
 * Virtual servers carry no name. kube-proxy's are those that a side was compiled to, those on addresses that it bound
 * to kube-ipvs0, and those that its sets list; what --ipvs-exclude-cidrs names is not.
 */
export function classifyServers(from: Side, to: Side): (server: VirtualServer) => ServerBelonging {
  const sides = [from, to];
  const compiled = new Set(
    sides
      .filter((side) => side.kind !== 'dump')
      .flatMap((side) => side.state.virtualServers.map((server) => virtualServerKey(server))),
  );
  const bound = new Set(sides.flatMap((side) => boundAddresses(side.state)));
  const nodePorts = new Set(sides.flatMap((side) => [...nodePortKeys(side.state)]));
  const listed = new Set(sides.flatMap((side) => listedServers(side.state)));
  const untold = new Set(
    sides
      .filter((side) => side.kind === 'dump')
      .flatMap((side) => side.state.virtualServers.filter(cannotTell(side)).map((server) => virtualServerKey(server))),
  );
  const excluded = sides
    .flatMap((side) => side.services?.settings.ipvs.excludeCIDRs ?? [])
    .flatMap((cidr) => parseNetwork(cidr.trim()) ?? []);
  return (server) => {
    const key = virtualServerKey(server);
    if (compiled.has(key)) return 'kube-proxy';
    const address = parseAddress(server.address);
    if (address && excluded.some((network) => contains(network, address))) return 'other';
    if (bound.has(server.address) || listed.has(key) || nodePorts.has(`${server.protocol} ${server.port}`)) {
      return 'kube-proxy';
    }
    return untold.has(key) ? 'untold' : 'other';
  };
}

const serverSet = /^KUBE-(?:6-)?(?:CLUSTER-IP|EXTERNAL-IP|EXTERNAL-IP-LOCAL|LOAD-BALANCER)$/;
const setEntry = /^([^,]+),(tcp|udp|sctp):(\d+)$/;

/** The virtual servers that kube-proxy's sets list, by virtualServerKey. */
function listedServers({ sets }: KernelState): readonly string[] {
  return sets
    .filter(({ name }) => serverSet.test(name))
    .flatMap(({ entries }) =>
      entries.flatMap(({ value }) => {
        const [, address, protocol, port] = setEntry.exec(value) ?? [];
        return address === undefined ? [] : [`${protocol?.toUpperCase()} ${address} ${port}`];
      }),
    );
}

/**
 * Which virtual servers of a dump it cannot tell the owner of, where nothing else says that they are kube-proxy's. Its
 * sets list all that are. Without them, kube-ipvs0 holds all addresses but the node's own, on which node ports are.
 */
function cannotTell({ state, coverage }: Side): (server: VirtualServer) => boolean {
  if (coverage.sets && hasServerSets(state)) return () => false;
  if (!coverage.links) return () => true;
  if (coverage.sets) return () => false;
  const ofNode = new Set(state.links.flatMap(({ addresses }) => addresses.map(({ address }) => address)));
  return ({ address }) => ofNode.has(address);
}

/** Whether the sets of a kube-proxy in IPVS mode are there; it makes all of them before any virtual server. */
function hasServerSets({ sets }: KernelState): boolean {
  const names = new Set(sets.map(({ name }) => name));
  return families.some((family) => names.has(family === 'ipv4' ? 'KUBE-CLUSTER-IP' : 'KUBE-6-CLUSTER-IP'));
}

/** The addresses on kube-ipvs0. */
export function boundAddresses(state: KernelState): readonly string[] {
  return state.links
    .filter((link) => link.name === ipvsLink)
    .flatMap((link) => link.addresses.map(({ address }) => address));
}

/** Node ports as "TCP 30080", of the sets that list them in IPVS mode. */
export function nodePortKeys(state: KernelState): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const set of state.sets) {
    const protocol = /^KUBE-(?:6-)?NODE-PORT-(?:LOCAL-)?(TCP|UDP|SCTP)/.exec(set.name)?.[1];
    if (protocol === undefined) continue;
    // "30080", or "192.168.0.1,sctp:30080".
    for (const { value } of set.entries) keys.add(`${protocol} ${value.slice(value.lastIndexOf(':') + 1)}`);
  }
  return keys;
}
