import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import {
  admitsNode,
  originOf,
  type ServiceAddress,
  type TrafficPath,
  type TrafficPlan,
} from '../../cluster/plan-traffic.ts';
import { type Address, compareAddresses } from '../../kernel/address.ts';
import {
  type VirtualServer,
  compareVirtualServers,
  type RealServer,
  type SchedulerFlag,
} from '../../kernel/ipvs/ipvs.ts';
import type { AddressPort, SetEntry } from '../../kernel/ipset/set-entry.ts';
import type { SetId } from '../../kube-proxy/ipvs-sets.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';

/** What a node is to the Service ports of one family, besides its identity. */
export interface FamilyNode {
  /** The node's scheduler. */
  readonly scheduler: string;
  /** The node's own address. */
  readonly nodeIP: Address;
  /** The addresses that node ports listen on. */
  readonly nodePortAddresses: readonly Address[];
  /** Addresses of the node's own links, as text: never bound to kube-ipvs0. */
  readonly own: ReadonlySet<string>;
}

/** What one Service port puts into the kernel, before all ports are put together. */
export interface ServicePortPlan {
  /** In kube-proxy's order: of two with one address and port, the later one wins. */
  readonly virtualServers: readonly VirtualServer[];
  readonly members: readonly SetMember[];
  /** Load balancer addresses that the node itself may not use: its own address is in no source range. */
  readonly closedToNode: readonly AddressPort[];
}

type SetMember = readonly [SetId, SetEntry];

/**
 * A Service port that is reached by its cluster IP alone. Of all nodes with the same traffic plan, only the scheduler
 * can differ to it.
 */
export function planInternal(traffic: TrafficPlan, scheduler: string): ServicePortPlan {
  const realServers = makeRealServers(servedBy(traffic, traffic.internal), traffic.port);
  return {
    virtualServers: [makeVirtualServer(traffic.port, scheduler, traffic.clusterIP, realServers)],
    members: [...clusterIPMembers(traffic), ...healthCheckMembers(traffic)],
    closedToNode: [],
  };
}

/** Any Service port on one node, as kube-proxy's syncProxyRules (pkg/proxy/ipvs/proxier.go) goes through it. */
export function planServicePort(traffic: TrafficPlan, on: FamilyNode): ServicePortPlan {
  const { port, nodePort } = traffic;
  const internal = makeRealServers(servedBy(traffic, traffic.internal), port);
  const external =
    traffic.external.policy === traffic.internal.policy
      ? internal
      : makeRealServers(servedBy(traffic, traffic.external), port);
  const serve = (at: AddressPort) => makeVirtualServer(port, on.scheduler, at, external);
  const virtualServers = [makeVirtualServer(port, on.scheduler, traffic.clusterIP, internal)];
  const members = clusterIPMembers(traffic);
  const closedToNode: AddressPort[] = [];
  for (const portal of [...planExternalIPs(traffic), ...planLoadBalancerIPs(traffic, on)]) {
    virtualServers.push(serve(portal.at));
    members.push(...portal.members);
    if (!on.own.has(portal.at.address.text)) members.push(bindingOf(portal.at));
    if (portal.closedToNode) closedToNode.push(portal.at);
  }
  if (nodePort) {
    const listeners = on.nodePortAddresses.map((address) => ({ ...nodePort, address }));
    virtualServers.push(...listeners.map(serve));
    members.push(...nodePortMembers(traffic, listeners));
    // kube-proxy leaves a Service port whose node port has no address to listen on at that point.
    if (listeners.length === 0) return { virtualServers, members, closedToNode };
  }
  members.push(...healthCheckMembers(traffic));
  return { virtualServers, members, closedToNode };
}

/** With those of the port's endpoints. The cluster IP is always bound to kube-ipvs0. */
function clusterIPMembers(traffic: TrafficPlan): SetMember[] {
  const { clusterIP } = traffic;
  return [...hairpinMembers(traffic), ['clusterIP', clusterIP], bindingOf(clusterIP)];
}

/** An address by which a Service port is served from outside, apart from the node's own. */
interface Portal {
  readonly at: ServiceAddress;
  readonly members: readonly SetMember[];
  readonly closedToNode: boolean;
}

function planExternalIPs({ externalIPs, external }: TrafficPlan): readonly Portal[] {
  const set = external.policy === 'Local' ? 'externalIPLocal' : 'externalIP';
  return externalIPs.map((at) => ({ at, members: [[set, at]], closedToNode: false }));
}

function planLoadBalancerIPs(traffic: TrafficPlan, on: FamilyNode): readonly Portal[] {
  const { loadBalancerIPs, external, firewall } = traffic;
  const nodeIsAdmitted = firewall !== undefined && admitsNode(firewall, on.nodeIP);
  return loadBalancerIPs.map((at) => {
    const members: readonly SetMember[] = [
      ['loadBalancer', at],
      ...setIf(external.policy === 'Local', 'loadBalancerLocal', at),
      ...setIf(firewall !== undefined, 'loadBalancerFirewall', at),
      ...(firewall?.sourceRanges ?? []).map(({ network, origin }): SetMember => [
        'sourceCIDR',
        { ...at, source: network, origin },
      ]),
      // The address is bound on the node, so what the node itself sends to it comes from that same address.
      ...setIf(nodeIsAdmitted, 'sourceIP', { ...at, source: at.address }),
    ];
    return { at, members, closedToNode: firewall !== undefined && !nodeIsAdmitted };
  });
}

function bindingOf({ address, origin }: AddressPort): SetMember {
  return ['ipvsAddresses', { address, origin }];
}

/** The port's local endpoints, ready or not: a pod that reaches itself through the Service is masqueraded. */
function hairpinMembers({ port, onNode }: TrafficPlan): readonly SetMember[] {
  return onNode.map(({ address, port: number, place }) => {
    const origin = originOf(port, place);
    return ['loopBack', { address, protocol: port.protocol, port: number, source: address, origin }];
  });
}

const nodePortSets = {
  TCP: { all: 'nodePortTCP', local: 'nodePortLocalTCP' },
  UDP: { all: 'nodePortUDP', local: 'nodePortLocalUDP' },
  SCTP: { all: 'nodePortSCTP', local: 'nodePortLocalSCTP' },
} as const satisfies Record<ServicePort['protocol'], { all: SetId; local: SetId }>;

function nodePortMembers({ port, external }: TrafficPlan, listeners: readonly AddressPort[]): readonly SetMember[] {
  const sets = nodePortSets[port.protocol];
  // A bitmap:port knows the number alone, once however many addresses listen.
  const members: readonly SetEntry[] =
    port.protocol === 'SCTP' ? listeners : listeners.slice(0, 1).map((at) => ({ port: at.port, origin: at.origin }));
  const isLocal = external.policy === 'Local';
  return members.flatMap((member) => [[sets.all, member], ...setIf(isLocal, sets.local, member)]);
}

function healthCheckMembers({ healthCheck }: TrafficPlan): readonly SetMember[] {
  return healthCheck ? [['healthCheckNodePort', healthCheck]] : [];
}

/** Policy Local falls back to the cluster's endpoints where the node has none: the other modes drop there. */
function servedBy({ clusterEndpoints, localEndpoints }: TrafficPlan, { policy }: TrafficPath): readonly Endpoint[] {
  return policy === 'Local' && localEndpoints.length > 0 ? localEndpoints : clusterEndpoints;
}

function setIf(condition: boolean, id: SetId, member: SetEntry): readonly SetMember[] {
  return condition ? [[id, member]] : [];
}

/** The kernel's flag that mixes the client's port into mh's hash: kube-proxy sets it for every virtual server of mh. */
const mhPort: SchedulerFlag = 'flag-2';

/** The virtual server of a Service port at one of its addresses. The Service's annotation wins over the node's scheduler. */
function makeVirtualServer(
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
function makeRealServers(endpoints: readonly Endpoint[], servicePort: ServicePort): readonly RealServer[] {
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
