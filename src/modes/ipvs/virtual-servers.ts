import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import { compareAddresses } from '../../kernel/address.ts';
import {
  compareVirtualServers,
  type RealServer,
  type SchedulerFlag,
  type VirtualServer,
} from '../../kernel/ipvs/ipvs.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { AddressPort } from '../../kernel/ipset/set-entry.ts';

/** The kernel's flag that mixes the client's port into mh's hash: kube-proxy sets it for every virtual server of mh. */
const mhPort: SchedulerFlag = 'flag-2';

/** The virtual server of a Service port at one of its addresses. The Service's annotation wins over the node's scheduler. */
export function makeVirtualServer(
  servicePort: ServicePort,
  nodeScheduler: string,
  { address, port, origin }: AddressPort,
  realServers: readonly RealServer[],
): VirtualServer {
  const scheduler = servicePort.scheduler ?? nodeScheduler;
  return {
    family: servicePort.family,
    protocol: servicePort.protocol,
    address,
    port,
    scheduler,
    persistentSeconds: servicePort.affinitySeconds,
    schedulerFlags: scheduler === 'mh' ? [mhPort] : [],
    realServers,
    origin,
  };
}

/** Endpoints of a Service port as real servers of weight 1, sorted by address as a number, then port. */
export function makeRealServers(endpoints: readonly Endpoint[], servicePort: ServicePort): readonly RealServer[] {
  return endpoints
    .toSorted((a, b) => compareAddresses(a.address, b.address) || a.port - b.port)
    .map(({ address, port, place }) => ({
      address,
      port,
      weight: 1,
      forwarding: servicePort.forwarding,
      origin: { servicePort: servicePort.label, place },
    }));
}

/**
 * One virtual server for each address, port and protocol, sorted. Inside a Service port the last one wins, because each
 * write of kube-proxy's replaces the one before; between Service ports the first in the cluster's order does.
 */
export function mergeVirtualServers(ports: readonly (readonly VirtualServer[])[]): readonly VirtualServer[] {
  const merged = new Map<string, VirtualServer>();
  for (const virtualServers of ports) {
    for (const server of lastOfEach(virtualServers)) {
      const key = virtualServerKey(server);
      if (!merged.has(key)) merged.set(key, server);
    }
  }
  return [...merged.values()].sort(compareVirtualServers);
}

function lastOfEach(virtualServers: readonly VirtualServer[]): Iterable<VirtualServer> {
  if (virtualServers.length < 2) return virtualServers;
  return new Map(virtualServers.map((server) => [virtualServerKey(server), server])).values();
}
