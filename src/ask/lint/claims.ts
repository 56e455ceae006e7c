import type { ServicePort } from '../../cluster/model.ts';
import { planTraffic } from '../../cluster/plan-traffic.ts';
import { isLoopback } from '../../kernel/address.ts';
import type { PacketClaim, PacketEnd } from './rule.ts';
import type { LintInput } from './lint-input.ts';

/** The ends of a packet that reaches no endpoint, or one whose answer does not come back. */
export const unanswered: readonly PacketEnd[] = ['dropped', 'refused', 'fails'];

/** Whether it has an endpoint that takes connections, on whatever node. */
export function isServed(port: ServicePort): boolean {
  return planTraffic(port, { name: '', zone: '' }).hasEndpoints;
}

export function socketOf({
  port,
  protocol,
}: Pick<ServicePort, 'port' | 'protocol'>): Pick<PacketClaim, 'port' | 'protocol'> {
  return { port, protocol };
}

/** A packet to the cluster IP, which gets no endpoint on any node. kpc knows the node's own address in any input. */
export function refused(port: ServicePort, { nodes }: LintInput): PacketClaim {
  return { ...socketOf(port), from: 'node', to: port.clusterIP, node: nodes[0]?.name ?? '', ends: unanswered };
}

/** A packet of a client to a node port, which it sends on; undefined if no node's address is known. */
export function toNodePort(port: ServicePort, { nodes }: LintInput): PacketClaim | undefined {
  const node = nodes.find(({ context }) => !isLoopback(context.nodeIPs[port.family]));
  if (!node) return undefined;
  const to = node.context.nodeIPs[port.family];
  return { from: 'external', to, port: port.nodePort, protocol: port.protocol, node: node.name, ends: ['delivered'] };
}
