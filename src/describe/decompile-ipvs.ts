import type { Owners } from '../diff/owners.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { VirtualServer } from '../kernel/ipvs.ts';
import type { KernelState } from '../kernel/state.ts';
import type { DecompiledAddress, DecompiledPort, TrafficPolicy } from './decompile.ts';

/** What kube-proxy's sets say of addresses and ports. */
interface SetFacts {
  /** "set without its family" → "10.96.0.1,tcp:80" or "30080". */
  has(set: string, entry: string): boolean;
  /** Source ranges by "10.96.0.1,tcp:80". */
  readonly ranges: ReadonlyMap<string, readonly string[]>;
}

/**
 * Reads Service ports back from virtual servers and sets. Neither carries a name, so that each address and port stands
 * for itself; the virtual servers of one node port, on all the node's addresses, count as one. The internal policy shows
 * in the endpoints alone, which could be few for other reasons: it is left out.
 */
export function decompileIpvs(
  state: KernelState,
  owners: Owners,
  bound: ReadonlySet<string>,
  nodePorts: ReadonlySet<string>,
): readonly DecompiledPort[] {
  const facts = readSets(state);
  const ports = new Map<string, DecompiledPort>();
  for (const server of state.virtualServers) {
    const isNodePort = !bound.has(server.address) && nodePorts.has(`${server.protocol} ${server.port}`);
    const port = isNodePort ? decompileNodePort(server, facts, owners) : decompileServer(server, facts, owners);
    const key = `${port.family} ${port.name}`;
    if (!ports.has(key)) ports.set(key, port);
  }
  return [...ports.values()];
}

function readSets(state: KernelState): SetFacts {
  const entries = new Set<string>();
  const ranges = new Map<string, string[]>();
  for (const set of state.sets) {
    const name = set.name.replace(/^KUBE-(6-)?/, '');
    for (const { value } of set.entries) {
      entries.add(`${name} ${value}`);
      if (!name.startsWith('LOAD-BALANCER-SOURCE-CID')) continue;
      const at = value.lastIndexOf(',');
      const known = ranges.get(value.slice(0, at));
      if (known) known.push(value.slice(at + 1));
      else ranges.set(value.slice(0, at), [value.slice(at + 1)]);
    }
  }
  return { has: (set, entry) => entries.has(`${set} ${entry}`), ranges };
}

function decompileServer(server: VirtualServer, facts: SetFacts, owners: Owners): DecompiledPort {
  const { address, port, protocol } = server;
  const entry = `${address},${protocol.toLowerCase()}:${port}`;
  const isLocal = facts.has('EXTERNAL-IP-LOCAL', entry) || facts.has('LOAD-BALANCER-LOCAL', entry);
  const kind = kindOf(entry, facts);
  return {
    name: owners.ofServer(server) ?? `${joinHostPort(address, port)}/${protocol}`,
    ...shared(server),
    port,
    addresses: [{ kind, address }],
    nodePort: undefined,
    externalTrafficPolicy: kind === 'external-ip' || kind === 'load-balancer-ip' ? policy(isLocal) : undefined,
    sourceRanges: facts.ranges.get(entry) ?? [],
  };
}

function kindOf(entry: string, facts: SetFacts): DecompiledAddress['kind'] {
  if (facts.has('CLUSTER-IP', entry)) return 'cluster-ip';
  if (facts.has('LOAD-BALANCER', entry)) return 'load-balancer-ip';
  return facts.has('EXTERNAL-IP', entry) || facts.has('EXTERNAL-IP-LOCAL', entry) ? 'external-ip' : 'unknown';
}

function decompileNodePort(server: VirtualServer, facts: SetFacts, owners: Owners): DecompiledPort {
  const { port, protocol, address } = server;
  const isLocal =
    protocol === 'SCTP'
      ? facts.has('NODE-PORT-LOCAL-SCTP-HASH', `${address},sctp:${port}`)
      : facts.has(`NODE-PORT-LOCAL-${protocol}`, String(port));
  return {
    name: owners.ofServer(server) ?? `node port ${port}/${protocol}`,
    ...shared(server),
    port: undefined,
    addresses: [],
    nodePort: port,
    externalTrafficPolicy: policy(isLocal),
    sourceRanges: [],
  };
}

function policy(isLocal: boolean): TrafficPolicy {
  return isLocal ? 'Local' : 'Cluster';
}

function shared(server: VirtualServer) {
  return {
    family: server.family,
    protocol: server.protocol,
    internalTrafficPolicy: undefined,
    affinitySeconds: server.persistentSeconds,
    healthCheckNodePort: undefined,
    scheduler: server.scheduler,
    endpoints: server.realServers.map(({ address, port }) => ({ endpoint: joinHostPort(address, port), takes: [] })),
  } satisfies Partial<DecompiledPort>;
}
