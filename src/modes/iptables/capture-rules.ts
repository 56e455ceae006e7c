import type { ServiceAddress, TrafficPlan } from '../../cluster/plan-traffic.ts';
import type { Rule, RuleArg } from '../../kernel/iptables.ts';
import { policyChainName, refusalWords, type ServicePortPlan } from './plan-service-port.ts';
import { accept, comment, destinationPort, drop, jumpTo, protocolArgs, toNode } from './rule-args.ts';

/** nat KUBE-SERVICES: packets to the port's addresses go to its chains. */
export function captureRules(plan: ServicePortPlan): readonly Rule[] {
  const { traffic, chains, firewall } = plan;
  const { label } = traffic.port;
  const rules: Rule[] = [];
  if (!traffic.internal.refusal) {
    const args = [...matchClusterIP(traffic), jumpTo(policyChainName(plan, traffic.internal.policy))];
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

/** nat KUBE-NODEPORTS: packets to the node port, which source ranges do not bind. */
export function captureNodePortRules({ traffic, chains }: ServicePortPlan): readonly Rule[] {
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

/** filter KUBE-SERVICES: packets to the cluster IP that no endpoint takes. */
export function refuseClusterIPRules({ traffic }: ServicePortPlan): readonly Rule[] {
  const refusal = refusalWords(traffic, traffic.internal);
  if (!refusal) return [];
  const args = [...matchAddress(refusal.comment, traffic.clusterIP), refusal.verdict];
  return [{ args, origin: traffic.clusterIP.origin }];
}

/**
 * filter KUBE-EXTERNAL-SERVICES: packets to external addresses and the node port that no endpoint takes. Those that
 * the external chain has sent on already no longer have such a destination when they get here.
 */
export function refuseExternalRules({ traffic }: ServicePortPlan): readonly Rule[] {
  const { nodePort } = traffic;
  const refusal = refusalWords(traffic, traffic.external);
  if (!refusal) return [];
  const rules: Rule[] = [...traffic.externalIPs, ...traffic.loadBalancerIPs].map((at) => ({
    args: [...matchAddress(refusal.comment, at), refusal.verdict],
    origin: at.origin,
  }));
  if (nodePort) {
    const args = [
      comment(refusal.comment),
      toNode,
      ...protocolArgs[nodePort.protocol],
      destinationPort(nodePort.port),
      refusal.verdict,
    ];
    rules.push({ args, origin: nodePort.origin });
  }
  return rules;
}

/** filter KUBE-PROXY-FIREWALL: packets to load balancer addresses that the firewall chain did not let through. */
export function firewallDropRules({ traffic, chains, firewall }: ServicePortPlan): readonly Rule[] {
  if (!firewall) return [];
  const text = `${traffic.port.label} traffic not accepted by ${chains.firewall}`;
  return firewall.guarded.map((at) => ({ args: [...matchAddress(text, at), drop], origin: at.origin }));
}

/** filter KUBE-NODEPORTS: the health check node port is open whether or not the node has endpoints. */
export function healthCheckRules({ traffic: { port, healthCheck } }: ServicePortPlan): readonly Rule[] {
  if (!healthCheck) return [];
  const args = [
    comment(`${port.label} health check node port`),
    ...protocolArgs.TCP,
    destinationPort(healthCheck.port),
    accept,
  ];
  return [{ args, origin: healthCheck.origin }];
}

/** Packets to the cluster IP and port. */
export function matchClusterIP({ port, clusterIP }: TrafficPlan): readonly RuleArg[] {
  return matchAddress(`${port.label} cluster IP`, clusterIP);
}

function matchAddress(text: string, { address, protocol, port }: ServiceAddress): readonly RuleArg[] {
  return [comment(text), ...protocolArgs[protocol], { kind: 'destination', range: address }, destinationPort(port)];
}
