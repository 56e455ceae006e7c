import type { Cluster } from '../cluster/model.ts';
import { contains, parseNetwork } from '../kernel/address.ts';
import { families } from '../kernel/family.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import type { Origin } from '../kernel/place.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import { serviceLink } from '../kube-proxy/service-link.ts';
import { setFamily, setName } from '../kube-proxy/ipvs-sets.ts';
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
 * The virtual servers and addresses of a state with the names of the Services whose addresses and node ports they have: a state
 * for findOwners to read. IPVS keeps no names. What no Service has is left out.
 */
export function nameServers(state: KernelState, cluster: Cluster): KernelState {
  const sockets = new Map<string, string>();
  const nodePorts = new Map<string, string>();
  const addresses = new Map<string, string>();
  const remember = (names: Map<string, string>, key: string, label: string): void => {
    if (!names.has(key)) names.set(key, label);
  };
  for (const port of cluster.servicePorts) {
    const { label, protocol, family } = port;
    for (const { text } of [port.clusterIP, ...port.externalIPs, ...port.loadBalancerIPs]) {
      remember(sockets, `${protocol} ${text} ${port.port}`, label);
      remember(addresses, text, label);
    }
    if (port.nodePort > 0) remember(nodePorts, `${family} ${protocol} ${port.nodePort}`, label);
  }
  const isNodePort = findNodePortServers(state);
  const nameOf = ({ family, protocol, address, port }: KernelState['virtualServers'][number]): string | undefined =>
    sockets.get(`${protocol} ${address.text} ${port}`) ??
    (isNodePort({ address, protocol, port }) ? nodePorts.get(`${family} ${protocol} ${port}`) : undefined);
  return {
    ...emptyState,
    virtualServers: state.virtualServers.flatMap((server) => withName(server, nameOf(server))),
    links: state.links.map((link) => ({
      ...link,
      addresses: link.addresses.flatMap((address) => withName(address, addresses.get(address.address.text))),
    })),
    sets: state.sets.map((set) => ({
      ...set,
      entries: set.entries.flatMap((entry) => {
        const { address, protocol, port } = entry;
        const ofSet = /-(TCP|UDP)$/.exec(set.name)?.[1] ?? protocol;
        const socket = sockets.get(`${protocol} ${address?.text} ${port}`);
        return withName(entry, socket ?? nodePorts.get(`${setFamily(set)} ${ofSet} ${port}`));
      }),
    })),
  };
}

function withName<T extends { readonly origin?: Origin | undefined }>(item: T, name: string | undefined): readonly T[] {
  return name === undefined ? [] : [{ ...item, origin: { servicePort: name } }];
}
