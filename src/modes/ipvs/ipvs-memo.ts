import { isExternallyAccessible } from '../../cluster/endpoint-choice.ts';
import type { NodeIdentity, ServicePort } from '../../cluster/model.ts';
import { PlanMemo } from '../../cluster/plan-memo.ts';
import type { TrafficPlan } from '../../cluster/plan-traffic.ts';
import { planInternal, planServicePort, type FamilyNode, type ServicePortPlan } from './plan-service-port.ts';

/** What was made of Service ports on one node, kept for the nodes after it. It changes no result. */
export class IpvsMemo {
  readonly #traffic = new PlanMemo();
  readonly #internal = new WeakMap<TrafficPlan, { readonly scheduler: string; readonly plan: ServicePortPlan }>();

  /** The plan of the port on the node, or where the node's addresses have no part in it, that of a node like it. */
  recallPlan(port: ServicePort, node: NodeIdentity, on: FamilyNode): ServicePortPlan {
    const traffic = this.#traffic.recall(port, node);
    return isExternallyAccessible(port) ? planServicePort(traffic, on) : this.#recallInternal(traffic, on.scheduler);
  }

  #recallInternal(traffic: TrafficPlan, scheduler: string): ServicePortPlan {
    const known = this.#internal.get(traffic);
    if (known?.scheduler === scheduler) return known.plan;
    const plan = planInternal(traffic, scheduler);
    this.#internal.set(traffic, { scheduler, plan });
    return plan;
  }
}
