import { count } from '../base/format-count.ts';
import { groupBy } from '../cluster/group-by.ts';
import { isExternallyAccessible } from '../cluster/endpoint-choice.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import type { Cluster, ServiceInfo, ServicePort } from '../cluster/model.ts';
import { familyNames, type Family, type Protocol } from '../kernel/family.ts';
import type { ForwardingMethod } from '../kernel/ipvs/ipvs.ts';

/** What there is to know of a Service port in one family, from manifests or from what a kernel shows. */
export interface PortFacts {
  readonly family: Family;
  readonly protocol: Protocol;
  /** Undefined if a kernel does not show it, as for the following fields. */
  readonly port: number | undefined;
  /** Not shown by a kernel. */
  readonly type?: ServiceInfo['type'];
  readonly addresses: readonly PortAddress[];
  readonly nodePort: number | undefined;
  readonly internalTrafficPolicy: TrafficPolicy | undefined;
  readonly externalTrafficPolicy: TrafficPolicy | undefined;
  readonly affinitySeconds: number | undefined;
  readonly sourceRanges: readonly string[];
  /** Set if packets from outside of source ranges are dropped, and nothing shows the ranges. */
  readonly hidesSourceRanges?: true | undefined;
  readonly healthCheckNodePort: number | undefined;
  readonly scheduler: string | undefined;
  /** Undefined if it is masquerading, the usual method. */
  readonly forwarding?: ForwardingMethod;
  /** The number of endpoints. */
  readonly endpoints: number | undefined;
}

/** An address of a Service; in a kernel nothing may show its kind. */
export interface PortAddress {
  readonly kind: 'cluster-ip' | 'external-ip' | 'load-balancer-ip' | 'unknown';
  readonly address: string;
}

/** The kinds of addresses in words. */
export const addressWords: { readonly [K in PortAddress['kind']]: string } = {
  'cluster-ip': 'cluster IP',
  'external-ip': 'external IP',
  'load-balancer-ip': 'load balancer address',
  unknown: 'address',
};

/** The facts of all Service ports of a cluster, by label. A Service that kube-proxy programs nothing for has its own name for one. */
export function factsOfCluster({ services, servicePorts }: Cluster): ReadonlyMap<string, readonly PortFacts[]> {
  const types = new Map(services.map(({ namespace, name, type }) => [`${namespace}/${name}`, type]));
  const byLabel = groupBy(servicePorts, ({ label }) => label);
  return new Map(
    [...byLabel].map(([label, ports]) => [
      label,
      ports.map((port) => factsOf(port, types.get(`${port.namespace}/${port.service}`))),
    ]),
  );
}

/** The facts of one Service port. */
export function factsOf(port: ServicePort, type: ServiceInfo['type'] | undefined): PortFacts {
  const addresses = (kind: PortAddress['kind'], items: readonly { readonly text: string }[]) =>
    items.map(({ text: address }) => ({ kind, address }));
  const policy = (isLocal: boolean): TrafficPolicy => (isLocal ? 'Local' : 'Cluster');
  return {
    family: port.family,
    protocol: port.protocol,
    port: port.port,
    ...(type === undefined ? {} : { type }),
    addresses: [
      ...addresses('cluster-ip', [port.clusterIP]),
      ...addresses('external-ip', port.externalIPs),
      ...addresses('load-balancer-ip', port.loadBalancerIPs),
    ],
    nodePort: port.nodePort === 0 ? undefined : port.nodePort,
    internalTrafficPolicy: policy(port.internalPolicyLocal),
    externalTrafficPolicy: isExternallyAccessible(port) ? policy(port.externalPolicyLocal) : undefined,
    affinitySeconds: port.affinitySeconds,
    sourceRanges: port.sourceRanges.map(({ text }) => text),
    healthCheckNodePort: port.healthCheckNodePort === 0 ? undefined : port.healthCheckNodePort,
    scheduler: port.scheduler,
    ...(port.forwarding === 'masquerade' ? {} : { forwarding: port.forwarding }),
    endpoints: port.endpoints.length,
  };
}

/** Policies, session affinity, source ranges and the health check, as far as they are known. */
export function describePolicies({
  sourceRanges = [],
  ...port
}: Partial<Omit<PortFacts, 'endpoints' | 'addresses'>>): readonly string[] {
  return [
    ...(port.internalTrafficPolicy === undefined ? [] : [`internalTrafficPolicy ${port.internalTrafficPolicy}`]),
    ...(port.externalTrafficPolicy === undefined ? [] : [`externalTrafficPolicy ${port.externalTrafficPolicy}`]),
    ...(port.affinitySeconds === undefined ? [] : [`session affinity by client for ${port.affinitySeconds} s`]),
    ...(port.scheduler === undefined ? [] : [`scheduler ${port.scheduler}`]),
    ...(sourceRanges.length === 0 ? [] : [`load balancer for ${sourceRanges.join(', ')} only`]),
    ...(port.hidesSourceRanges ? ['load balancer for some sources only, which are not shown'] : []),
    ...(port.healthCheckNodePort === undefined ? [] : [`health check node port ${port.healthCheckNodePort}`]),
  ];
}

/** All that is known of a Service port, item by item; what both families say alike is said once. */
export function listFacts(families: readonly PortFacts[]): readonly string[] {
  const [first] = families;
  const parts = families.flatMap((facts) => [
    ...(facts.type === undefined ? [] : [`type ${facts.type}`]),
    ...(facts.port === undefined ? [] : [`port ${facts.port}/${facts.protocol}`]),
    ...(facts.nodePort === undefined ? [] : [`node port ${facts.nodePort}/${facts.protocol}`]),
  ]);
  return [
    ...new Set([
      ...parts,
      ...families.flatMap(({ addresses }) => addresses.map(({ kind, address }) => `${addressWords[kind]} ${address}`)),
      ...families.flatMap((facts) => describePolicies(facts)),
    ]),
    ...(families.length === 1 && first?.endpoints !== undefined
      ? [countEndpoints(first.endpoints)]
      : families.flatMap(({ family, endpoints }) =>
          endpoints === undefined ? [] : [countEndpoints(endpoints, `${familyNames[family]} `)],
        )),
  ];
}

function countEndpoints(number: number, family = ''): string {
  return number === 0 ? `no ${family}endpoints` : count(number, `${family}endpoint`);
}
