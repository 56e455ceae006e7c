import type { Owners } from '../changes/owners.ts';
import { ipv4SetName, setFamily } from '../kube-proxy/sets.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { Address } from '../kernel/address.ts';
import type { Protocol } from '../kernel/family.ts';
import { virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { VirtualServer } from '../kernel/ipvs.ts';
import { formatEntry } from '../kernel/set-entry.ts';
import type { KernelState } from '../kernel/state.ts';
import { findNodePortServers } from '../kube-proxy/virtual-servers.ts';
import type { DecompiledAddress, DecompiledPort, TrafficPolicy } from './decompile.ts';

/** What kube-proxy's sets say of addresses and ports. */
interface SetFacts {
  /** "set without its family" → "10.96.0.1,tcp:80" or "30080". */
  has(set: string, entry: string): boolean;
  /** Source ranges by "10.96.0.1,tcp:80". */
  readonly ranges: ReadonlyMap<string, readonly string[]>;
}

/**
 * Reads Service ports back from virtual servers and sets. Neither carries a name: where nothing else tells it, each address and
 * port stands for itself, and the virtual servers of one node port, on all the node's addresses, count as one. The internal
 * policy shows in the endpoints alone, which could be few for other reasons: it is left out. Where a part of the virtual servers
 * was printed, one without real servers may have some.
 */
export function decompileIpvs(state: KernelState, owners: Owners, isPart = false): readonly DecompiledPort[] {
  const facts = readSets(state);
  const isNodePort = findNodePortServers(state);
  const ports = new Map<string, DecompiledPort>();
  for (const listed of state.virtualServers) {
    const label = owners.ofServer(listed);
    const server: Told = isPart && listed.realServers.length === 0 ? { ...listed, realServers: undefined } : listed;
    const port = isNodePort(listed) ? decompileNodePort(server, facts, label) : decompileServer(server, facts, label);
    addPort(ports, port);
  }
  for (const port of decompileSets(state, facts, owners)) addPort(ports, port);
  return [...ports.values()];
}

/** A Service port has a virtual server for each of its addresses, and for its node port on each of the node's. */
function addPort(ports: Map<string, DecompiledPort>, port: DecompiledPort): void {
  const key = `${port.family} ${port.name}`;
  const known = ports.get(key);
  ports.set(key, known ? mergePorts(known, port) : port);
}

function mergePorts(one: DecompiledPort, other: DecompiledPort): DecompiledPort {
  const addresses = [...one.addresses];
  for (const address of other.addresses) {
    if (addresses.every((each) => each.address !== address.address)) addresses.push(address);
  }
  const endpoints = new Map(
    [...(one.endpoints ?? []), ...(other.endpoints ?? [])].map((each) => [each.endpoint, each]),
  );
  return {
    ...one,
    port: one.port ?? other.port,
    addresses,
    nodePort: one.nodePort ?? other.nodePort,
    externalTrafficPolicy: one.externalTrafficPolicy ?? other.externalTrafficPolicy,
    affinitySeconds: one.affinitySeconds ?? other.affinitySeconds,
    scheduler: one.scheduler ?? other.scheduler,
    sourceRanges: [...new Set([...one.sourceRanges, ...other.sourceRanges])],
    endpoints: one.endpoints || other.endpoints ? [...endpoints.values()] : undefined,
  };
}

/**
 * What only sets tell of: the virtual servers are gone, or are not in the dump. What a virtual server stands for is told
 * by it alone.
 */
function decompileSets(state: KernelState, facts: SetFacts, owners: Owners): readonly DecompiledPort[] {
  const known = new Set(state.virtualServers.map((server) => virtualServerKey(server)));
  const knownPorts = new Set(state.virtualServers.map(({ family, protocol, port }) => `${family} ${protocol} ${port}`));
  return state.sets.flatMap((set) => {
    const family = setFamily(set);
    const name = bareSetName(set.name);
    const ofPorts = /^NODE-PORT-(TCP|UDP|SCTP)/.exec(name)?.[1];
    if (ofPorts === undefined && !addressSets.has(name)) return [];
    return set.entries.flatMap((entry) => {
      const { address, port } = entry;
      const label = owners.ofEntry(set, entry);
      const protocol = entry.protocol ?? protocolOf(ofPorts);
      if (protocol === undefined || port === undefined) return [];
      if (ofPorts !== undefined) {
        if (knownPorts.has(`${family} ${protocol} ${port}`)) return [];
        return [decompileNodePort({ ...nothing, family, protocol, address, port }, facts, label)];
      }
      if (!address || known.has(virtualServerKey({ protocol, address, port }))) return [];
      return [decompileServer({ ...nothing, family, protocol, address, port }, facts, label)];
    });
  });
}

/** Without "KUBE-" and the family. Of a name that is too long in IPv6, its end is missing there. */
function bareSetName(name: string): string {
  return (ipv4SetName(name) ?? name).replace(/^KUBE-/, '');
}

/** kube-proxy's sets that list virtual servers by address, without "KUBE-" and the family. */
const addressSets: ReadonlySet<string> = new Set(['CLUSTER-IP', 'EXTERNAL-IP', 'EXTERNAL-IP-LOCAL', 'LOAD-BALANCER']);

function protocolOf(name: string | undefined): Protocol | undefined {
  return name === 'TCP' || name === 'UDP' || name === 'SCTP' ? name : undefined;
}

/** A virtual server of which nothing is told but where it listens. */
const nothing = { scheduler: undefined, persistentSeconds: undefined, realServers: undefined } as const;

/** What is told of a virtual server. */
type Told = Pick<VirtualServer, 'family' | 'protocol' | 'address' | 'port'> &
  (ToldServer | Record<keyof typeof nothing, undefined>);

/** A virtual server, of which a part of a list need not show the real servers. */
type ToldServer = Omit<VirtualServer, 'realServers'> & {
  readonly realServers: VirtualServer['realServers'] | undefined;
};

function readSets(state: KernelState): SetFacts {
  const entries = new Set<string>();
  const ranges = new Map<string, string[]>();
  for (const set of state.sets) {
    const name = bareSetName(set.name);
    for (const entry of set.entries) {
      entries.add(`${name} ${formatEntry(entry)}`);
      const { source } = entry;
      if (!source || !name.startsWith('LOAD-BALANCER-SOURCE-CID')) continue;
      const at = formatEntry({ ...entry, source: undefined });
      const known = ranges.get(at);
      if (known) known.push(source.text);
      else ranges.set(at, [source.text]);
    }
  }
  return { has: (set, entry) => entries.has(`${set} ${entry}`), ranges };
}

function decompileServer(server: Told, facts: SetFacts, label: string | undefined): DecompiledPort {
  const { address, port, protocol } = server;
  const entry = formatEntry({ address, protocol, port });
  const isLocal = facts.has('EXTERNAL-IP-LOCAL', entry) || facts.has('LOAD-BALANCER-LOCAL', entry);
  const kind = kindOf(entry, facts);
  return {
    name: label ?? `${joinHostPort(address.text, port)}/${protocol}`,
    ...shared(server),
    port,
    addresses: [{ kind, address: address.text }],
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

/** A bitmap of ports tells no address. */
type ToldNodePort = Omit<Told, 'address'> & { readonly address: Address | undefined };

function decompileNodePort(server: ToldNodePort, facts: SetFacts, label: string | undefined): DecompiledPort {
  const { port, protocol, address } = server;
  const isLocal =
    protocol === 'SCTP'
      ? facts.has('NODE-PORT-LOCAL-SCTP-HASH', formatEntry({ address, protocol, port }))
      : facts.has(`NODE-PORT-LOCAL-${protocol}`, formatEntry({ port }));
  return {
    name: label ?? `node port ${port}/${protocol}`,
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

function shared(server: Omit<Told, 'address'>) {
  return {
    family: server.family,
    protocol: server.protocol,
    internalTrafficPolicy: undefined,
    affinitySeconds: server.persistentSeconds,
    healthCheckNodePort: undefined,
    scheduler: server.scheduler,
    endpoints: server.realServers?.map(({ address, port }) => ({
      endpoint: joinHostPort(address.text, port),
      takes: [],
    })),
  } satisfies Partial<DecompiledPort>;
}
