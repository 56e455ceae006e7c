import { isLoopback } from '../kernel/address.ts';
import { realServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { formatEntry } from '../kernel/ipset/set-entry.ts';
import type { KernelState } from '../kernel/state.ts';
import { boundAddresses, serviceLink } from './service-link.ts';
import { isKubeProxySet, setFamily } from './ipvs-sets.ts';

/** What shows whose virtual servers are. All addresses are text. */
interface Marks {
  /** The addresses on kube-ipvs0. */
  readonly bound: ReadonlySet<string>;
  /** The addresses of the node itself, on which kube-proxy listens for node ports. Empty if the state has no links. */
  readonly own: ReadonlySet<string>;
  /** The sockets of Services in the sets that list them. */
  readonly listed: ReadonlySet<string>;
  /** What the sets list as node ports: "TCP 30080", and "ipv4 TCP 30080". A bitmap has the port alone, the set of SCTP an address too. */
  readonly nodePorts: ReadonlySet<string>;
}

function readMarks(state: KernelState): Marks {
  const sets = state.sets.filter(({ name }) => isKubeProxySet(name));
  const lists = sets.filter(
    ({ name, type }) => type === 'hash:ip,port' && /-(CLUSTER-IP|EXTERNAL-IP|LOAD-BALANCER)/.test(name),
  );
  const nodePorts = sets.flatMap((set) => {
    const protocol = /-NODE-PORT-(?:LOCAL-)?(TCP|UDP|SCTP)/.exec(set.name)?.[1];
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

/** The node ports that an API server gives where nothing else is asked of it. */
const usualNodePorts = { first: 30000, last: 32767 };

/**
 * Which virtual servers are those of a node port: on an address of the node's own, or on one of a Service, where
 * --nodeport-addresses covers it and kube-proxy takes what is bound to kube-ipvs0 for the node's own. Where the sets are there
 * they decide, else the addresses; without either, the usual range of node ports.
 */
export function findNodePortServers(
  state: KernelState,
): (server: Pick<VirtualServer, 'address' | 'protocol' | 'port'>) => boolean {
  const { bound, own, listed, nodePorts } = readMarks(state);
  const hasSets = state.sets.some(({ name }) => isKubeProxySet(name));
  const onOwn = state.virtualServers.filter(({ address }) => own.has(address.text) && !bound.has(address.text));
  const portsOnOwn = new Set(onOwn.map(({ protocol, port }) => `${protocol} ${port}`));
  return (server) => {
    if (listed.has(socketOf(server))) return false;
    const port = `${server.protocol} ${server.port}`;
    if (bound.has(server.address.text)) return listed.size > 0 ? nodePorts.has(port) : portsOnOwn.has(port);
    if (nodePorts.has(port)) return true;
    if (own.size > 0) return own.has(server.address.text);
    return !hasSets && server.port >= usualNodePorts.first && server.port <= usualNodePorts.last;
  };
}

/**
 * Virtual servers have no name, and kube-proxy treats every one of a node as its own. Which it made follows from what
 * else it leaves. A Service's address is bound to kube-ipvs0, or, if it is the node's own, listed with its port in a
 * set. A node port is a number in a set, which another program's virtual server may have too: kube-proxy's forwards, as
 * kube-proxy does, to what a Service forwards to, or to nothing, and is then on an address of the node. `known` are virtual servers of
 * Services besides those of the state.
 */
export function recognizeVirtualServers(
  state: KernelState,
  known: readonly VirtualServer[] = [],
): (server: VirtualServer) => boolean {
  const { bound, own, listed, nodePorts } = readMarks(state);
  const isOfService = (server: VirtualServer) => bound.has(server.address.text) || listed.has(socketOf(server));
  // Most virtual servers are on an address of a Service: then neither of the two is asked for.
  let found: ServiceMarks | undefined;
  const marks = () => (found ??= markServices([...known, ...state.virtualServers.filter(isOfService)]));
  return (server) => {
    if (isOfService(server)) return true;
    const { family, protocol, address, port, realServers } = server;
    if (!nodePorts.has(`${family} ${protocol} ${port}`) || !marks().schedulers.has(server.scheduler)) return false;
    // Without real servers, only the address decides.
    if (realServers.length === 0) return own.size === 0 || own.has(address.text);
    const isMasquerading = realServers.every(({ forwarding }) => forwarding === 'masquerade');
    return isMasquerading && realServers.some((real) => marks().endpoints.has(`${protocol} ${realServerKey(real)}`));
  };
}

/** What virtual servers of Services have, by which others of kube-proxy's are known. */
interface ServiceMarks {
  readonly schedulers: ReadonlySet<string>;
  readonly endpoints: ReadonlySet<string>;
}

function markServices(servers: readonly VirtualServer[]): ServiceMarks {
  const schedulers = new Set<string>();
  const endpoints = new Set<string>();
  for (const server of servers) {
    schedulers.add(server.scheduler);
    for (const real of server.realServers) endpoints.add(`${server.protocol} ${realServerKey(real)}`);
  }
  return { schedulers, endpoints };
}

/** "10.96.0.1,tcp:80", as sets have it. */
function socketOf({ address, protocol, port }: Pick<VirtualServer, 'address' | 'protocol' | 'port'>): string {
  return formatEntry({ address, protocol, port });
}
