import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { Cluster, ServicePort } from '../../cluster/model.ts';
import { planTraffic, type TrafficPath } from '../../cluster/plan-traffic.ts';
import { maxNftComment } from '../../kube-proxy/nftables.ts';

/**
 * Service ports without endpoints whose names are too long for the comment that kube-proxy writes beside their addresses.
 * nft refuses it, and with it all else that kube-proxy wants to change: the node is left without rules.
 */
export function findLongComments({ servicePorts }: Cluster): readonly Diagnostic[] {
  const warnings = new Map<string, Diagnostic>();
  for (const port of servicePorts) {
    if (port.label.length <= maxNftComment) continue;
    const lack = lackWhereRefused(port);
    if (lack === undefined) continue;
    const details = { servicePort: port.label, lack, limit: maxNftComment };
    const warning = diagnose('long-comment', details, port.places?.port);
    warnings.set(warning.text, warning);
  }
  return [...warnings.values()];
}

/** What a node lacks that refuses packets to the port; undefined where none does. A node without a name runs no endpoint. */
function lackWhereRefused(port: ServicePort): NonNullable<TrafficPath['refusal']>['reason'] | undefined {
  const plan = planTraffic(port, { name: '', zone: '' });
  const outside = plan.externalIPs.length > 0 || plan.loadBalancerIPs.length > 0 || plan.nodePort !== undefined;
  const refusal = plan.internal.refusal ?? (outside ? plan.external.refusal : undefined);
  return refusal?.reason;
}
