import type { AssignedService } from '../../cluster/assign-addresses.ts';
import {
  chooseEndpoints,
  isExternallyAccessible,
  usesLocalEndpoints,
  type EndpointChoice,
} from '../../cluster/endpoint-choice.ts';
import { heldClusterIPs, type ServiceInfo, type ServicePort } from '../../cluster/model.ts';
import { fullName } from '../../cluster/objects.ts';
import { faultsOfPort } from '../../snapshot/faults.ts';
import { families } from '../../kernel/address.ts';
import type { CompiledSnapshot, PortFault } from '../../snapshot/snapshot.ts';

export type UnusualPolicy = 'internal-local' | 'external-local' | 'client-ip' | 'source-ranges';

export type Oddity =
  | {
      readonly kind:
        | 'no-cluster-ip'
        | 'other-proxy'
        | 'headless-label'
        | 'endpoints-not-given'
        | 'none-on-node'
        | 'no-load-balancer-address';
    }
  /** `fault`: why there are no endpoints, if the input shows it. */
  | { readonly kind: 'no-endpoints'; readonly fault: PortFault | undefined }
  | { readonly kind: 'family-without-endpoints'; readonly fault: PortFault };

export interface ListedService {
  readonly service: ServiceInfo;
  readonly clusterIPs: readonly string[];
  readonly loadBalancerIPs: readonly string[];
  readonly externalIPs: readonly string[];
  /** Undefined if the Service cannot have endpoints. */
  readonly endpoints: ReturnType<typeof countByAddress> | 'not-given';
  readonly policies: readonly UnusualPolicy[];
  readonly oddities: readonly Oddity[];
  readonly assumed: AssignedService | undefined;
}

export function listKnownServices(view: CompiledSnapshot): readonly ListedService[] {
  const { cluster, node, assumed } = view;
  const chosen = new Map(assumed.services.map((each) => [each.service, each]));
  return cluster.services.map((service) => {
    const ports = cluster.addresses.portsOf(fullName(service));
    const choices = ports.map((port) => chooseEndpoints(port, node));
    const oddities = findOddities(service, ports, choices, view);
    const isGiven = oddities.every(({ kind }) => kind !== 'endpoints-not-given');
    return {
      service,
      clusterIPs: heldClusterIPs(service),
      loadBalancerIPs: distinctTexts(ports.flatMap(({ loadBalancerIPs }) => loadBalancerIPs)),
      externalIPs: distinctTexts(ports.flatMap(({ externalIPs }) => externalIPs)),
      endpoints: isGiven ? countByAddress(service, ports, choices, assumed.pods) : 'not-given',
      policies: policiesOf(ports),
      oddities,
      assumed: chosen.get(fullName(service)),
    };
  });
}

function distinctTexts(addresses: readonly { readonly text: string }[]): readonly string[] {
  return [...new Set(addresses.map(({ text }) => text))];
}

/**
 * Counts the addresses of a Service's endpoints: all, ready, used by the node, and those of assumed Pods. Undefined if the Service cannot
 * have endpoints. If a Pod has an address in each family, the two count as one.
 */
function countByAddress(
  { skipped, headlessEndpoints }: ServiceInfo,
  ports: readonly ServicePort[],
  choices: readonly EndpointChoice[],
  assumedPods: ReadonlySet<string>,
) {
  if (skipped === 'headless') {
    const ready = headlessEndpoints.filter((each) => each.ready).length;
    const assumed = headlessEndpoints.filter(({ address }) => assumedPods.has(address)).length || undefined;
    return { used: ready, ready, total: headlessEndpoints.length, assumed };
  }
  if (ports.length === 0) return undefined;
  const counts = families.map((family) => {
    const distinct = (some: ServicePort['endpoints']): number =>
      distinctTexts(some.flatMap(({ address }) => (address.family === family ? address : []))).length;
    const all = ports.flatMap(({ endpoints }) => endpoints);
    return {
      used: distinct(choices.flatMap(({ reachable }) => reachable)),
      ready: distinct(all.filter(({ status }) => status.ready)),
      total: distinct(all),
      assumed: distinct(all.filter(({ status }) => status.assumed)) || undefined,
    };
  });
  return counts.reduce((a, b) => (b.total > a.total ? b : a));
}

function policiesOf(ports: readonly ServicePort[]): readonly UnusualPolicy[] {
  const policies = ports.flatMap((port) => [
    ...(port.internalPolicyLocal ? ['internal-local' as const] : []),
    ...(port.externalPolicyLocal && isExternallyAccessible(port) ? ['external-local' as const] : []),
    ...(port.affinitySeconds > 0 ? ['client-ip' as const] : []),
    ...(port.sourceRanges.length > 0 ? ['source-ranges' as const] : []),
  ]);
  return [...new Set(policies)];
}

function findOddities(
  service: ServiceInfo,
  ports: readonly ServicePort[],
  choices: readonly EndpointChoice[],
  view: CompiledSnapshot,
): readonly Oddity[] {
  const isUnserved =
    service.skipped === 'headless'
      ? !service.headlessEndpoints.some(({ ready }) => ready)
      : ports.length > 0 && choices.every(({ hasAny }) => !hasAny);
  const lacksLocal = ports.some((port, i) => {
    const choice = choices[i];
    return !view.anyOf && usesLocalEndpoints(port) && choice?.hasAny && choice.local.length === 0;
  });
  const isPending =
    service.type === 'LoadBalancer' &&
    ports.length > 0 &&
    ports.every(({ loadBalancerIPs }) => loadBalancerIPs.length === 0);
  return [
    ...(service.skipped === undefined || service.skipped === 'headless' || service.skipped === 'external-name'
      ? []
      : [{ kind: service.skipped }]),
    ...(isUnserved ? [whyUnserved(service, ports, view)] : lackedFamilies(service, view)),
    ...(lacksLocal ? [{ kind: 'none-on-node' } as const] : []),
    ...(isPending ? [{ kind: 'no-load-balancer-address' } as const] : []),
  ];
}

function whyUnserved(service: ServiceInfo, ports: readonly ServicePort[], view: CompiledSnapshot): Oddity {
  const isHeadless = service.skipped === 'headless';
  const faults = isHeadless ? view.faultsOf(fullName(service)) : ports.flatMap((port) => faultsOfPort(port, view));
  const fault = faults.find(({ code }) => code !== 'family-without-endpoints');
  const isUngiven = service.endpointsGiven === false && fault?.code !== 'no-node-fits';
  return isUngiven ? { kind: 'endpoints-not-given' } : { kind: 'no-endpoints', fault };
}

function lackedFamilies(service: ServiceInfo, view: CompiledSnapshot): readonly Oddity[] {
  const faults = view.faultsOf(fullName(service));
  return faults.flatMap((fault) => (fault.code === 'family-without-endpoints' ? [{ kind: fault.code, fault }] : []));
}
