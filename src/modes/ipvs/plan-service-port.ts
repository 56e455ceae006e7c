import { uniqueBy } from '../../cluster/grouping.ts';
import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import {
  admitsNode,
  originOf,
  type ServiceAddress,
  type TrafficPath,
  type TrafficPlan,
} from '../../cluster/plan-traffic.ts';
import type { Address } from '../../kernel/address.ts';
import {
  type VirtualServer,
  compareRealServers,
  compareVirtualServers,
  type RealServer,
  type SchedulerFlag,
} from '../../kernel/ipvs/ipvs.ts';
import type { SetEntry } from '../../kernel/ipset/set-entry.ts';
import { nodePortSets, type SetId } from '../../kube-proxy/ipvs-objects.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';

export interface FamilyNode {
  readonly scheduler: string;
  readonly nodeIP: Address;
  readonly nodePortAddresses: readonly Address[];
  /** Addresses on the node's own links, as texts. kube-ipvs0 never gets them. */
  readonly own: ReadonlySet<string>;
}

/** The plan of one Service port, before ports are merged. */
export interface IpvsPortPlan {
  /** Virtual servers in kube-proxy's order. If two have the same address and port, the later one wins. */
  readonly virtualServers: readonly VirtualServer[];
  readonly members: readonly SetMember[];
  /** Load balancer addresses that the node itself may not use, because no source range contains the node's address. */
  readonly closedToNode: readonly ServiceAddress[];
}

type SetMember = readonly [SetId, SetEntry];

/** Plans a port with only a cluster IP. The result for nodes with the same traffic plan can differ only in the scheduler. */
export function planInternal(traffic: TrafficPlan, scheduler: string): IpvsPortPlan {
  const realServers = makeRealServers(servedBy(traffic, traffic.internal), traffic.port);
  return {
    virtualServers: [makeVirtualServer(traffic.port, scheduler, traffic.clusterIP, realServers)],
    members: [...clusterIPMembers(traffic), ...healthCheckMembers(traffic)],
    closedToNode: [],
  };
}

/** Plans a port in the same order as kube-proxy's syncProxyRules (pkg/proxy/ipvs/proxier.go). */
export function planServicePort(traffic: TrafficPlan, on: FamilyNode): IpvsPortPlan {
  const { port, nodePort } = traffic;
  const internal = makeRealServers(servedBy(traffic, traffic.internal), port);
  const external =
    traffic.external.policy === traffic.internal.policy
      ? internal
      : makeRealServers(servedBy(traffic, traffic.external), port);
  const serve = (at: ServiceAddress) => makeVirtualServer(port, on.scheduler, at, external);
  const virtualServers = [makeVirtualServer(port, on.scheduler, traffic.clusterIP, internal)];
  const members = clusterIPMembers(traffic);
  const closedToNode: ServiceAddress[] = [];
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
    // kube-proxy stops here if the node port has no address to listen on.
    if (listeners.length === 0) return { virtualServers, members, closedToNode };
  }
  members.push(...healthCheckMembers(traffic));
  return { virtualServers, members, closedToNode };
}

function clusterIPMembers(traffic: TrafficPlan): SetMember[] {
  const { clusterIP } = traffic;
  return [...hairpinMembers(traffic), ['clusterIP', clusterIP], bindingOf(clusterIP)];
}

interface ServedAddress {
  readonly at: ServiceAddress;
  readonly members: readonly SetMember[];
  readonly closedToNode: boolean;
}

function planExternalIPs({ externalIPs, external }: TrafficPlan): readonly ServedAddress[] {
  const set = external.policy === 'Local' ? 'externalIPLocal' : 'externalIP';
  return externalIPs.map((at) => ({ at, members: [[set, at]], closedToNode: false }));
}

function planLoadBalancerIPs(traffic: TrafficPlan, on: FamilyNode): readonly ServedAddress[] {
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
      // The address is on the node, so the node's own packets to this address also have it as their source.
      ...setIf(nodeIsAdmitted, 'sourceIP', { ...at, source: at.address }),
    ];
    return { at, members, closedToNode: firewall !== undefined && !nodeIsAdmitted };
  });
}

function bindingOf({ address, origin }: ServiceAddress): SetMember {
  return ['ipvsAddresses', { address, origin }];
}

/** Lists all local endpoints, ready or not, because a pod that reaches itself through the Service must be masqueraded. */
function hairpinMembers({ port, onNode }: TrafficPlan): readonly SetMember[] {
  return onNode.map(({ address, port: number, place }) => {
    const origin = originOf(port, place);
    return ['loopBack', { address, protocol: port.protocol, port: number, source: address, origin }];
  });
}

function nodePortMembers({ port, external }: TrafficPlan, listeners: readonly ServiceAddress[]): readonly SetMember[] {
  const sets = nodePortSets[port.protocol];
  // A bitmap:port set has one entry for all listening addresses, because its entries are only numbers.
  const members: readonly SetEntry[] =
    port.protocol === 'SCTP' ? listeners : listeners.slice(0, 1).map((at) => ({ port: at.port, origin: at.origin }));
  const isLocal = external.policy === 'Local';
  return members.flatMap((member) => [[sets.all, member], ...setIf(isLocal, sets.local, member)]);
}

function healthCheckMembers({ healthCheck }: TrafficPlan): readonly SetMember[] {
  return healthCheck ? [['healthCheckNodePort', healthCheck]] : [];
}

/** Under policy Local without local endpoints, uses the cluster's endpoints. (Other modes drop such packets.) */
function servedBy({ clusterEndpoints, localEndpoints }: TrafficPlan, { policy }: TrafficPath): readonly Endpoint[] {
  return policy === 'Local' && localEndpoints.length > 0 ? localEndpoints : clusterEndpoints;
}

function setIf(condition: boolean, id: SetId, member: SetEntry): readonly SetMember[] {
  return condition ? [[id, member]] : [];
}

const mhPort: SchedulerFlag = 'flag-2';

/** Makes a virtual server. The scheduler in the Service's annotation overrides the node's. */
function makeVirtualServer(
  servicePort: ServicePort,
  nodeScheduler: string,
  { address, port, origin }: ServiceAddress,
  realServers: readonly RealServer[],
): VirtualServer {
  const scheduler = servicePort.scheduler || nodeScheduler;
  return {
    family: servicePort.family,
    protocol: servicePort.protocol,
    address,
    port,
    scheduler,
    persistentSeconds: servicePort.affinitySeconds || undefined,
    schedulerFlags: scheduler === 'mh' ? [mhPort] : [],
    realServers,
    origin,
  };
}

/** Gives each real server weight 1. Sorts by address as a number, then port. */
function makeRealServers(endpoints: readonly Endpoint[], servicePort: ServicePort): readonly RealServer[] {
  const { label, forwarding } = servicePort;
  return endpoints
    .map(({ address, port, place }) => ({
      address,
      port,
      weight: 1,
      forwarding,
      origin: { servicePort: label, place },
    }))
    .sort(compareRealServers);
}

/** Keeps one server per address, port and protocol: the last within a Service port, as in kube-proxy, and the first between ports. */
export function mergeVirtualServers(ports: readonly (readonly VirtualServer[])[]): readonly VirtualServer[] {
  const merged = new Map<string, VirtualServer>();
  for (const virtualServers of ports) {
    for (const server of latestServers(virtualServers)) {
      const key = virtualServerKey(server);
      if (!merged.has(key)) merged.set(key, server);
    }
  }
  return [...merged.values()].sort(compareVirtualServers);
}

function latestServers(virtualServers: readonly VirtualServer[]): Iterable<VirtualServer> {
  if (virtualServers.length < 2) return virtualServers;
  return uniqueBy(virtualServers, virtualServerKey);
}
