import type { NodeIdentity, ServicePort } from './model.ts';
import { planTraffic, type TrafficPlan } from './plan-traffic.ts';

/** Keeps each subject's last result and its context, which must be plain data. Results are the same without it. */
export class ContextMemo<Subject extends object, Made> {
  readonly #made = new WeakMap<Subject, { readonly key: string; readonly made: Made }>();
  readonly #keys = new WeakMap<object, string>();

  recall(subject: Subject, context: object, make: () => Made): Made {
    const key = this.#keyOf(context);
    const known = this.#made.get(subject);
    if (known?.key === key) return known.made;
    const made = make();
    this.#made.set(subject, { key, made });
    return made;
  }

  /** Makes the key once for all subjects that share a context. */
  #keyOf(context: object): string {
    let key = this.#keys.get(context);
    if (key === undefined) this.#keys.set(context, (key = JSON.stringify(context, listSets)));
    return key;
  }
}

/** JSON has no sets, so they become lists. */
function listSets(_: string, value: unknown): unknown {
  return value instanceof Set ? [...(value as ReadonlySet<unknown>)] : value;
}

/** Reuses a Service port's plan for equivalent nodes, nearly all in a large cluster. Safe: a plan depends only on the node's identity. */
export class PlanMemo {
  readonly #plans = new Map<ServicePort, Map<string, TrafficPlan>>();

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

/** If not, the node is like any other for this port. */
function namesNode(port: ServicePort, { name }: Pick<NodeIdentity, 'name'>): boolean {
  return port.endpoints.some(({ status: { nodeName, nodeHints } }) => nodeName === name || nodeHints.includes(name));
}

/** If so, all nodes of that zone are equivalent for the port. */
function namesZone(port: ServicePort, { zone }: Pick<NodeIdentity, 'zone'>): boolean {
  return port.endpoints.some(({ status }) => status.zoneHints.includes(zone));
}
