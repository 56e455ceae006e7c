import type { EndpointChoice } from '../cluster/endpoint-choice.ts';
import { chooseEndpoints, isLocal } from '../cluster/endpoint-choice.ts';
import type { NodeContext, ServicePort } from '../cluster/model.ts';
import type { Address } from '../kernel/address.ts';
import { contains } from '../kernel/address.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs.ts';
import type { Origin, Place } from '../kernel/origin.ts';
import type { SetId } from '../kube-proxy/sets.ts';
import type { AddressPort, Member } from './sets.ts';
import { makeRealServers, makeVirtualServer } from './virtual-servers.ts';

/** What a node is to the Service ports of one family. */
export interface FamilyNode {
  readonly node: NodeContext;
  readonly scheduler: string;
  /** The addresses that node ports listen on. */
  readonly nodePortAddresses: readonly Address[];
  /** Addresses of the node's own links, as text: never bound to kube-ipvs0. */
  readonly own: ReadonlySet<string>;
}

/** What one Service port puts into the kernel, before all ports are put together. */
export interface ServicePortPlan {
  /** In kube-proxy's order: where two have one address and port, the later one stands. */
  readonly virtualServers: readonly VirtualServer[];
  readonly members: readonly SetMember[];
  /** Load balancer addresses that the node itself may not use: its own address is in no source range. */
  readonly closedToNode: readonly AddressPort[];
}

type SetMember = readonly [SetId, Member];

/** One Service port on one node, as kube-proxy's syncProxyRules (pkg/proxy/ipvs/proxier.go) goes through it. */
export function planServicePort(port: ServicePort, on: FamilyNode): ServicePortPlan {
  const endpoints = selectRealServers(port, chooseEndpoints(port, on.node));
  const virtualServers: VirtualServer[] = [];
  const members = hairpinMembers(port, on);
  const closedToNode: AddressPort[] = [];
  for (const portal of portalsOf(port, on)) {
    virtualServers.push(virtualServer(port, on, portal.at, endpoints[portal.reach]));
    for (const member of portal.members) members.push(member);
    if (needsBinding(portal, on)) members.push(bindingOf(portal.at));
    if (portal.closedToNode) closedToNode.push(portal.at);
  }
  if (port.nodePort !== 0) {
    const listeners = nodePortListeners(port, on);
    for (const at of listeners) virtualServers.push(virtualServer(port, on, at, endpoints.external));
    members.push(...nodePortMembers(port, listeners));
    // kube-proxy leaves a Service port whose node port has no address to listen on at that point.
    if (listeners.length === 0) return { virtualServers, members, closedToNode };
  }
  members.push(...healthCheckMembers(port));
  return { virtualServers, members, closedToNode };
}

/** Where a Service port is served apart from the node's own addresses. */
interface Portal {
  /** Whose traffic policy binds clients of this address. */
  readonly reach: 'internal' | 'external';
  readonly at: AddressPort;
  readonly members: readonly SetMember[];
  readonly closedToNode: boolean;
}

function portalsOf(port: ServicePort, on: FamilyNode): readonly Portal[] {
  const clusterIP = planClusterIP(port);
  if (port.externalIPs.length === 0 && port.loadBalancerIPs.length === 0) return [clusterIP];
  return [clusterIP, ...planExternalIPs(port), ...planLoadBalancerIPs(port, on)];
}

function planClusterIP(port: ServicePort): Portal {
  const at = addressPort(port, port.clusterIP, port.places?.clusterIP);
  return { reach: 'internal', at, members: [['clusterIP', at]], closedToNode: false };
}

function planExternalIPs(port: ServicePort): readonly Portal[] {
  return port.externalIPs.map((address, index) => {
    const at = addressPort(port, address, port.places?.externalIP(index));
    const set = port.externalPolicyLocal ? 'externalIPLocal' : 'externalIP';
    return { reach: 'external', at, members: [[set, at]], closedToNode: false };
  });
}

function planLoadBalancerIPs(port: ServicePort, on: FamilyNode): readonly Portal[] {
  const restricted = port.sourceRanges.length > 0;
  const openToNode = port.sourceRanges.some((range) => contains(range, on.node.nodeIPs[port.family]));
  return port.loadBalancerIPs.map((address, index) => {
    const at = addressPort(port, address, port.places?.ingress(index));
    const members: readonly SetMember[] = [
      ['loadBalancer', at],
      ...setIf(port.externalPolicyLocal, 'loadBalancerLocal', at),
      ...setIf(restricted, 'loadBalancerFirewall', at),
      ...port.sourceRanges.map((range, rangeIndex): SetMember => {
        const origin = originOf(port, port.places?.sourceRange(rangeIndex));
        return ['sourceCIDR', { ...at, source: range, origin }];
      }),
      // What the node itself sends to the address, which is bound there, comes from that same address.
      ...setIf(restricted && openToNode, 'sourceIP', { ...at, source: address }),
    ];
    return { reach: 'external', at, members, closedToNode: restricted && !openToNode };
  });
}

/** Cluster IPs are always bound to kube-ipvs0, other addresses where they are not the node's own. */
function needsBinding({ reach, at }: Portal, on: FamilyNode): boolean {
  return reach === 'internal' || !on.own.has(at.address.text);
}

function bindingOf({ address, origin }: AddressPort): SetMember {
  return ['ipvsAddresses', { address, origin }];
}

/** The port's local endpoints, ready or not: a pod that reaches itself through the Service is masqueraded. */
function hairpinMembers(port: ServicePort, on: FamilyNode): SetMember[] {
  return port.endpoints
    .filter((endpoint) => isLocal(endpoint, on.node))
    .map(({ address, port: number, place }) => {
      const origin = originOf(port, place);
      return ['loopBack', { address, protocol: port.protocol, port: number, source: address, origin }];
    });
}

const nodePortSets = {
  TCP: { all: 'nodePortTCP', local: 'nodePortLocalTCP' },
  UDP: { all: 'nodePortUDP', local: 'nodePortLocalUDP' },
  SCTP: { all: 'nodePortSCTP', local: 'nodePortLocalSCTP' },
} as const satisfies Record<ServicePort['protocol'], { all: SetId; local: SetId }>;

function nodePortMembers(port: ServicePort, listeners: readonly AddressPort[]): readonly SetMember[] {
  const sets = nodePortSets[port.protocol];
  // A bitmap:port knows the number alone, once however many addresses listen.
  const members: readonly Member[] =
    port.protocol === 'SCTP' ? listeners : listeners.slice(0, 1).map((at) => ({ port: at.port, origin: at.origin }));
  return members.flatMap((member) => [[sets.all, member], ...setIf(port.externalPolicyLocal, sets.local, member)]);
}

function nodePortListeners(port: ServicePort, on: FamilyNode): readonly AddressPort[] {
  const origin = originOf(port, port.places?.nodePort);
  return on.nodePortAddresses.map((address) => ({ address, protocol: port.protocol, port: port.nodePort, origin }));
}

function healthCheckMembers(port: ServicePort): readonly SetMember[] {
  if (port.healthCheckNodePort === 0) return [];
  return [['healthCheckNodePort', { port: port.healthCheckNodePort, origin: originOf(port, port.places?.port) }]];
}

function selectRealServers(
  port: ServicePort,
  choice: EndpointChoice,
): { readonly [Reach in Portal['reach']]: readonly RealServer[] } {
  // Policy Local falls back to the cluster's endpoints where the node has none: only iptables mode drops there.
  const localFirst = choice.local.length > 0 ? choice.local : choice.cluster;
  const internal = makeRealServers(port.internalPolicyLocal ? localFirst : choice.cluster, port);
  if (port.externalPolicyLocal === port.internalPolicyLocal) return { internal, external: internal };
  return { internal, external: makeRealServers(port.externalPolicyLocal ? localFirst : choice.cluster, port) };
}

function virtualServer(
  port: ServicePort,
  on: FamilyNode,
  { address, port: number, origin }: AddressPort,
  realServers: readonly RealServer[],
): VirtualServer {
  return makeVirtualServer(port, { address, port: number, scheduler: on.scheduler, realServers, origin });
}

function addressPort(port: ServicePort, address: Address, place: Place | undefined): AddressPort {
  return { address, protocol: port.protocol, port: port.port, origin: originOf(port, place) };
}

function originOf(port: ServicePort, place: Place | undefined): Origin {
  return { servicePort: port.label, place };
}

function setIf(condition: boolean, id: SetId, member: Member): readonly SetMember[] {
  return condition ? [[id, member]] : [];
}
