import { PlanMemo } from '../cluster/plan-memo.ts';
import type { Chain } from '../kernel/iptables.ts';
import type { ServicePortPlan } from './plan-service-port.ts';
import type { ChainContext } from './service-chains.ts';

/** What was made of Service ports on one node, kept for the nodes after it. It changes no result. */
export class IptablesMemo {
  readonly plans = new PlanMemo<ServicePortPlan>();
  readonly #chains = new WeakMap<ServicePortPlan, { readonly context: string; readonly chains: readonly Chain[] }>();

  /** The chains that `make` makes of the plan in the context, or those it made last where the context was no other. */
  recallChains(plan: ServicePortPlan, context: ChainContext, make: () => readonly Chain[]): readonly Chain[] {
    const { masqueradeAll, localTraffic, endpointComments, nodeIP } = context;
    // The node's own address tells one source range from another, and is seen nowhere else.
    const address = plan.usesFirewallChain ? nodeIP.text : '';
    const key = JSON.stringify([masqueradeAll, localTraffic, endpointComments, address]);
    const known = this.#chains.get(plan);
    if (known?.context === key) return known.chains;
    const chains = make();
    this.#chains.set(plan, { context: key, chains });
    return chains;
  }
}
