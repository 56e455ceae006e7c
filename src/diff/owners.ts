import { families } from '../kernel/family.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { Chain, Rule } from '../kernel/iptables.ts';
import { tableNames } from '../kernel/iptables.ts';
import type { IpSet, SetEntry } from '../kernel/ipset.ts';
import type { VirtualServer } from '../kernel/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { LinkAddress } from '../kernel/link.ts';
import { jumpChain } from '../kernel/restrict.ts';
import type { KernelState } from '../kernel/state.ts';
import { boundAddresses, setFamily } from './belonging.ts';

/**
 * Which Service port each item of a state is there for: its label ("namespace/name:port"). Where nothing tells the name,
 * as in a dump of IPVS mode, it is the address ("10.96.0.1:80/TCP") or "node port 30080/TCP". Undefined for what every
 * node has.
 */
export interface Owners {
  ofChain(chain: Chain): string | undefined;
  ofRule(rule: Rule): string | undefined;
  ofEntry(set: IpSet, entry: SetEntry): string | undefined;
  ofServer(server: VirtualServer): string | undefined;
  ofAddress(address: LinkAddress): string | undefined;
}

/** What can be looked up of items that carry no origin. */
interface OwnerIndex {
  /** Chain name → label. */
  readonly chains: Map<string, string>;
  /** "set value" → label. */
  readonly entries: Map<string, string>;
  /** virtualServerKey → label. */
  readonly servers: Map<string, string>;
  /** "TCP address port" of an endpoint → label. */
  readonly endpoints: Map<string, string>;
  /** An address on kube-ipvs0 → label. */
  readonly addresses: Map<string, string>;
  /** "ipv4 TCP 30080" → label. */
  readonly nodePorts: Map<string, string>;
}

/**
 * Finds the owners of the items of some states. An item's own origin wins; else an item of the same name in any of the
 * states tells; else the state itself: comments, jumps, and the virtual server that an entry is about.
 */
export function findOwners(states: readonly KernelState[]): Owners {
  const index: OwnerIndex = {
    chains: new Map(),
    entries: new Map(),
    servers: new Map(),
    endpoints: new Map(),
    addresses: new Map(),
    nodePorts: new Map(),
  };
  for (const state of states) indexOrigins(state, index);
  for (const state of states) indexComments(state, index);
  for (const state of states) indexServers(state, index);
  return {
    ofChain: (chain) => chain.origin?.servicePort ?? index.chains.get(chain.name),
    ofRule: (rule) => rule.origin?.servicePort ?? ownerOfRule(rule, index),
    ofEntry: (set, entry) =>
      entry.origin?.servicePort ?? index.entries.get(`${set.name} ${entry.value}`) ?? ownerOfEntry(set, entry, index),
    ofServer: (server) => server.origin?.servicePort ?? index.servers.get(virtualServerKey(server)),
    ofAddress: (address) => address.origin?.servicePort ?? index.addresses.get(address.address),
  };
}

function remember(map: Map<string, string>, key: string, label: string | undefined): void {
  if (label !== undefined && !map.has(key)) map.set(key, label);
}

function indexOrigins(state: KernelState, index: OwnerIndex): void {
  for (const chain of allChains(state)) remember(index.chains, chain.name, chain.origin?.servicePort);
  for (const set of state.sets) {
    for (const { value, origin } of set.entries) remember(index.entries, `${set.name} ${value}`, origin?.servicePort);
  }
  for (const link of state.links) {
    for (const { address, origin } of link.addresses) remember(index.addresses, address, origin?.servicePort);
  }
  for (const server of state.virtualServers) {
    remember(index.servers, virtualServerKey(server), server.origin?.servicePort);
  }
}

const serviceChain = /^KUBE-(?:SVC|SVL|EXT|FW|SEP|XLB)-/;

/** In iptables mode the comments name the Service port; where a large cluster has none, the jumps lead to it. */
function indexComments(state: KernelState, index: OwnerIndex): void {
  const silent: Chain[] = [];
  for (const chain of allChains(state)) {
    const isOwn = serviceChain.test(chain.name);
    for (const rule of chain.rules) {
      const label = rule.origin?.servicePort ?? labelInComment(rule);
      if (label === undefined) continue;
      if (isOwn) remember(index.chains, chain.name, label);
      const target = jumpChain(rule);
      if (target !== undefined && serviceChain.test(target)) remember(index.chains, target, label);
    }
    if (isOwn) silent.push(chain);
  }
  for (const chain of silent) {
    const label = index.chains.get(chain.name);
    for (const rule of chain.rules) {
      const target = jumpChain(rule);
      if (target !== undefined && serviceChain.test(target)) remember(index.chains, target, label);
    }
  }
}

/** In IPVS mode nothing has a name: what is about an address belongs to the virtual server there. */
function indexServers(state: KernelState, index: OwnerIndex): void {
  const bound = new Set(boundAddresses(state));
  for (const server of state.virtualServers) {
    const { family, protocol, address, port } = server;
    const isNodePort = bound.size > 0 && !bound.has(address);
    const name = isNodePort ? `node port ${port}/${protocol}` : `${joinHostPort(address, port)}/${protocol}`;
    remember(index.servers, virtualServerKey(server), name);
    const label = index.servers.get(virtualServerKey(server));
    if (isNodePort) remember(index.nodePorts, `${family} ${protocol} ${port}`, label);
    else remember(index.addresses, address, label);
    for (const real of server.realServers) {
      remember(index.endpoints, `${protocol} ${real.address} ${real.port}`, label);
    }
  }
}

function allChains(state: KernelState): readonly Chain[] {
  return families.flatMap((family) =>
    tableNames.flatMap((table) => [...(state.iptables[family]?.[table]?.values() ?? [])]),
  );
}

const servicePortLabel = /(?:^| )([a-z0-9](?:[-a-z0-9]*)\/[a-z0-9](?:[-a-z0-9.]*)(?::[-a-z0-9]+)?)(?= |$)/;

/** The Service port that kube-proxy's comment on a rule names. */
export function labelInComment(rule: Rule): string | undefined {
  for (const arg of rule.args) if (arg.kind === 'comment') return servicePortLabel.exec(arg.text)?.[1];
  return undefined;
}

function ownerOfRule(rule: Rule, index: OwnerIndex): string | undefined {
  const named = labelInComment(rule);
  if (named !== undefined) return named;
  for (const arg of rule.args) {
    if (arg.kind === 'ipvs') return index.servers.get(`${arg.protocol.toUpperCase()} ${arg.address} ${arg.port}`);
    if (arg.kind === 'jump' && arg.target.kind === 'chain') return index.chains.get(arg.target.chain);
  }
  return undefined;
}

const addressPort = /^([^,]+),(tcp|udp|sctp):(\d+)/;

function ownerOfEntry(set: IpSet, entry: SetEntry, index: OwnerIndex): string | undefined {
  const match = addressPort.exec(entry.value);
  if (match) {
    const key = `${match[2]?.toUpperCase()} ${match[1]} ${match[3]}`;
    return index.servers.get(key) ?? index.endpoints.get(key);
  }
  const protocol = /-(TCP|UDP)$/.exec(set.name)?.[1];
  if (protocol !== undefined) return index.nodePorts.get(`${setFamily(set)} ${protocol} ${entry.value}`);
  return index.addresses.get(entry.value);
}

/** The same owners where some labels are called by other names. */
export function renameOwners(owners: Owners, names: ReadonlyMap<string, string>): Owners {
  if (names.size === 0) return owners;
  const rename = (label: string | undefined) => (label === undefined ? undefined : (names.get(label) ?? label));
  return {
    ofChain: (chain) => rename(owners.ofChain(chain)),
    ofRule: (rule) => rename(owners.ofRule(rule)),
    ofEntry: (set, entry) => rename(owners.ofEntry(set, entry)),
    ofServer: (server) => rename(owners.ofServer(server)),
    ofAddress: (address) => rename(owners.ofAddress(address)),
  };
}
