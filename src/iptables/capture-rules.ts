import type { ServicePort, ServicePortPlaces } from '../cluster/model.ts';
import type { Address } from '../kernel/address.ts';
import type { Rule, RuleArg } from '../kernel/iptables.ts';
import type { Origin, Place } from '../kernel/origin.ts';
import type { ServicePortPlan } from './plan-service-port.ts';
import { accept, comment, destinationPort, drop, jumpTo, protocolArgs, toNode } from './rule-args.ts';

/** An address of a Service port from outside, with what is written about it. */
interface ExternalAddress {
  readonly address: Address;
  readonly origin: Origin;
}

/** nat KUBE-SERVICES: packets to the port's addresses go to its chains. */
export function captureRules(plan: ServicePortPlan): readonly Rule[] {
  const { port, chains } = plan;
  const rules: Rule[] = [];
  if (!plan.internal.refusal) {
    const args = [...matchClusterIP(port), jumpTo(plan.internal.policyChain)];
    rules.push({ args, origin: originOf(port, (places) => places.clusterIP) });
  }
  if (!plan.hasEndpoints) return rules;
  for (const { address, origin } of externalIPs(port)) {
    rules.push({
      args: [...matchAddress(port, `${port.label} external IP`, address), jumpTo(chains.external)],
      origin,
    });
  }
  const loadBalancerChain = plan.usesFirewallChain ? chains.firewall : chains.external;
  for (const { address, origin } of loadBalancerIPs(port)) {
    const match = matchAddress(port, `${port.label} loadbalancer IP`, address);
    rules.push({ args: [...match, jumpTo(loadBalancerChain)], origin });
  }
  return rules;
}

/** nat KUBE-NODEPORTS: packets to the node port, which source ranges do not bind. */
export function captureNodePortRules({ port, chains, hasEndpoints }: ServicePortPlan): readonly Rule[] {
  if (port.nodePort === 0 || !hasEndpoints) return [];
  const args = [
    comment(port.label),
    ...protocolArgs[port.protocol],
    destinationPort(port.nodePort),
    jumpTo(chains.external),
  ];
  return [{ args, origin: originOf(port, (places) => places.nodePort) }];
}

/** filter KUBE-SERVICES: packets to the cluster IP that no endpoint takes. */
export function refuseClusterIPRules({ port, internal: { refusal } }: ServicePortPlan): readonly Rule[] {
  if (!refusal) return [];
  const args = [...matchAddress(port, refusal.comment, port.clusterIP), refusal.verdict];
  return [{ args, origin: originOf(port, (places) => places.clusterIP) }];
}

/**
 * filter KUBE-EXTERNAL-SERVICES: packets to external addresses and the node port that no endpoint takes. Those that
 * the external chain has sent on already no longer have such a destination when they get here.
 */
export function refuseExternalRules({ port, external: { refusal } }: ServicePortPlan): readonly Rule[] {
  if (!refusal) return [];
  const rules: Rule[] = [...externalIPs(port), ...loadBalancerIPs(port)].map(({ address, origin }) => ({
    args: [...matchAddress(port, refusal.comment, address), refusal.verdict],
    origin,
  }));
  if (port.nodePort !== 0) {
    const args = [
      comment(refusal.comment),
      toNode,
      ...protocolArgs[port.protocol],
      destinationPort(port.nodePort),
      refusal.verdict,
    ];
    rules.push({ args, origin: originOf(port, (places) => places.nodePort) });
  }
  return rules;
}

/** filter KUBE-PROXY-FIREWALL: packets to load balancer addresses that the firewall chain did not let through. */
export function firewallDropRules({ port, chains, usesFirewallChain }: ServicePortPlan): readonly Rule[] {
  if (!usesFirewallChain) return [];
  const text = `${port.label} traffic not accepted by ${chains.firewall}`;
  return loadBalancerIPs(port).map(({ address, origin }) => ({
    args: [...matchAddress(port, text, address), drop],
    origin,
  }));
}

/** filter KUBE-NODEPORTS: the health check node port is open whether or not the node has endpoints. */
export function healthCheckRules({ port }: ServicePortPlan): readonly Rule[] {
  if (port.healthCheckNodePort === 0) return [];
  const args = [
    comment(`${port.label} health check node port`),
    ...protocolArgs.TCP,
    destinationPort(port.healthCheckNodePort),
    accept,
  ];
  return [{ args, origin: originOf(port, (places) => places.port) }];
}

/** Packets to the cluster IP and port. */
export function matchClusterIP(port: ServicePort): readonly RuleArg[] {
  return matchAddress(port, `${port.label} cluster IP`, port.clusterIP);
}

/** Why a rule or chain of a Service port is there. */
export function originOf(port: ServicePort, place: (places: ServicePortPlaces) => Place): Origin {
  return { servicePort: port.label, place: port.places && place(port.places) };
}

function matchAddress(port: ServicePort, text: string, address: Address): readonly RuleArg[] {
  return [
    comment(text),
    ...protocolArgs[port.protocol],
    { kind: 'destination', cidr: address.text },
    destinationPort(port.port),
  ];
}

function externalIPs(port: ServicePort): readonly ExternalAddress[] {
  return port.externalIPs.map((address, index) => ({
    address,
    origin: originOf(port, (places) => places.externalIP(index)),
  }));
}

function loadBalancerIPs(port: ServicePort): readonly ExternalAddress[] {
  return port.loadBalancerIPs.map((address, index) => ({
    address,
    origin: originOf(port, (places) => places.ingress(index)),
  }));
}
