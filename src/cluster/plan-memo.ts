import type { NodeContext, ServicePort } from './model.ts';

/**
 * Keeps what was planned for Service ports on one node, for the nodes after it that are no different to them. Most
 * Service ports of a large cluster are the same on nearly every node, and a run for thousands of nodes plans them once.
 * It changes no result.
 */
export class PlanMemo<Plan> {
  readonly #plans = new Map<ServicePort, Map<string, Plan>>();

  /**
   * The plan that `make` makes of the port on the node, or the one that it made for another node. `make` may look at the
   * port and at the node's name and zone, and at nothing else that differs between nodes.
   */
  recall(port: ServicePort, node: Pick<NodeContext, 'name' | 'zone'>, make: () => Plan): Plan {
    if (namesNode(port, node)) return make();
    const zone = namesZone(port, node) ? node.zone : '';
    let byZone = this.#plans.get(port);
    if (!byZone) this.#plans.set(port, (byZone = new Map()));
    let plan = byZone.get(zone);
    if (plan === undefined) byZone.set(zone, (plan = make()));
    return plan;
  }
}

/** Whether an endpoint runs on the node, or a hint names it: to the port it is then like no other node. */
function namesNode(port: ServicePort, { name }: Pick<NodeContext, 'name'>): boolean {
  return port.endpoints.some(({ nodeName, nodeHints }) => nodeName === name || nodeHints.includes(name));
}

/** Whether a hint names the node's zone: to the port all nodes of that zone are alike. */
function namesZone(port: ServicePort, { zone }: Pick<NodeContext, 'zone'>): boolean {
  return port.endpoints.some(({ zoneHints }) => zoneHints.includes(zone));
}
