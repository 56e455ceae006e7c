import { isLoopback } from '../kernel/address.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { formatEntry } from '../kernel/ipset/set-entry.ts';
import type { KernelState } from '../kernel/state.ts';
import { boundAddresses, serviceLink } from './service-link.ts';
import { nodePortProtocol, parseSetName, setFamily, type SetId } from './ipvs-sets.ts';

/** What else kube-proxy leaves on a node for its virtual servers. All addresses are text. */
interface ServerMarks {
  /** The addresses on kube-ipvs0. */
  readonly bound: ReadonlySet<string>;
  /** The addresses of the node itself, on which kube-proxy listens for node ports. Empty if the state has no links. */
  readonly own: ReadonlySet<string>;
  /** The sockets of Services in the sets that list them. */
  readonly listed: ReadonlySet<string>;
  /** What the sets list as node ports: "TCP 30080", and "ipv4 TCP 30080". A bitmap has the port alone, the set of SCTP an address too. */
  readonly nodePorts: ReadonlySet<string>;
}

/** The sets of type hash:ip,port that list addresses of Services. */
const addressSets: ReadonlySet<SetId> = new Set([
  'clusterIP',
  'externalIP',
  'externalIPLocal',
  'loadBalancer',
  'loadBalancerFirewall',
  'loadBalancerLocal',
]);

export function readServerMarks(state: KernelState): ServerMarks {
  const ownSets = state.sets.flatMap((set) => {
    const named = parseSetName(set.name);
    return named ? [{ ...set, id: named.set }] : [];
  });
  const lists = ownSets.filter(({ id, type }) => type === 'hash:ip,port' && addressSets.has(id));
  const nodePorts = ownSets.flatMap((set) => {
    const protocol = nodePortProtocol(set.id);
    if (protocol === undefined) return [];
    return set.entries.flatMap(({ port }) => [`${protocol} ${port}`, `${setFamily(set)} ${protocol} ${port}`]);
  });
  const others = state.links.filter(({ name }) => name !== serviceLink).flatMap((link) => link.addresses);
  return {
    bound: new Set(boundAddresses(state)),
    own: new Set(others.flatMap(({ address }) => (isLoopback(address) ? [] : [address.text]))),
    listed: new Set(lists.flatMap(({ entries }) => entries.map(formatEntry))),
    nodePorts: new Set(nodePorts),
  };
}

/** The API server's default range of node ports. */
const usualNodePorts = { first: 30000, last: 32767 };

/** Whether a port is of the API server's default range of node ports. */
export function isUsualNodePort(port: number): boolean {
  return port >= usualNodePorts.first && port <= usualNodePorts.last;
}

/**
 * Finds the virtual servers of node ports. They are on an address of the node's own. They are also on an address of a
 * Service that --nodeport-addresses covers, as kube-proxy takes what is bound to kube-ipvs0 for the node's own. If
 * kube-proxy's sets are there, they decide, else the addresses; without either, the usual range of node ports.
 */
export function findNodePortServers(
  state: KernelState,
): (server: Pick<VirtualServer, 'address' | 'protocol' | 'port'>) => boolean {
  const { bound, own, listed, nodePorts } = readServerMarks(state);
  const hasSets = state.sets.some(({ name }) => parseSetName(name));
  const onOwn = state.virtualServers.filter(({ address }) => own.has(address.text) && !bound.has(address.text));
  const portsOnOwn = new Set(onOwn.map(({ protocol, port }) => `${protocol} ${port}`));
  return (server) => {
    if (listed.has(socketOf(server))) return false;
    const port = `${server.protocol} ${server.port}`;
    if (bound.has(server.address.text)) return listed.size > 0 ? nodePorts.has(port) : portsOnOwn.has(port);
    if (nodePorts.has(port)) return true;
    if (own.size > 0) return own.has(server.address.text);
    return !hasSets && isUsualNodePort(server.port);
  };
}

/** "10.96.0.1,tcp:80", as sets have it. */
export function socketOf({ address, protocol, port }: Pick<VirtualServer, 'address' | 'protocol' | 'port'>): string {
  return formatEntry({ address, protocol, port });
}
