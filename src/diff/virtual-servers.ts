import type { Cluster } from '../cluster/model.ts';
import { contains, parseNetwork } from '../kernel/address.ts';
import { families } from '../kernel/family.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
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
 * Names virtual servers for findOwners, since IPVS keeps no names: those of a cluster's Services, and those of a state
 * on the Services' node ports.
 */
export function nameServers({ virtualServers, sets, links }: KernelState, cluster: Cluster): KernelState {
  const state = { ...emptyState, virtualServers, sets, links };
  const isNodePort = findNodePortServers(state);
  const ports = cluster.servicePorts.toReversed();
  // If several Service ports have the same node port, the first owns it.
  const byNodePort = new Map(ports.map((port) => [`${port.family} ${port.protocol} ${port.nodePort}`, port.label]));
  const onNodePorts = virtualServers.filter(isNodePort).flatMap((server) => {
    const servicePort = byNodePort.get(`${server.family} ${server.protocol} ${server.port}`);
    return servicePort === undefined ? [] : [{ ...server, origin: { servicePort } }];
  });
  const ofServices = cluster.servicePorts.flatMap(({ label, protocol, family, port, ...own }) =>
    [own.clusterIP, ...own.externalIPs, ...own.loadBalancerIPs].map((address): VirtualServer => {
      const origin = { servicePort: label };
      return { family, protocol, address, port, scheduler: '', schedulerFlags: [], realServers: [], origin };
    }),
  );
  return { ...state, virtualServers: [...onNodePorts, ...ofServices] };
}
