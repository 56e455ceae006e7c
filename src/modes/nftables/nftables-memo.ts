import type { NodeIdentity, ServicePort } from '../../cluster/model.ts';
import { PlanMemo } from '../../cluster/plan-memo.ts';
import type { TrafficPlan } from '../../cluster/plan-traffic.ts';
import { serviceObjects } from './service-objects.ts';
import type { ServiceContext, ServiceObjects } from './service-parts.ts';

/** What was made of Service ports on one node, kept for the nodes after it. It changes no result. */
export class NftablesMemo {
  readonly #traffic = new PlanMemo();
  readonly #objects = new WeakMap<TrafficPlan, { readonly key: string; readonly objects: ServiceObjects }>();
  readonly #keys = new WeakMap<ServiceContext, string>();

  /** The plan of the port on the node, or the one plan of another node that is like it. */
  recallPlan(port: ServicePort, node: NodeIdentity): TrafficPlan {
    return this.#traffic.recall(port, node);
  }

  /** The plan's objects in the context, or those it had last where the context was equal. */
  recallObjects(plan: TrafficPlan, context: ServiceContext): ServiceObjects {
    const key = this.#keyOf(context);
    const known = this.#objects.get(plan);
    if (known?.key === key) return known.objects;
    const objects = serviceObjects(plan, context);
    this.#objects.set(plan, { key, objects });
    return objects;
  }

  /** The context as text: once for all Service ports, as they share it. */
  #keyOf(context: ServiceContext): string {
    let key = this.#keys.get(context);
    if (key === undefined) this.#keys.set(context, (key = JSON.stringify(context, listSets)));
    return key;
  }
}

/** JSON has no sets. */
function listSets(_: string, value: unknown): unknown {
  return value instanceof Set ? [...(value as ReadonlySet<unknown>)] : value;
}
