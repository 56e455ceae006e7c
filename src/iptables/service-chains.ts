import type { LocalTraffic } from '../cluster/local-traffic.ts';
import type { ServicePort } from '../cluster/model.ts';
import type { Address } from '../kernel/address.ts';
import { contains } from '../kernel/address.ts';
import type { Chain, Rule, RuleArg } from '../kernel/iptables.ts';
import type { Origin } from '../kernel/origin.ts';
import { matchClusterIP, originOf } from './capture-rules.ts';
import { comment, fromNode, jumpTo, markForMasquerade, protocolArgs } from './rule-args.ts';
import type { EndpointTarget, ServicePortPlan } from './plan-service-port.ts';

/** What the chains of all Service ports of one family depend on besides the ports. */
export interface ChainContext {
  readonly masqueradeAll: boolean;
  readonly localTraffic: LocalTraffic | undefined;
  /** The node's own address in the family. */
  readonly nodeIP: Address;
  /** Whether rules that name an endpoint have a comment: not in large clusters. */
  readonly endpointComments: boolean;
  /** The match that lets one packet of n through, at index n: made once, as most Services need the same few. */
  readonly chances: readonly RuleArg[];
}

/** A Service port's own chains in table nat, those in use only, in kube-proxy's order. */
export function serviceChains(plan: ServicePortPlan, context: ChainContext): readonly Chain[] {
  if (!plan.hasEndpoints) return [];
  const { chains, clusterTargets, localTargets } = plan;
  const origin = originOf(plan.port, (places) => places.port);
  return [
    ...(plan.usesExternalChain ? [externalChain(plan, context, origin)] : []),
    ...(plan.usesFirewallChain ? [firewallChain(plan, context, origin)] : []),
    ...(clusterTargets.length > 0 ? [policyChain(chains.cluster, plan, clusterTargets, context, origin)] : []),
    ...(localTargets.length > 0 ? [policyChain(chains.local, plan, localTargets, context, origin)] : []),
    ...plan.targets.map((target) => endpointChain(plan.port, target, context)),
  ];
}

/**
 * KUBE-EXT-: where packets to all external addresses and the node port arrive. Under policy Cluster they are
 * masqueraded, since an endpoint on another node would answer past this one. Under policy Local the client's address
 * is kept, and what comes from the node and its pods takes the short cut to the endpoints of all nodes, as it would by
 * way of a load balancer outside.
 */
function externalChain({ port, chains, external }: ServicePortPlan, context: ChainContext, origin: Origin): Chain {
  const about = `${port.label} external destinations`;
  const toCluster = jumpTo(chains.cluster);
  const rules: Rule[] = [];
  if (port.externalPolicyLocal) {
    if (context.localTraffic) {
      rules.push({ args: [comment(`pod traffic for ${about}`), context.localTraffic.ifLocal, toCluster], origin });
    }
    // A load balancer's address is often the node's too, and would be the source of the node's own packets.
    rules.push({ args: [comment(`masquerade LOCAL traffic for ${about}`), fromNode, markForMasquerade], origin });
    rules.push({ args: [comment(`route LOCAL traffic for ${about}`), fromNode, toCluster], origin });
  } else {
    rules.push({ args: [comment(`masquerade traffic for ${about}`), markForMasquerade], origin });
  }
  if (!external.refusal) rules.push({ args: [jumpTo(external.policyChain)], origin });
  return { name: chains.external, rules, origin };
}

/** KUBE-FW-: what comes from a source range goes on to KUBE-EXT-; KUBE-PROXY-FIREWALL drops the rest. */
function firewallChain({ port, chains }: ServicePortPlan, context: ChainContext, origin: Origin): Chain {
  const about = comment(`${port.label} loadbalancer IP`);
  const toExternal = jumpTo(chains.external);
  const rules: Rule[] = port.sourceRanges.map((range, index) => ({
    args: [about, { kind: 'source', cidr: range.text }, toExternal],
    origin: originOf(port, (places) => places.sourceRange(index)),
  }));
  // Where the load balancer's address is a local one, the node's own packets have it as their source.
  if (port.sourceRanges.some((range) => contains(range, context.nodeIP))) {
    for (const [index, address] of port.loadBalancerIPs.entries()) {
      rules.push({
        args: [about, { kind: 'source', cidr: address.text }, toExternal],
        origin: originOf(port, (places) => places.ingress(index)),
      });
    }
  }
  rules.push({ args: [comment(`other traffic to ${port.label} will be dropped by KUBE-PROXY-FIREWALL`)], origin });
  return { name: chains.firewall, rules, origin };
}

/** KUBE-SVC- or KUBE-SVL-: spreads packets over the endpoints of one policy. */
function policyChain(
  name: string,
  plan: ServicePortPlan,
  targets: readonly EndpointTarget[],
  context: ChainContext,
  origin: Origin,
): Chain {
  const rules = name === plan.internal.policyChain ? masqueradeInternalRules(plan.port, context) : [];
  for (const rule of targetRules(plan.port, targets, context)) rules.push(rule);
  return { name, rules, origin };
}

/** Packets to the cluster IP from outside the cluster could be routed through any node, so the answer must be, too. */
function masqueradeInternalRules(port: ServicePort, context: ChainContext): Rule[] {
  if (!context.masqueradeAll && !context.localTraffic) return [];
  const args: RuleArg[] = [...matchClusterIP(port)];
  if (!context.masqueradeAll && context.localTraffic) args.push(context.localTraffic.ifNotLocal);
  args.push(markForMasquerade);
  return [{ args, origin: originOf(port, (places) => places.clusterIP) }];
}

/**
 * First, with session affinity, the endpoint that has seen the client; then each endpoint with an equal chance: the
 * first of n is taken with probability 1/n, the next of the rest with 1/(n-1), and the last for sure.
 */
function targetRules(port: ServicePort, targets: readonly EndpointTarget[], context: ChainContext): readonly Rule[] {
  const sticky: Rule[] = [];
  const spread: Rule[] = [];
  for (const [index, { endpoint, chain, jump, origin }] of targets.entries()) {
    const about = `${port.label} -> ${endpoint.label}`;
    if (port.affinitySeconds !== undefined) {
      const action = { kind: 'rcheck', seconds: port.affinitySeconds, reap: true } as const;
      sticky.push({ args: endpointArgs(context, about, { kind: 'recent', name: chain, action }, jump), origin });
    }
    const left = targets.length - index;
    const chance = left > 1 ? context.chances[left] : undefined;
    const args = chance ? endpointArgs(context, about, chance, jump) : endpointArgs(context, about, jump);
    spread.push({ args, origin });
  }
  return [...sticky, ...spread];
}

/** KUBE-SEP-: sends packets to one endpoint, and remembers the client where the Service has session affinity. */
function endpointChain(port: ServicePort, target: EndpointTarget, context: ChainContext): Chain {
  const { endpoint, chain, origin } = target;
  const [module, protocol] = protocolArgs[port.protocol];
  const rewrite: RuleArg = { kind: 'jump', target: { kind: 'dnat', to: endpoint.label } };
  const source: RuleArg = { kind: 'source', cidr: endpoint.address.text };
  // An endpoint that reaches itself would otherwise get an answer from its own address.
  const masquerade = endpointArgs(context, port.label, source, markForMasquerade);
  const send =
    port.affinitySeconds === undefined
      ? endpointArgs(context, port.label, module, protocol, rewrite)
      : endpointArgs(context, port.label, remember(chain), module, protocol, rewrite);
  return {
    name: chain,
    rules: [
      { args: masquerade, origin },
      { args: send, origin },
    ],
    origin,
  };
}

function remember(chain: string): RuleArg {
  return { kind: 'recent', name: chain, action: { kind: 'set' } };
}

/** The arguments of a rule that names an endpoint. */
function endpointArgs(context: ChainContext, about: string, ...args: readonly RuleArg[]): readonly RuleArg[] {
  return context.endpointComments ? [comment(about), ...args] : args;
}

/** The matches for one packet in 0 (which is none's), 1, 2 and so on up to `most`. */
export function makeChances(most: number): readonly RuleArg[] {
  return Array.from({ length: most + 1 }, (_, count) => ({ kind: 'statistic', probability: formatChance(count) }));
}

/** 1/count with ten decimals, as Go's %0.10f rounds it. */
export function formatChance(count: number): string {
  // 1/2048 is the one chance that lies halfway between two such numbers: Go takes the even one, toFixed the larger.
  return count === 2048 ? '0.0004882812' : (1 / count).toFixed(10);
}
