import type { MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import {
  admittedSources,
  originOf,
  type Firewall,
  type TrafficPlan,
  type TrafficPolicy,
} from '../../cluster/plan-traffic.ts';
import { LazyChain, type Chain, type Rule, type RuleArg } from '../../kernel/iptables/iptables.ts';
import type { Origin } from '../../kernel/place.ts';
import { matchClusterIP } from './capture-rules.ts';
import { ifLocal, ifNotLocal } from './masquerade-rules.ts';
import { policyChainName, type EndpointTarget, type ServicePortPlan } from './plan-service-port.ts';
import { comment, fromNode, jumpTo, markForMasquerade, protocolArgs } from './rule-args.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';

/** What the chains of a Service port depend on besides its plan: plain data, so that equal contexts make equal chains. */
export interface ChainContext {
  readonly masquerade: MasqueradePlan;
  /** Whether rules that name an endpoint have a comment: not in large clusters. */
  readonly endpointComments: boolean;
  /** Whether the node's own address is in one of the port's source ranges. */
  readonly nodeIsAdmitted: boolean;
}

/** The match that lets one packet of n through, at index n: made once, as most Services need the same few. */
export type Chances = readonly RuleArg[];

/** A Service port's own chains in table nat, those in use only, in kube-proxy's order. */
export function serviceChains(plan: ServicePortPlan, context: ChainContext, chances: Chances): readonly Chain[] {
  const { traffic, firewall } = plan;
  if (!traffic.hasEndpoints) return [];
  const origin = originOf(traffic.port, traffic.port.places?.port);
  return [
    ...(traffic.external.isUsed ? [externalChain(plan, context, origin)] : []),
    ...(firewall ? [firewallChain(plan, firewall, context, origin)] : []),
    ...policyChains(plan, context, chances, origin),
    ...plan.targets.map(
      (target) =>
        new LazyChain(target.chain, originOf(traffic.port, target.endpoint.place), () =>
          endpointRules(traffic, target, context),
        ),
    ),
  ];
}

/** KUBE-SVC- and KUBE-SVL-, where they have endpoints: spread packets over the endpoints of one policy. */
function policyChains(
  plan: ServicePortPlan,
  context: ChainContext,
  chances: Chances,
  origin: Origin,
): readonly Chain[] {
  const { traffic } = plan;
  return (['Cluster', 'Local'] as const).flatMap((policy) => {
    const targets = policyTargets(plan, policy);
    if (targets.length === 0) return [];
    const makeRules = (): readonly Rule[] => [
      ...(policy === traffic.internal.policy ? masqueradeInternalRules(traffic, context) : []),
      ...targetRules(traffic, targets, context, chances),
    ];
    return [new LazyChain(policyChainName(plan, policy), origin, makeRules)];
  });
}

function policyTargets(plan: ServicePortPlan, policy: TrafficPolicy): readonly EndpointTarget[] {
  switch (policy) {
    case 'Cluster':
      return plan.clusterTargets;
    case 'Local':
      return plan.localTargets;
  }
}

/** KUBE-EXT-: where packets to all external addresses and the node port arrive (see ExternalPath). */
function externalChain(plan: ServicePortPlan, { masquerade }: ChainContext, origin: Origin): Chain {
  const { port, external } = plan.traffic;
  const about = `${port.label} external destinations`;
  const toCluster = jumpTo(plan.chains.cluster);
  const rules: Rule[] = [];
  switch (external.policy) {
    case 'Local':
      if (masquerade.localTraffic) {
        const args = [comment(`pod traffic for ${about}`), ifLocal(masquerade.localTraffic), toCluster];
        rules.push({ args, origin });
      }
      // A load balancer's address is often the node's too, and would be the source of the node's own packets.
      rules.push({ args: [comment(`masquerade LOCAL traffic for ${about}`), fromNode, markForMasquerade], origin });
      rules.push({ args: [comment(`route LOCAL traffic for ${about}`), fromNode, toCluster], origin });
      break;
    case 'Cluster':
      rules.push({ args: [comment(`masquerade traffic for ${about}`), markForMasquerade], origin });
  }
  if (!external.refusal) rules.push({ args: [jumpTo(policyChainName(plan, external.policy))], origin });
  return { name: plan.chains.external, rules, origin };
}

/** KUBE-FW-: what comes from a source range goes on to KUBE-EXT-; KUBE-PROXY-FIREWALL drops the rest. */
function firewallChain(
  { traffic: { port }, chains }: ServicePortPlan,
  firewall: Firewall,
  { nodeIsAdmitted }: ChainContext,
  origin: Origin,
): Chain {
  const about = comment(`${port.label} loadbalancer IP`);
  const toExternal = jumpTo(chains.external);
  const rules: Rule[] = admittedSources(firewall, nodeIsAdmitted).map(({ source, origin: ofSource }) => ({
    args: [about, { kind: 'source', range: source }, toExternal],
    origin: ofSource,
  }));
  rules.push({
    args: [comment(`other traffic to ${port.label} will be dropped by ${baseChains.proxyFirewall}`)],
    origin,
  });
  return { name: chains.firewall, rules, origin };
}

/** Packets to the cluster IP whose answer must come back by this node. */
function masqueradeInternalRules(traffic: TrafficPlan, { masquerade: { toClusterIPs } }: ChainContext): Rule[] {
  const match = matchClusterIP(traffic);
  const { origin } = traffic.clusterIP;
  switch (toClusterIPs.kind) {
    case 'all':
      return [{ args: [...match, markForMasquerade], origin }];
    case 'all-but-pods':
      return [{ args: [...match, ifNotLocal(toClusterIPs.pods), markForMasquerade], origin }];
    case 'none-known':
      return [];
  }
}

/**
 * First, with session affinity, the endpoint that has seen the client; then each endpoint with an equal chance: the
 * first of n is taken with probability 1/n, the next of the rest with 1/(n-1), and the last for sure.
 */
function targetRules(
  { port, affinitySeconds }: TrafficPlan,
  targets: readonly EndpointTarget[],
  context: ChainContext,
  chances: Chances,
): readonly Rule[] {
  const sticky: Rule[] = [];
  const spread: Rule[] = [];
  for (const [index, { endpoint, chain }] of targets.entries()) {
    const jump = jumpTo(chain);
    const origin = originOf(port, endpoint.place);
    const about = `${port.label} -> ${endpoint.label}`;
    if (affinitySeconds !== undefined) {
      const action = { kind: 'rcheck', seconds: affinitySeconds, reap: true } as const;
      sticky.push({ args: endpointArgs(context, about, { kind: 'recent', name: chain, action }, jump), origin });
    }
    const left = targets.length - index;
    const chance = left > 1 ? chances[left] : undefined;
    const args = chance ? endpointArgs(context, about, chance, jump) : endpointArgs(context, about, jump);
    spread.push({ args, origin });
  }
  return [...sticky, ...spread];
}

/** KUBE-SEP-: sends packets to one endpoint, and remembers the client where the Service has session affinity. */
function endpointRules(
  { port, affinitySeconds }: TrafficPlan,
  { endpoint, chain }: EndpointTarget,
  context: ChainContext,
): readonly Rule[] {
  const origin = originOf(port, endpoint.place);
  const rewrite: RuleArg = { kind: 'jump', target: { kind: 'dnat', address: endpoint.address, port: endpoint.port } };
  const source: RuleArg = { kind: 'source', range: endpoint.address };
  const remember: RuleArg = { kind: 'recent', name: chain, action: { kind: 'set' } };
  const send = [...(affinitySeconds === undefined ? [] : [remember]), ...protocolArgs[port.protocol], rewrite];
  return [
    // An endpoint that reaches itself would otherwise get an answer from its own address.
    { args: endpointArgs(context, port.label, source, markForMasquerade), origin },
    { args: endpointArgs(context, port.label, ...send), origin },
  ];
}

/** The arguments of a rule that names an endpoint. */
function endpointArgs(context: ChainContext, about: string, ...args: readonly RuleArg[]): readonly RuleArg[] {
  return context.endpointComments ? [comment(about), ...args] : args;
}

/** The matches for one packet in 0 (which is none's), 1, 2 and so on up to `most`. */
export function makeChances(most: number): Chances {
  return Array.from({ length: most + 1 }, (_, count) => ({ kind: 'statistic', probability: formatChance(count) }));
}

/** 1/count with ten decimals, as Go's %0.10f rounds it. */
export function formatChance(count: number): string {
  // 1/2048 is the one chance that lies halfway between two such numbers: Go takes the even one, toFixed the larger.
  return count === 2048 ? '0.0004882812' : (1 / count).toFixed(10);
}
