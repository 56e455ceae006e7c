import type { TrafficPlan } from '../cluster/plan-traffic.ts';
import { originOf } from '../cluster/plan-traffic.ts';
import type { NftChain } from '../kernel/nftables/table.ts';
import { endpointNames, serviceChainNames } from './chain-names.ts';
import type { ServiceChainNames } from './chain-names.ts';
import { affinitySet, endpointChain, externalChain, firewallChain, policyChain } from './service-chains.ts';
import { serviceElements } from './service-elements.ts';
import type { ServiceContext, ServiceObjects, StickyEndpoint } from './service-parts.ts';

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
