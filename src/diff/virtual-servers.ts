import type { Cluster } from '../cluster/model.ts';
import { contains, parseNetwork } from '../kernel/address.ts';
import { families } from '../kernel/family.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import type { Origin } from '../kernel/place.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import { serviceLink } from '../kube-proxy/service-link.ts';
import { setName } from '../kube-proxy/ipvs-sets.ts';
import { findNodePortServers, recognizeVirtualServers } from '../kube-proxy/virtual-servers.ts';
import type { Side } from './compared-side.ts';

/** Whose a virtual server is; `unshown` if a dump lacks what would show it. */
export type ServerBelonging = 'kube-proxy' | 'other' | 'unshown';

/**
 * Virtual servers carry no name. kube-proxy's are those that a side was compiled to, and those of a dump that
 * recognizeVirtualServers decides by what else kube-proxy left; what --ipvs-exclude-cidrs names is not.
 */
export function classifyServers(from: Side, to: Side): (server: VirtualServer) => ServerBelonging {
  const sides = [from, to];
  const ofServices = sides.filter((side) => side.kind !== 'dump').flatMap((side) => side.state.virtualServers);
  const compiled = new Set(ofServices.map((server) => virtualServerKey(server)));
  const recognize = sides.map((side) => recognizeVirtualServers(side.state, ofServices));
  const unshown = new Set(
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
    if (excluded.some((network) => contains(network, server.address))) return 'other';
    if (recognize.some((isKubeProxys) => isKubeProxys(server))) return 'kube-proxy';
    return unshown.has(key) ? 'unshown' : 'other';
  };
}

/**
 * The virtual servers whose owner a dump does not show, if nothing else says that they are kube-proxy's. Its
 * sets list all that are. Without them, kube-ipvs0 holds all addresses but the node's own, on which node ports are.
 */
function cannotTell({ state, coverage }: Side): (server: VirtualServer) => boolean {
  if (coverage.sets && hasServerSets(state)) return () => false;
  if (!coverage.links) return () => true;
  if (coverage.sets) return () => false;
  // ip addr show kube-ipvs0 does not show the addresses of the node, where node ports listen.
  if (state.links.every(({ name }) => name === serviceLink)) return () => true;
  const ofNode = new Set(state.links.flatMap(({ addresses }) => addresses.map(({ address }) => address.text)));
  return ({ address }) => ofNode.has(address.text);
}

/** Whether the sets of a kube-proxy in IPVS mode are there; it makes all of them before any virtual server. */
function hasServerSets({ sets }: KernelState): boolean {
  const names = new Set(sets.map(({ name }) => name));
  return families.some((family) => names.has(setName('clusterIP', family)));
}

/**
 * The virtual servers of the Services of a cluster by name, and those of a state that have their node ports: a state for
 * findOwners to read. IPVS keeps no names.
 */
export function nameServers({ virtualServers, sets, links }: KernelState, cluster: Cluster): KernelState {
  const state = { ...emptyState, virtualServers, sets, links };
  const isNodePort = findNodePortServers(state);
  const named: VirtualServer[] = [];
  const byNodePort = new Map<string, Origin>();
  for (const { label, protocol, family, port, nodePort, ...own } of cluster.servicePorts) {
    const origin = { servicePort: label };
    for (const address of [own.clusterIP, ...own.externalIPs, ...own.loadBalancerIPs]) {
      named.push({ family, protocol, address, port, scheduler: '', schedulerFlags: [], realServers: [], origin });
    }
    if (nodePort > 0 && !byNodePort.has(`${family} ${protocol} ${nodePort}`))
      byNodePort.set(`${family} ${protocol} ${nodePort}`, origin);
  }
  for (const server of virtualServers.filter(isNodePort)) {
    const origin = byNodePort.get(`${server.family} ${server.protocol} ${server.port}`);
    if (origin) named.push({ ...server, origin });
  }
  return { ...state, virtualServers: named };
}
