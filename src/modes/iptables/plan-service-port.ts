import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import type { Firewall, TrafficPath, TrafficPlan, TrafficPolicy } from '../../cluster/plan-traffic.ts';
import type { RuleArg } from '../../kernel/iptables/iptables.ts';
import { drop, reject } from './rule-args.ts';
import { hashName, prefixedHash } from '../../base/hash-name.ts';
import { serviceChainName } from '../../kube-proxy/chain-names.ts';

/** Where the packets to one Service port go on one node, with the names of its chains. */
export interface ServicePortPlan {
  readonly traffic: TrafficPlan;
  /** Names of all chains the port may have, in use or not. */
  readonly chains: ServiceChainNames;
  /** What the firewall chain checks: nothing without endpoints, as all packets are refused then. */
  readonly firewall: Firewall | undefined;
  readonly clusterTargets: readonly EndpointTarget[];
  readonly localTargets: readonly EndpointTarget[];
  /** Both together, each endpoint once. */
  readonly targets: readonly EndpointTarget[];
}

/** An endpoint with the chain that sends packets to it. */
export interface EndpointTarget {
  readonly endpoint: Endpoint;
  readonly chain: string;
}

/** Names the chains of a Service port and its endpoints. */
export function planServicePort(traffic: TrafficPlan): ServicePortPlan {
  const { port, reachable, clusterEndpoints, localEndpoints } = traffic;
  const nameChain = endpointChainNames(port);
  const targets = reachable.map((endpoint) => ({ endpoint, chain: nameChain(endpoint.label) }));
  return {
    traffic,
    chains: serviceChainNames(port),
    firewall: traffic.hasEndpoints ? traffic.firewall : undefined,
    clusterTargets: selectTargets(targets, clusterEndpoints),
    localTargets: selectTargets(targets, localEndpoints),
    targets,
  };
}

/** The chain that spreads the packets of a policy over its endpoints; there only where it has some. */
export function policyChainName({ chains }: ServicePortPlan, policy: TrafficPolicy): string {
  switch (policy) {
    case 'Cluster':
      return chains.cluster;
    case 'Local':
      return chains.local;
  }
}

/** How table filter turns away packets that no endpoint takes. */
export interface RefusalWords {
  readonly comment: string;
  readonly verdict: RuleArg;
}

const verdicts = { reject, drop } as const;
const reasons = { 'no-endpoints': 'has no endpoints', 'no-local-endpoints': 'has no local endpoints' } as const;

/** How a path's packets are turned away; undefined where they are not. */
export function refusalWords({ port }: TrafficPlan, { refusal }: TrafficPath): RefusalWords | undefined {
  return refusal && { comment: `${port.label} ${reasons[refusal.reason]}`, verdict: verdicts[refusal.answer] };
}

function selectTargets(targets: readonly EndpointTarget[], chosen: readonly Endpoint[]): readonly EndpointTarget[] {
  if (chosen.length === targets.length) return targets;
  const wanted = new Set(chosen);
  return targets.filter(({ endpoint }) => wanted.has(endpoint));
}

/** The chains that a Service port may have: see serviceChainName. */
export interface ServiceChainNames {
  readonly cluster: string;
  readonly local: string;
  readonly external: string;
  readonly firewall: string;
}

/** The names of a Service port's chains: a prefix and a hash of its label and protocol (kube-proxy's portProtoHash). */
export function serviceChainNames(port: Pick<ServicePort, 'label' | 'protocol'>): ServiceChainNames {
  const hash = hashName(port.label + port.protocol.toLowerCase(), 16);
  return {
    cluster: serviceChainName('cluster', hash),
    local: serviceChainName('local', hash),
    external: serviceChainName('external', hash),
    firewall: serviceChainName('firewall', hash),
  };
}

/** The names of the chains that send a Service port's packets to one endpoint each ("ip:port", servicePortEndpointChainName). */
export function endpointChainNames(port: Pick<ServicePort, 'label' | 'protocol'>): (endpointLabel: string) => string {
  const prefix = serviceChainName('endpoint', '');
  const start = port.label + port.protocol.toLowerCase();
  return (endpointLabel) => prefixedHash(prefix, start + endpointLabel);
}
