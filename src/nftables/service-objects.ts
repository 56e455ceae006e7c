import type { Endpoint } from '../cluster/model.ts';
import type { MasqueradePlan } from '../cluster/plan-masquerade.ts';
import type { TrafficPath, TrafficPlan, TrafficPolicy } from '../cluster/plan-traffic.ts';
import { originOf } from '../cluster/plan-traffic.ts';
import type { Element } from '../kernel/nftables/element.ts';
import type { NftChain, NftSet } from '../kernel/nftables/table.ts';
import { nftSets } from '../kube-proxy/nftables.ts';
import { endpointNames, serviceChainNames, type EndpointNames, type ServiceChainNames } from './chain-names.ts';
import { affinitySet, endpointChain, externalChain, firewallChain, policyChain } from './service-chains.ts';
import { serviceElements } from './service-elements.ts';

/** What the chains of all Service ports of one family depend on besides the ports. */
export interface ServiceContext {
  readonly masquerade: MasqueradePlan;
  /** Whether a firewall's source ranges hold the node's own address. */
  readonly nodeIsAdmitted: boolean;
}

/** Which of a table's sets and maps an element is put into. */
export type ElementSet = Exclude<(typeof nftSets)[keyof typeof nftSets], typeof nftSets.nodePortIPs>;

/** An element of one of the sets and maps that all Service ports share. */
export interface PlacedElement {
  readonly set: ElementSet;
  readonly element: Element;
}

/** All that a table holds for one Service port. */
export interface ServiceObjects {
  readonly chains: readonly NftChain[];
  /** The clients of each endpoint, with session affinity. */
  readonly sets: readonly NftSet[];
  /** Of those with the same set and key, the last counts. */
  readonly elements: readonly PlacedElement[];
}

/** An endpoint with the names of its chain and its set of clients. */
export interface StickyEndpoint extends EndpointNames {
  readonly endpoint: Endpoint;
}

/** What kube-proxy makes of a Service port, in the order in which it makes it. */
export function serviceObjects(plan: TrafficPlan, context: ServiceContext): ServiceObjects {
  const names = serviceChainNames(plan.port);
  const { affinitySeconds } = plan;
  const sticky =
    affinitySeconds === undefined
      ? undefined
      : plan.reachable.map((endpoint) => ({ endpoint, ...endpointNames(plan.port, endpoint) }));
  return {
    chains: serviceChains(plan, names, sticky, context),
    sets: (sticky ?? []).map((target) => affinitySet(plan, target, affinitySeconds)),
    elements: serviceElements(plan, names),
  };
}

function serviceChains(
  plan: TrafficPlan,
  names: ServiceChainNames,
  sticky: readonly StickyEndpoint[] | undefined,
  context: ServiceContext,
): readonly NftChain[] {
  const { port, firewall, clusterEndpoints, localEndpoints } = plan;
  const origin = originOf(port, port.places?.port);
  const chains: NftChain[] = [];
  if (clusterEndpoints.length > 0) chains.push(policyChain(names.cluster, plan, clusterEndpoints, sticky, origin));
  if (localEndpoints.length > 0) chains.push(policyChain(names.local, plan, localEndpoints, sticky, origin));
  if (plan.external.isUsed) chains.push(externalChain(plan, names, context, origin));
  if (firewall) chains.push(firewallChain(port, names, firewall, context, origin));
  for (const target of sticky ?? []) chains.push(endpointChain(plan, target));
  return chains;
}

/** The chain that spreads the packets of a path over its endpoints; there only where it has some. */
export function policyChainName(names: ServiceChainNames, { policy }: TrafficPath): string {
  return chainOfPolicy(names, policy);
}

function chainOfPolicy(names: ServiceChainNames, policy: TrafficPolicy): string {
  switch (policy) {
    case 'Cluster':
      return names.cluster;
    case 'Local':
      return names.local;
  }
}
