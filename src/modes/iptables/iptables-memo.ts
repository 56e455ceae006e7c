import type { NodeIdentity, ServicePort } from '../../cluster/model.ts';
import { PlanMemo } from '../../cluster/plan-memo.ts';
import type { TrafficPlan } from '../../cluster/plan-traffic.ts';
import type { Chain } from '../../kernel/iptables.ts';
import { planServicePort, type ServicePortPlan } from './plan-service-port.ts';
import { serviceChains, type ChainContext, type Chances } from './service-chains.ts';

/** What was made of Service ports on one node, kept for the nodes after it. It changes no result. */
export class IptablesMemo {
  readonly #traffic = new PlanMemo();
  readonly #plans = new WeakMap<TrafficPlan, ServicePortPlan>();
  readonly #chains = new WeakMap<ServicePortPlan, { readonly key: string; readonly chains: readonly Chain[] }>();
  readonly #keys = new WeakMap<ChainContext, string>();

  /** The plan of the port on the node, or the one plan of another node that is like it. */
  recallPlan(port: ServicePort, node: NodeIdentity): ServicePortPlan {
    const traffic = this.#traffic.recall(port, node);
    let plan = this.#plans.get(traffic);
    if (!plan) this.#plans.set(traffic, (plan = planServicePort(traffic)));
    return plan;
  }

  /** The plan's chains in the context, or those it had last where the context was equal. */
  recallChains(plan: ServicePortPlan, context: ChainContext, chances: Chances): readonly Chain[] {
    const key = this.#keyOf(context);
    const known = this.#chains.get(plan);
    if (known?.key === key) return known.chains;
    const chains = serviceChains(plan, context, chances);
    this.#chains.set(plan, { key, chains });
    return chains;
  }

  /** The context as text: once for all Service ports, as they share it. */
  #keyOf(context: ChainContext): string {
    let key = this.#keys.get(context);
    if (key === undefined) this.#keys.set(context, (key = JSON.stringify(context)));
    return key;
  }
}
