import type { Cluster } from '../cluster/model.ts';
import type { Origin } from '../kernel/place.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import { setFamily } from '../kube-proxy/sets.ts';
import { findNodePortServers } from '../kube-proxy/virtual-servers.ts';

/**
 * The virtual servers and addresses of a state with the names of the Services whose addresses and node ports they have: a state
 * for findOwners to go by. IPVS keeps no names. What no Service has is left out.
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
