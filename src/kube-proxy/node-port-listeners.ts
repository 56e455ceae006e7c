import { type Address, families, type Family, isLoopback, type Protocol } from '../kernel/address.ts';
import { compareText } from '../kernel/compare.ts';
import { singleAddress } from '../kernel/address-range.ts';
import type { Rule } from '../kernel/iptables/iptables.ts';
import { formatKey } from '../kernel/nftables/format.ts';
import { findTable, setOf, type NftRule, type NftTable } from '../kernel/nftables/table.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { baseChains } from './chain-names.ts';
import type { ProxyMode } from './modes.ts';
import { localhostRejection, nftChains, nftSets, nftTableName } from './nft-table.ts';
import { findNodePortServers } from './ipvs-objects.ts';

/** The default of healthzBindAddress for IPv4. For IPv6, the default is the same port on all addresses. */
export const usualHealthz = '0.0.0.0:10256';

export interface NodePort {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number;
}

export type NodePortListeners =
  | { readonly kind: 'listed'; readonly addresses: readonly string[] }
  | { readonly kind: 'all'; readonly loopback: boolean }
  | { readonly kind: 'unknown' };

export type FindListeners = (nodePort: NodePort) => NodePortListeners;

/**
 * Finds the addresses where node ports listen. Reads them from the objects that serve node ports: virtual servers in IPVS mode, jumps to
 * KUBE-NODEPORTS (iptables), the set nodeport-ips (nftables), the jump to KUBE-NODEPORT-CONTAINER (userspace). If a state has parts of two
 * modes, returns the addresses of both.
 */
export function findNodePortListeners(state: KernelState): FindListeners {
  const servers = serverListeners(state);
  const rules = { ipv4: ruleListeners(state, 'ipv4'), ipv6: ruleListeners(state, 'ipv6') };
  const tables = { ipv4: nftListeners(state, 'ipv4'), ipv6: nftListeners(state, 'ipv6') };
  const portals = { ipv4: portalListeners(state, 'ipv4'), ipv6: portalListeners(state, 'ipv6') };
  const ofModes: { readonly [M in ProxyMode]: FindListeners } = {
    ipvs: (nodePort) => listed(servers.get(nodePortKey(nodePort))),
    iptables: ({ family }) => rules[family],
    nftables: ({ family }) => tables[family],
    userspace: ({ family }) => portals[family],
  };
  return (nodePort) =>
    Object.values(ofModes)
      .map((find) => find(nodePort))
      .reduce(joinListeners);
}

function nodePortKey({ family, protocol, port }: NodePort): string {
  return `${family} ${protocol} ${port}`;
}

function listed(addresses: Iterable<string> | undefined): NodePortListeners {
  return addresses ? { kind: 'listed', addresses: [...new Set(addresses)].sort(compareText) } : { kind: 'unknown' };
}

function joinListeners(one: NodePortListeners, other: NodePortListeners): NodePortListeners {
  if (one.kind === 'unknown') return other;
  if (other.kind === 'unknown') return one;
  if (one.kind === 'listed' && other.kind === 'listed') return listed([...one.addresses, ...other.addresses]);
  return { kind: 'all', loopback: [one, other].some((each) => each.kind === 'all' && each.loopback) };
}

function serverListeners(state: KernelState): ReadonlyMap<string, readonly string[]> {
  const isNodePort = findNodePortServers(state);
  const found = new Map<string, string[]>();
  for (const server of state.virtualServers) {
    if (!isNodePort(server)) continue;
    const known = found.get(nodePortKey(server));
    if (known) known.push(server.address.text);
    else found.set(nodePortKey(server), [server.address.text]);
  }
  return found;
}

function ruleListeners({ iptables }: KernelState, family: Family): NodePortListeners {
  const rules = iptables[family]?.nat?.get(baseChains.services)?.rules ?? [];
  return rules
    .filter((rule) => jumpChain(rule) === baseChains.nodePorts)
    .map(listenersOfJump)
    .reduce(joinListeners, { kind: 'unknown' });
}

function portalListeners({ iptables }: KernelState, family: Family): NodePortListeners {
  const rules = iptables[family]?.nat?.get('PREROUTING')?.rules ?? [];
  const isThere = rules.some((rule) => jumpChain(rule) === baseChains.nodePortContainer);
  return isThere ? { kind: 'all', loopback: true } : { kind: 'unknown' };
}

/** Reads a jump to node ports. kube-proxy writes one for each address, or one for all addresses of the node, with or without loopback. */
function listenersOfJump({ args }: Rule): NodePortListeners {
  let loopback = true;
  for (const arg of args) {
    if (arg.kind !== 'destination') continue;
    if (arg.negated !== true) {
      const address = singleAddress(arg.range);
      return listed(address && [address.text]);
    }
    loopback = false;
  }
  return { kind: 'all', loopback };
}

function nftListeners({ nftables }: KernelState, family: Family): NodePortListeners {
  const table = findTable(nftables, family, nftTableName);
  if (table?.sets.has(nftSets.nodePortIPs)) return listed(keysOf(table, nftSets.nodePortIPs));
  // Without the set, a rule matches all addresses of the node except loopback.
  const rules = table?.chains.get(nftChains.services)?.rules ?? [];
  return rules.some(leadsToNodePorts) ? { kind: 'all', loopback: false } : { kind: 'unknown' };
}

function keysOf(table: NftTable, set: string): ReadonlySet<string> {
  return new Set(table.sets.get(set)?.elements.map(({ key }) => formatKey(key)));
}

/**
 * Reports whether a rule handles node ports at all addresses. A rule that looks up a set of addresses does not count: the listing lacks
 * this set, so the addresses are unknown.
 */
function leadsToNodePorts({ expressions }: NftRule): boolean {
  return (
    expressions.some((each) => setOf(each) === nftSets.serviceNodePorts) &&
    !expressions.some((each) => each.kind === 'match' && 'set' in each.right)
  );
}

export function listensOn(listeners: NodePortListeners, address: Address): boolean | undefined {
  switch (listeners.kind) {
    case 'listed':
      return listeners.addresses.includes(address.text);
    case 'all':
      return listeners.loopback || !isLoopback(address);
    case 'unknown':
      return undefined;
  }
}

/**
 * The handling of node ports on localhost in nftables mode. 'listens': kube-proxy itself listens and copies bytes. 'no-endpoint':
 * kube-proxy would, but has no endpoint to connect to. 'no-rule': no rule applies, so the node itself answers.
 */
export type LocalhostHandling = 'listens' | 'rejected' | 'no-endpoint' | 'no-rule';

/**
 * Decides for each node port. Unless TCP is rejected, kube-proxy listens on TCP node ports that have endpoints
 * (localhostNodePortRejectProtocols).
 */
export function findLocalhostHandling({ nftables }: KernelState): (nodePort: NodePort) => LocalhostHandling {
  const [ipv4, ipv6] = families.map((family) => indexLocalhost(findTable(nftables, family, nftTableName)));
  const ofFamily = { ipv4, ipv6 };
  return (nodePort) => ofFamily[nodePort.family]?.(nodePort) ?? 'no-rule';
}

function indexLocalhost(table: NftTable | undefined): ((nodePort: NodePort) => LocalhostHandling) | undefined {
  if (!table?.sets.has(nftSets.localhostNodePortRejects)) return undefined;
  const rejected = keysOf(table, nftSets.localhostNodePortRejects);
  const served = keysOf(table, nftSets.serviceNodePorts);
  const refused = keysOf(table, nftSets.noEndpointNodePorts);
  // When localhost is added to the node port addresses, 1.38 only empties this chain, and deletes it in a later sync.
  const rejections = table.chains.get(localhostRejection('TCP').chain)?.rules ?? [];
  const listens = rejections.length === 0;
  return ({ protocol, port }) => {
    const key = `${protocol.toLowerCase()} . ${port}`;
    if (rejected.has(key)) return 'rejected';
    if (!listens || protocol !== 'TCP') return 'no-rule';
    return refused.has(key) ? 'no-endpoint' : served.has(key) ? 'listens' : 'no-rule';
  };
}
