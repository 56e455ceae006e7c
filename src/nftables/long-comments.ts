import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { Cluster, ServicePort } from '../cluster/model.ts';
import { planTraffic } from '../cluster/plan-traffic.ts';
import type { TrafficPath } from '../cluster/plan-traffic.ts';
import { maxNftComment } from '../kube-proxy/nftables.ts';

/**
 * Service ports without endpoints whose names are too long for the comment that kube-proxy writes beside their addresses.
 * nft refuses it, and with it all else that kube-proxy wants to change: the node is left without rules.
 */
export function findLongComments({ servicePorts }: Cluster): readonly Diagnostic[] {
  const warnings = new Map<string, Diagnostic>();
  for (const port of servicePorts) {
    if (port.label.length <= maxNftComment) continue;
    const where = whereRefused(port);
    if (where === undefined) continue;
    const text =
      `${port.label}: kube-proxy writes this name of ${port.label.length} bytes as a comment on nodes where the Service has ${where}, ` +
      `but nft takes ${maxNftComment} and refuses all rules with it; kpc cuts the comment. Shorten the names`;
    warnings.set(text, { severity: 'warning', code: 'long-comment', text, place: port.places?.port });
  }
  return [...warnings.values()];
}

const words: { readonly [R in NonNullable<TrafficPath['refusal']>['reason']]: string } = {
  'no-endpoints': 'no endpoints',
  'no-local-endpoints': 'no local endpoints',
};

/** What a node lacks that refuses packets to the port; undefined where none does. A node without a name runs no endpoint. */
function whereRefused(port: ServicePort): string | undefined {
  const plan = planTraffic(port, { name: '', zone: '' });
  const outside = plan.externalIPs.length > 0 || plan.loadBalancerIPs.length > 0 || plan.nodePort !== undefined;
  const refusal = plan.internal.refusal ?? (outside ? plan.external.refusal : undefined);
  return refusal && words[refusal.reason];
}
