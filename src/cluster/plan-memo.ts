import type { NodeIdentity, ServicePort } from './model.ts';
import { planTraffic, type TrafficPlan } from './plan-traffic.ts';

/**
 * Keeps what was planned for Service ports on one node, for the nodes after it that are no different to them. Most
 * Service ports of a large cluster are the same on nearly every node, and a run for thousands of nodes plans them once.
 * It changes no result: a plan looks at nothing of a node but its identity.
 */
export class PlanMemo {
  readonly #plans = new Map<ServicePort, Map<string, TrafficPlan>>();

  /** The plan for this port on this node, or the one made for another node that is like it. */
  recall(port: ServicePort, node: NodeIdentity): TrafficPlan {
    if (namesNode(port, node)) return planTraffic(port, node);
    const zone = namesZone(port, node) ? node.zone : '';
    let byZone = this.#plans.get(port);
    if (!byZone) this.#plans.set(port, (byZone = new Map()));
    let plan = byZone.get(zone);
    if (plan === undefined) byZone.set(zone, (plan = planTraffic(port, node)));
    return plan;
  }
}

/** Whether an endpoint runs on the node, or a hint names it. If not, the port treats the node like any other. */
function namesNode(port: ServicePort, { name }: Pick<NodeIdentity, 'name'>): boolean {
  return port.endpoints.some(({ status: { nodeName, nodeHints } }) => nodeName === name || nodeHints.includes(name));
}

/** Whether a hint names the node's zone. All nodes of a zone are then alike to the port. */
function namesZone(port: ServicePort, { zone }: Pick<NodeIdentity, 'zone'>): boolean {
  return port.endpoints.some(({ status }) => status.zoneHints.includes(zone));
}
