import { detectLocalTraffic } from '../../../../cluster/plan-masquerade.ts';
import type { ProxySettings } from '../../../../cluster/objects.ts';
import { planTraffic } from '../../../../cluster/plan-traffic.ts';
import type { Family } from '../../../../kernel/address.ts';
import { modeFacts } from '../../../../kube-proxy/modes.ts';
import { namesMode } from '../../lint-input.ts';
import { claimedSocket, unanswered, findNodes, isRefusedForLack, ofServices, type LintRule } from '../../rule.ts';

/** Finds externalTrafficPolicy Local on nodes where kube-proxy cannot recognise Pods and so treats them as outside clients. */
export const undetectedPods: LintRule<'undetected-pods'> = ofServices((service, input) => {
  const { loaded } = input;
  const { settings } = loaded;
  // Only a configuration shows how kube-proxy recognises Pods.
  if (!namesMode(loaded) || !loaded.configured || !service.knowsEndpoints) return undefined;
  if (modeFacts[settings.mode].localWithoutEndpoints !== 'local-drops') return undefined;
  const { spec, ingress } = service.written;
  if (spec.externalTrafficPolicy !== 'Local' || ingress.length + spec.externalIPs.length === 0) return undefined;
  const gaps = findNodes(service, input, (port, node) => {
    const isReached = port.loadBalancerIPs.length + port.externalIPs.length > 0;
    if (!isReached || detectLocalTraffic(node.settings, node.node, port.family)) return false;
    return isRefusedForLack(planTraffic(port, node.node).external);
  });
  return gaps.flatMap(({ port, node, on }) => {
    const to = port.loadBalancerIPs[0] ?? port.externalIPs[0];
    if (!to) return [];
    return {
      details: { service: service.name, address: to.text, lacks: lackOfNetwork(settings, port.family), ...on },
      place: service.source.place(['spec', 'externalTrafficPolicy']),
      packet: { ...claimedSocket(port), from: 'pod', to, node: node.nodeName, ends: unanswered } as const,
    };
  });
});

/** Returns what the mode lacks: all Pod networks, or only networks of this family. */
function lackOfNetwork({ detectLocal: { mode }, clusterCIDRs }: ProxySettings, family: Family) {
  if (mode === 'NodeCIDR') return 'podCIDRs';
  return clusterCIDRs.length === 0 ? 'clusterCIDR' : family;
}
