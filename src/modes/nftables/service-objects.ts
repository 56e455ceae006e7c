import type { Endpoint } from '../../cluster/model.ts';
import { originOf, type TrafficPlan } from '../../cluster/plan-traffic.ts';
import type { NftChain } from '../../kernel/nftables/table.ts';
import { endpointNames, policyChainName, serviceChainNames, type ServiceChainNames } from './chain-names.ts';
import {
  affinitySet,
  endpointChain,
  externalChain,
  firewallChain,
  masqueradeRules,
  spreadingRules,
} from './service-chains.ts';
import { serviceElements } from './service-elements.ts';
import type { ChainedEndpoint, ServiceContext, ServiceObjects } from './service-parts.ts';

/** Most Service ports have no sets of their own. */
const none: readonly never[] = [];

/** What kube-proxy makes of a Service port, in the order in which it makes it. */
export function serviceObjects(plan: TrafficPlan, context: ServiceContext): ServiceObjects {
  const names = serviceChainNames(plan.port);
  const { affinitySeconds } = plan;
  const isSticky = affinitySeconds !== undefined;
  const chained =
    isSticky || !context.behaviours.has('direct-dnat')
      ? plan.reachable.map((endpoint) => ({ endpoint, ...endpointNames(plan.port, endpoint) }))
      : undefined;
  return {
    chains: serviceChains(plan, names, chained, context),
    sets: isSticky ? (chained ?? []).map((target) => affinitySet(plan, target, affinitySeconds)) : none,
    elements: serviceElements(plan, names, context),
  };
}

function serviceChains(
  plan: TrafficPlan,
  names: ServiceChainNames,
  chained: readonly ChainedEndpoint[] | undefined,
  context: ServiceContext,
): readonly NftChain[] {
  const { port, firewall, clusterEndpoints, localEndpoints } = plan;
  const origin = originOf(port, port.places?.port);
  const spread = (name: string, endpoints: readonly Endpoint[]): NftChain => {
    const takesClusterIP = !plan.internal.refusal && name === policyChainName(names, plan.internal);
    const first = takesClusterIP ? masqueradeRules(plan, context) : none;
    const last = spreadingRules(plan, endpoints, chained, context.behaviours);
    return { name, rules: first.length === 0 ? last : [...first, ...last], origin };
  };
  // Most Service ports have one chain, and an array that grows from empty reserves room for sixteen.
  const chains = clusterEndpoints.length > 0 ? [spread(names.cluster, clusterEndpoints)] : [];
  if (localEndpoints.length > 0) chains.push(spread(names.local, localEndpoints));
  if (plan.external.isUsed) chains.push(externalChain(plan, names, context, origin));
  if (firewall) chains.push(firewallChain(port, names, firewall, context, origin));
  if (chained) for (const target of chained) chains.push(endpointChain(plan, target, context));
  return chains;
}
