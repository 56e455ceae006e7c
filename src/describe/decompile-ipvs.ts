import type { Owners } from '../diff/changes/owners.ts';
import { bareSetName, setFamily } from '../kube-proxy/sets.ts';
import { joinHostPort, type Address } from '../kernel/address.ts';
import { families, type Protocol } from '../kernel/family.ts';
import type { Chain, Rule } from '../kernel/iptables/iptables.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { jumpChain } from '../kernel/restrict.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { formatEntry } from '../kernel/ipset/set-entry.ts';
import type { KernelState } from '../kernel/state.ts';
import { findNodePortServers } from '../kube-proxy/virtual-servers.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import type { PortAddress } from '../diff/port-facts.ts';
import type { DecompiledPort, Masquerade, MasqueradedClients } from './decompiled-port.ts';
import { clientsOf } from './decompile-iptables.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';

/** What kube-proxy's sets say of addresses and ports. */
interface SetFacts {
  /** The endpoints that run on the node: "10.244.1.2:80"; undefined where nothing lists them. */
  readonly onNode: ReadonlySet<string> | undefined;
  /** Whose packets are masqueraded, by the set that the packets' destination is in. */
  readonly masquerade: ReadonlyMap<string, MasqueradedClients>;
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
  const facts = { ...readSets(state), masquerade: readMasquerade(state) };
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
    ...(one.hidesSourceRanges || other.hidesSourceRanges ? { hidesSourceRanges: true } : {}),
    ...mergeFallbacks(one.fallback, other.fallback),
    ...(one.masquerade || other.masquerade ? { masquerade: { ...one.masquerade, ...other.masquerade } } : {}),
  };
}

function mergeFallbacks(
  one: DecompiledPort['fallback'],
  other: DecompiledPort['fallback'],
): Pick<DecompiledPort, 'fallback'> {
  const fallback = one === 'local-to-all' || other === 'local-to-all' ? 'local-to-all' : (one ?? other);
  return fallback === undefined ? {} : { fallback };
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

function readSets(state: KernelState): Omit<SetFacts, 'masquerade'> {
  const onNode = new Set<string>();
  const entries = new Set<string>();
  const ranges = new Map<string, string[]>();
  for (const set of state.sets) {
    const name = bareSetName(set.name);
    for (const entry of set.entries) {
      entries.add(`${name} ${formatEntry(entry)}`);
      const { source, address, port } = entry;
      if (name === 'LOOP-BACK' && address && port !== undefined) onNode.add(joinHostPort(address.text, port));
      if (!source || !name.startsWith('LOAD-BALANCER-SOURCE-CID')) continue;
      const at = formatEntry({ ...entry, source: undefined });
      const known = ranges.get(at);
      if (known) known.push(source.text);
      else ranges.set(at, [source.text]);
    }
  }
  const hasLoopBack = state.sets.some(({ name }) => bareSetName(name) === 'LOOP-BACK');
  return { has: (set, entry) => entries.has(`${set} ${entry}`), ranges, onNode: hasLoopBack ? onNode : undefined };
}

/** The rules match sets: which packets of a set are masqueraded, one rule says for all of its entries. */
function readMasquerade({ iptables }: KernelState): ReadonlyMap<string, MasqueradedClients> {
  const found = new Map<string, MasqueradedClients>();
  for (const family of families) {
    const nat = iptables[family]?.nat;
    const reaches = (rule: Rule, chain: string): boolean =>
      jumpChain(rule) === baseChains.markMasquerade ||
      (jumpChain(rule) === baseChains.loadBalancer &&
        chain === baseChains.services &&
        marksAll(nat?.get(baseChains.loadBalancer)));
    for (const chain of [baseChains.services, baseChains.nodePort]) {
      for (const rule of nat?.get(chain)?.rules ?? []) {
        const match = rule.args.find((arg) => arg.kind === 'match-set');
        // Where the source is of the set, too, the packets are those of the Services themselves.
        if (!match || match.directions.includes('src') || !reaches(rule, chain)) continue;
        const clients = clientsOf(rule);
        if (clients) found.set(`${family} ${bareSetName(match.set)}`, clients);
      }
    }
  }
  return found;
}

/** Whether packets that no rule of the chain lets return are masqueraded. */
function marksAll(chain: Chain | undefined): boolean {
  return chain?.rules.some((rule) => jumpChain(rule) === baseChains.markMasquerade) ?? false;
}

function decompileServer(server: Told, facts: SetFacts, label: string | undefined): DecompiledPort {
  const { address, port, protocol } = server;
  const entry = formatEntry({ address, protocol, port });
  const isLocal = facts.has('EXTERNAL-IP-LOCAL', entry) || facts.has('LOAD-BALANCER-LOCAL', entry);
  const kind = kindOf(entry, facts);
  const isExternal = kind === 'external-ip' || kind === 'load-balancer-ip';
  const sourceRanges = facts.ranges.get(entry) ?? [];
  const clients = facts.masquerade.get(`${server.family} ${setsByKind[kind]}`);
  const masquerade: Masquerade = clients && !isLocal ? { [isExternal ? 'external' : 'clusterIP']: clients } : {};
  return {
    name: label ?? `${joinHostPort(address.text, port)}/${protocol}`,
    ...shared(server, facts, isLocal, masquerade),
    port,
    addresses: [{ kind, address: address.text }],
    nodePort: undefined,
    externalTrafficPolicy: isExternal ? policy(isLocal) : undefined,
    sourceRanges,
    ...(sourceRanges.length === 0 && facts.has('LOAD-BALANCER-FW', entry) ? { hidesSourceRanges: true } : {}),
  };
}

/** The set that lists the addresses of a kind. */
const setsByKind: { readonly [K in PortAddress['kind']]: string } = {
  'cluster-ip': 'CLUSTER-IP',
  'load-balancer-ip': 'LOAD-BALANCER',
  'external-ip': 'EXTERNAL-IP',
  unknown: '',
};

function kindOf(entry: string, facts: SetFacts): PortAddress['kind'] {
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
  const clients = facts.masquerade.get(`${server.family} NODE-PORT-${protocol}${protocol === 'SCTP' ? '-HASH' : ''}`);
  return {
    name: label ?? `node port ${port}/${protocol}`,
    ...shared(server, facts, isLocal, clients && !isLocal ? { external: clients } : {}),
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

function shared(server: Omit<Told, 'address'>, { onNode }: SetFacts, isLocal: boolean, masquerade: Masquerade) {
  const realServers = server.realServers?.map(({ address, port, weight }) => {
    return {
      endpoint: joinHostPort(address.text, port),
      takes: [],
      ...(weight === 0 ? { draining: true as const } : {}),
    };
  });
  const taking = realServers?.filter(({ draining }) => !draining);
  // Without a real server on the node, those of all nodes take the traffic of policy Local.
  const goesToAll = isLocal && onNode !== undefined && taking?.every(({ endpoint }) => !onNode.has(endpoint));
  const fallback = taking?.length === 0 ? 'no-endpoints' : goesToAll ? 'local-to-all' : undefined;
  return {
    family: server.family,
    protocol: server.protocol,
    internalTrafficPolicy: undefined,
    affinitySeconds: server.persistentSeconds,
    healthCheckNodePort: undefined,
    scheduler: server.scheduler,
    endpoints: realServers,
    ...(fallback === undefined ? {} : ({ fallback } as const)),
    ...(Object.keys(masquerade).length === 0 ? {} : { masquerade }),
  } satisfies Partial<DecompiledPort>;
}
