import type { ServicePort } from '../../../../cluster/model.ts';
import { admitsNode, planTraffic } from '../../../../cluster/plan-traffic.ts';
import { isLoopback } from '../../../../kernel/address.ts';
import { claimedSocket, unanswered, findNodes, ofRestricted, type LintRule } from '../../rule.ts';
import type { CompiledSnapshot } from '../../../../snapshot/snapshot.ts';

export const nodeShutOut: LintRule<'node-shut-out'> = ofRestricted((service, input) => {
  const { name, written, source } = service;
  if (written.ingress.length === 0) return undefined;
  return findNodes(service, input, isOut).flatMap(({ port, node, on }) => {
    const [to] = port.loadBalancerIPs;
    if (!to) return [];
    return {
      details: { service: name, address: to.text, ...on },
      place: source.place(['spec', 'loadBalancerSourceRanges']),
      packet: { ...claimedSocket(port), from: 'node', to, node: node.nodeName, ends: unanswered } as const,
    };
  });
});

function isOut(port: ServicePort, { node }: CompiledSnapshot): boolean {
  const { firewall, hasEndpoints } = planTraffic(port, node);
  const own = node.nodeIPs[port.family];
  return firewall !== undefined && hasEndpoints && !isLoopback(own) && !admitsNode(firewall, own);
}
