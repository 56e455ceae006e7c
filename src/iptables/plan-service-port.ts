import type { EndpointChoice } from '../cluster/endpoint-choice.ts';
import { chooseEndpoints, isExternallyAccessible } from '../cluster/endpoint-choice.ts';
import type { Endpoint, NodeContext, ServicePort } from '../cluster/model.ts';
import type { RuleArg } from '../kernel/iptables.ts';
import type { Origin } from '../kernel/origin.ts';
import type { ServiceChainNames } from './chain-names.ts';
import { endpointChainName, serviceChainNames } from './chain-names.ts';
import { drop, jumpTo, reject } from './rule-args.ts';

/** What becomes of the packets to one Service port on one node: decided here, written as rules elsewhere. */
export interface ServicePortPlan {
  readonly port: ServicePort;
  /** Whether any node could serve the port. Without, it has no chains and no rules in table nat. */
  readonly hasEndpoints: boolean;
  /** Names of all chains the port may have, in use or not. */
  readonly chains: ServiceChainNames;
  /** Packets to the cluster IP. */
  readonly internal: TrafficPath;
  /** Packets to external addresses and the node port, but for those from the node and its pods. */
  readonly external: TrafficPath;
  readonly usesExternalChain: boolean;
  readonly usesFirewallChain: boolean;
  /** Empty where the port has no chain for policy Cluster. */
  readonly clusterTargets: readonly EndpointTarget[];
  /** Empty where the port has no chain for policy Local. */
  readonly localTargets: readonly EndpointTarget[];
  /** Both together, each endpoint once. */
  readonly targets: readonly EndpointTarget[];
}

/** Where the packets of one side go. */
interface TrafficPath {
  /** The chain that spreads them over endpoints; there only where nothing is refused. */
  readonly policyChain: string;
  /** Undefined where there are endpoints for them. */
  readonly refusal: Refusal | undefined;
}

/** How table filter turns away packets that no endpoint takes. */
interface Refusal {
  readonly comment: string;
  readonly verdict: RuleArg;
}

/** An endpoint with the chain that sends packets to it. */
export interface EndpointTarget {
  readonly endpoint: Endpoint;
  readonly chain: string;
  readonly jump: RuleArg;
  readonly origin: Origin;
}

/** Decides what kube-proxy's iptables proxier decides at the head of its loop over Service ports (syncProxyRules). */
export function planServicePort(port: ServicePort, node: Pick<NodeContext, 'name' | 'zone'>): ServicePortPlan {
  const choice = chooseEndpoints(port, node);
  const chains = serviceChainNames(port);
  const targets = choice.reachable.map((endpoint) => makeTarget(port, endpoint));
  return {
    port,
    hasEndpoints: choice.hasAny,
    chains,
    internal: planPath(port, choice, chains, port.internalPolicyLocal),
    external: planPath(port, choice, chains, port.externalPolicyLocal),
    // There also where no endpoint takes outside traffic: the node and its pods still get through by this chain.
    usesExternalChain: choice.hasAny && isExternallyAccessible(port),
    usesFirewallChain: choice.hasAny && port.loadBalancerIPs.length > 0 && port.sourceRanges.length > 0,
    clusterTargets: selectTargets(targets, choice.cluster),
    localTargets: selectTargets(targets, choice.local),
    targets,
  };
}

function planPath(
  port: ServicePort,
  choice: EndpointChoice,
  chains: ServiceChainNames,
  policyLocal: boolean,
): TrafficPath {
  return {
    policyChain: policyLocal ? chains.local : chains.cluster,
    refusal: planRefusal(port, choice, policyLocal),
  };
}

function planRefusal(port: ServicePort, choice: EndpointChoice, policyLocal: boolean): Refusal | undefined {
  if (!choice.hasAny) return { comment: `${port.label} has no endpoints`, verdict: reject };
  // Another node may have endpoints, so the client is left to try again rather than told that nobody is there.
  if (policyLocal && choice.local.length === 0)
    return { comment: `${port.label} has no local endpoints`, verdict: drop };
  return undefined;
}

function makeTarget(port: ServicePort, endpoint: Endpoint): EndpointTarget {
  const chain = endpointChainName(port, endpoint.label);
  const origin = { servicePort: port.label, place: endpoint.place };
  return { endpoint, chain, jump: jumpTo(chain), origin };
}

function selectTargets(targets: readonly EndpointTarget[], chosen: readonly Endpoint[]): readonly EndpointTarget[] {
  if (chosen.length === targets.length) return targets;
  const wanted = new Set(chosen);
  return targets.filter(({ endpoint }) => wanted.has(endpoint));
}
