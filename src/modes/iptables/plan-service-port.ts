import { hashName, prefixedHash } from '../../base/hash-name.ts';
import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import type { Firewall, TrafficPlan, TrafficPolicy } from '../../cluster/plan-traffic.ts';
import { serviceChainName } from '../../kube-proxy/chain-names.ts';

export interface IptablesPortPlan {
  readonly traffic: TrafficPlan;
  readonly chains: ReturnType<typeof serviceChainNames>;
  /** The checks of the firewall chain. Undefined without endpoints, because all packets are refused in this case. */
  readonly firewall: Firewall | undefined;
  readonly targetsOf: { readonly [P in TrafficPolicy]: readonly EndpointTarget[] };
  readonly targets: readonly EndpointTarget[];
}

export interface EndpointTarget {
  readonly endpoint: Endpoint;
  readonly chain: string;
}

export function planServicePort(traffic: TrafficPlan): IptablesPortPlan {
  const { port, reachable, clusterEndpoints, localEndpoints } = traffic;
  const nameChain = endpointChainNames(port);
  const targets = reachable.map((endpoint) => ({ endpoint, chain: nameChain(endpoint.label) }));
  return {
    traffic,
    chains: serviceChainNames(port),
    firewall: traffic.hasEndpoints ? traffic.firewall : undefined,
    targetsOf: { Cluster: selectTargets(targets, clusterEndpoints), Local: selectTargets(targets, localEndpoints) },
    targets,
  };
}

function selectTargets(targets: readonly EndpointTarget[], chosen: readonly Endpoint[]): readonly EndpointTarget[] {
  if (chosen.length === targets.length) return targets;
  const wanted = new Set(chosen);
  return targets.filter(({ endpoint }) => wanted.has(endpoint));
}

/** Returns chain names: a prefix and a hash of label and protocol (portProtoHash). Names chains that spread packets by policy. */
export function serviceChainNames(port: Pick<ServicePort, 'label' | 'protocol'>) {
  const hash = hashName(port.label + port.protocol.toLowerCase(), 16);
  return {
    Cluster: serviceChainName('cluster', hash),
    Local: serviceChainName('local', hash),
    external: serviceChainName('external', hash),
    firewall: serviceChainName('firewall', hash),
  };
}

/** Returns a function that names the chain of an endpoint ("ip:port") of the Service port (servicePortEndpointChainName). */
export function endpointChainNames(port: Pick<ServicePort, 'label' | 'protocol'>): (endpointLabel: string) => string {
  const prefix = serviceChainName('endpoint', '');
  const start = port.label + port.protocol.toLowerCase();
  return (endpointLabel) => prefixedHash(prefix, start + endpointLabel);
}
