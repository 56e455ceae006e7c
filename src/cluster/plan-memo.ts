import type { NodeIdentity, ServicePort } from './model.ts';
import { planTraffic, type TrafficPlan } from './plan-traffic.ts';

/**
 * Reuses a Service port's plan for later nodes that would get the same plan. In a large cluster most Service ports are the
 * same on nearly every node, and a run for thousands of nodes plans them once. Results are the same without it: a plan depends on
 * nothing of the node but its identity.
 */
export class PlanMemo {
  readonly #plans = new Map<ServicePort, Map<string, TrafficPlan>>();

  /** The plan for this port on this node, or one made for an equivalent node. */
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

/** Whether an endpoint runs on the node, or a hint names it. If not, the node is like any other for this port. */
function namesNode(port: ServicePort, { name }: Pick<NodeIdentity, 'name'>): boolean {
  return port.endpoints.some(({ status: { nodeName, nodeHints } }) => nodeName === name || nodeHints.includes(name));
}

/** Whether a hint names the node's zone. If so, all nodes of that zone are equivalent for the port. */
function namesZone(port: ServicePort, { zone }: Pick<NodeIdentity, 'zone'>): boolean {
  return port.endpoints.some(({ status }) => status.zoneHints.includes(zone));
}
