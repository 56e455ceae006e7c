import type { MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import {
  admittedSources,
  originOf,
  type Firewall,
  type ServiceAddress,
  type TrafficPath,
  type TrafficPlan,
  type TrafficPolicy,
} from '../../cluster/plan-traffic.ts';
import { LazyChain, type Chain, type Rule, type RuleArg, type RuleMaker } from '../../kernel/iptables/iptables.ts';
import type { Origin } from '../../kernel/place.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import {
  ifLocal,
  ifNotLocal,
  accept,
  comment,
  destinationPort,
  drop,
  fromNode,
  jumpTo,
  markForMasquerade,
  protocolArgs,
  reject,
  toNode,
} from './rule-parts.ts';
import type { EndpointTarget, IptablesPortPlan } from './plan-service-port.ts';

/** The facts besides its plan that a Service port's chains depend on. Plain data, so that ContextMemo can compare contexts. */
export interface ChainContext {
  readonly masquerade: MasqueradePlan;
  readonly endpointComments: boolean;
  readonly nodeIsAdmitted: boolean;
}

/** At index n, the match for one of n packets. All Services share these matches, because most need the same few. */
export type Chances = readonly RuleArg[];

/** Returns a Service port's own chains in table nat that are in use, in kube-proxy's order. */
export function serviceChains(plan: IptablesPortPlan, context: ChainContext, chances: Chances): readonly Chain[] {
  const { traffic, firewall } = plan;
  if (!traffic.hasEndpoints) return [];
  const origin = originOf(traffic.port, traffic.port.places?.port);
  const toEndpoints: RuleMaker<EndpointTarget> = {
    makeRules: (target) => endpointRules(traffic, target, context),
    originOf: (target) => originOf(traffic.port, target.endpoint.place),
  };
  return [
    ...(traffic.external.isUsed ? [externalChain(plan, context, origin)] : []),
    ...(firewall ? [firewallChain(plan, firewall, context, origin)] : []),
    ...policyChains(plan, context, chances, origin),
    ...plan.targets.map((target) => new LazyChain(target.chain, toEndpoints, target)),
  ];
}

/** KUBE-SVC- and KUBE-SVL-, if they have endpoints: spread packets over the endpoints of one policy. */
function policyChains(
  plan: IptablesPortPlan,
  context: ChainContext,
  chances: Chances,
  origin: Origin,
): readonly Chain[] {
  const { traffic } = plan;
  const spread: RuleMaker<TrafficPolicy> = {
    makeRules: (policy) => [
      ...(policy === traffic.internal.policy ? masqueradeInternalRules(traffic, context) : []),
      ...targetRules(traffic, plan.targetsOf[policy], context, chances),
    ],
    originOf: () => origin,
  };
  return (['Cluster', 'Local'] as const)
    .filter((policy) => plan.targetsOf[policy].length > 0)
    .map((policy) => new LazyChain(plan.chains[policy], spread, policy));
}

function externalChain(plan: IptablesPortPlan, { masquerade }: ChainContext, origin: Origin): Chain {
  const { port, external } = plan.traffic;
  const about = `${port.label} external destinations`;
  const toCluster = jumpTo(plan.chains.Cluster);
  const rules: Rule[] = [];
  switch (external.policy) {
    case 'Local':
      if (masquerade.localTraffic) {
        const args = [comment(`pod traffic for ${about}`), ifLocal(masquerade.localTraffic), toCluster];
        rules.push({ args, origin });
      }
      // Masquerade the node's own packets. A load balancer address is often also on the node, and would otherwise be their source.
      rules.push({ args: [comment(`masquerade LOCAL traffic for ${about}`), fromNode, markForMasquerade], origin });
      rules.push({ args: [comment(`route LOCAL traffic for ${about}`), fromNode, toCluster], origin });
      break;
    case 'Cluster':
      rules.push({ args: [comment(`masquerade traffic for ${about}`), markForMasquerade], origin });
  }
  if (!external.refusal) rules.push({ args: [jumpTo(plan.chains[external.policy])], origin });
  return { name: plan.chains.external, rules, origin };
}

/** KUBE-FW-: sends packets from the source ranges to KUBE-EXT-. KUBE-PROXY-FIREWALL drops all others. */
function firewallChain(
  { traffic: { port }, chains }: IptablesPortPlan,
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

/** Sends a client to the endpoint that affinity remembers, or else to any endpoint: 1/n, 1/(n-1) of the rest, and so on. */
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

/** KUBE-SEP-: sends packets to one endpoint. With session affinity, also remembers the client. */
function endpointRules(
  { port, affinitySeconds }: TrafficPlan,
  { endpoint, chain }: EndpointTarget,
  context: ChainContext,
): readonly Rule[] {
  const origin = originOf(port, endpoint.place);
  const [module, protocol] = protocolArgs[port.protocol];
  const rewrite: RuleArg = { kind: 'jump', target: { kind: 'dnat', address: endpoint.address, port: endpoint.port } };
  const source: RuleArg = { kind: 'source', range: endpoint.address };
  // Avoid spreading arrays, which takes time for so many endpoint rules.
  const send =
    affinitySeconds === undefined
      ? endpointArgs(context, port.label, module, protocol, rewrite)
      : endpointArgs(context, port.label, rememberClient(chain), module, protocol, rewrite);
  return [
    // Without this rule, an endpoint that reaches itself would get a packet from its own address.
    { args: endpointArgs(context, port.label, source, markForMasquerade), origin },
    { args: send, origin },
  ];
}

function rememberClient(chain: string): RuleArg {
  return { kind: 'recent', name: chain, action: { kind: 'set' } };
}

function endpointArgs(context: ChainContext, about: string, ...args: readonly RuleArg[]): readonly RuleArg[] {
  return context.endpointComments ? [comment(about), ...args] : args;
}

export function makeChances(most: number): Chances {
  return Array.from({ length: most + 1 }, (_, count) => ({ kind: 'statistic', probability: formatChance(count) }));
}

/** Returns 1/count with ten decimals, rounded like Go's %0.10f. */
export function formatChance(count: number): string {
  // Only 1/2048 is halfway between two numbers of ten decimals. Go rounds it to the even one, but toFixed rounds up.
  return count === 2048 ? '0.0004882812' : (1 / count).toFixed(10);
}

/** nat KUBE-SERVICES: sends packets for the port's addresses to its chains. */
export function captureRules(plan: IptablesPortPlan): readonly Rule[] {
  const { traffic, chains, firewall } = plan;
  const { label } = traffic.port;
  const rules: Rule[] = [];
  if (!traffic.internal.refusal) {
    const args = [...matchClusterIP(traffic), jumpTo(chains[traffic.internal.policy])];
    rules.push({ args, origin: traffic.clusterIP.origin });
  }
  if (!traffic.hasEndpoints) return rules;
  for (const at of traffic.externalIPs) {
    const match = matchAddress(`${label} external IP`, at);
    rules.push({ args: [...match, jumpTo(chains.external)], origin: at.origin });
  }
  const loadBalancerChain = firewall ? chains.firewall : chains.external;
  for (const at of traffic.loadBalancerIPs) {
    const match = matchAddress(`${label} loadbalancer IP`, at);
    rules.push({ args: [...match, jumpTo(loadBalancerChain)], origin: at.origin });
  }
  return rules;
}

export function captureNodePortRules({ traffic, chains }: IptablesPortPlan): readonly Rule[] {
  const { port, nodePort, hasEndpoints } = traffic;
  if (!nodePort || !hasEndpoints) return [];
  const args = [
    comment(port.label),
    ...protocolArgs[nodePort.protocol],
    destinationPort(nodePort.port),
    jumpTo(chains.external),
  ];
  return [{ args, origin: nodePort.origin }];
}

const verdicts = { reject, drop } as const;
const reasons = { 'no-endpoints': 'has no endpoints', 'no-local-endpoints': 'has no local endpoints' } as const;

function refusalWords({ port }: TrafficPlan, { refusal }: TrafficPath) {
  return refusal && { about: `${port.label} ${reasons[refusal.reason]}`, verdict: verdicts[refusal.answer] };
}

/** filter KUBE-SERVICES: refuses packets to the cluster IP if there is no endpoint for them. */
export function refuseClusterIPRules({ traffic }: IptablesPortPlan): readonly Rule[] {
  const refusal = refusalWords(traffic, traffic.internal);
  if (!refusal) return [];
  const args = [...matchAddress(refusal.about, traffic.clusterIP), refusal.verdict];
  return [{ args, origin: traffic.clusterIP.origin }];
}

/** filter KUBE-EXTERNAL-SERVICES: refuses packets to external addresses and the node port if the external chain did not redirect them. */
export function refuseExternalRules({ traffic }: IptablesPortPlan): readonly Rule[] {
  const { nodePort } = traffic;
  const refusal = refusalWords(traffic, traffic.external);
  if (!refusal) return [];
  const rules: Rule[] = [...traffic.externalIPs, ...traffic.loadBalancerIPs].map((at) => ({
    args: [...matchAddress(refusal.about, at), refusal.verdict],
    origin: at.origin,
  }));
  if (nodePort) {
    const args = [
      comment(refusal.about),
      toNode,
      ...protocolArgs[nodePort.protocol],
      destinationPort(nodePort.port),
      refusal.verdict,
    ];
    rules.push({ args, origin: nodePort.origin });
  }
  return rules;
}

export function firewallDropRules({ traffic, chains, firewall }: IptablesPortPlan): readonly Rule[] {
  if (!firewall) return [];
  const text = `${traffic.port.label} traffic not accepted by ${chains.firewall}`;
  return firewall.guarded.map((at) => ({ args: [...matchAddress(text, at), drop], origin: at.origin }));
}

/** filter KUBE-NODEPORTS: opens the health check node port, with or without endpoints on the node. */
export function healthCheckRules({ traffic: { port, healthCheck } }: IptablesPortPlan): readonly Rule[] {
  if (!healthCheck) return [];
  const args = [
    comment(`${port.label} health check node port`),
    ...protocolArgs.TCP,
    destinationPort(healthCheck.port),
    accept,
  ];
  return [{ args, origin: healthCheck.origin }];
}

function matchClusterIP({ port, clusterIP }: TrafficPlan): readonly RuleArg[] {
  return matchAddress(`${port.label} cluster IP`, clusterIP);
}

function matchAddress(text: string, { address, protocol, port }: ServiceAddress): readonly RuleArg[] {
  return [comment(text), ...protocolArgs[protocol], { kind: 'destination', range: address }, destinationPort(port)];
}
