import {
  chooseEndpoints,
  explainEndpoints,
  explainUnboundHints,
  isExternallyAccessible,
  usesLocalEndpoints,
  type EndpointReason,
  type EndpointUse,
  type UnboundHints,
} from '../cluster/endpoint-choice.ts';
import type { AssignedService } from '../cluster/assign-addresses.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { ServiceInfo, ServicePort } from '../cluster/model.ts';
import { withoutName } from './service-table.ts';
import { conditionOf } from '../diff/service-changes.ts';
import type { Family } from '../kernel/family.ts';
import type { Location } from '../kernel/place.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import type { DecompiledPort, Masquerade } from './decompiled-port.ts';
import { dnsRecords, type DnsRecord, environmentVariables, type EnvironmentVariable } from './service-discovery.ts';
import { collectKernelItems, type KernelItem } from './kernel-items.ts';
import type { View } from './described-node.ts';

/** All there is to say of one Service, as data. */
export interface ServiceDescription {
  /** "namespace/name". */
  readonly service: string;
  readonly type: ServiceInfo['type'];
  /** Why kube-proxy programs nothing for it. */
  readonly skipped?: NonNullable<ServiceInfo['skipped']>;
  readonly clusterIPs: readonly string[];
  /** What kpc chose of all this, as the input lacks it. */
  readonly assumed?: Omit<AssignedService, 'service'>;
  readonly place?: Location;
  readonly ports: readonly PortDescription[];
  readonly dns: readonly DnsRecord[];
  readonly environment: readonly EnvironmentVariable[];
}

/** One Service port: what kube-proxy knows of it in each family, and what it becomes in the kernel. */
export interface PortDescription {
  /** "namespace/name:port". */
  readonly label: string;
  readonly place?: Location;
  readonly families: readonly PortInFamily[];
  readonly kernel: readonly KernelItem[];
}

export interface PortInFamily {
  readonly family: Family;
  readonly protocol: ServicePort['protocol'];
  readonly port: number;
  readonly clusterIP: string;
  readonly nodePort?: number;
  readonly externalIPs: readonly string[];
  readonly loadBalancerIPs: readonly string[];
  readonly sourceRanges: readonly string[];
  readonly internalTrafficPolicy: 'Cluster' | 'Local';
  /** Absent where nothing but the cluster IP leads to it. */
  readonly externalTrafficPolicy?: 'Cluster' | 'Local';
  readonly affinitySeconds?: number;
  readonly healthCheckNodePort?: number;
  readonly endpoints: readonly EndpointDescription[];
  /** What becomes of traffic that no endpoint is chosen for. */
  readonly fallback?: 'no-endpoints-given' | NonNullable<DecompiledPort['fallback']>;
  /** Why the endpoints' zone hints count for nothing on this node. */
  readonly unboundHints?: UnboundHints;
  readonly masquerade?: Masquerade;
}

export interface EndpointDescription {
  readonly endpoint: string;
  readonly node?: string;
  readonly condition: ReturnType<typeof conditionOf>;
  /** What becomes of it for traffic of policy Cluster; absent where the port has none. */
  readonly cluster?: EndpointReason['kind'];
  /** The same for policy Local. */
  readonly local?: EndpointReason['kind'];
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
  /** Set where no input holds its Pod: a workload was taken to have it. */
  readonly assumed?: true;
  readonly place?: Location;
}

/** Describes a Service; `labels` narrows it down to some of its ports. */
export function describeService(
  service: ServiceInfo,
  labels: ReadonlySet<string> | undefined,
  view: View,
  clusterDomain: string,
): ServiceDescription {
  const ports = portsOf(service, view).filter(([label]) => !labels || labels.has(label));
  const name = `${service.namespace}/${service.name}`;
  const assumed = view.services.assumed.services.find((each) => each.service === name);
  return {
    service: name,
    type: service.type,
    ...(service.skipped === undefined ? {} : { skipped: service.skipped }),
    clusterIPs: service.skipped === undefined ? service.clusterIPs : [],
    ...(assumed ? { assumed: withoutName(assumed) } : {}),
    ...locate(service.place),
    ports: ports.map(([label, inFamilies]) => ({
      label,
      ...locate(inFamilies[0]?.places?.port),
      families: inFamilies.map((port) => describePort(port, service, view)),
      kernel: collectKernelItems(label, inFamilies, view),
    })),
    dns: dnsRecords(service, clusterDomain),
    environment: environmentVariables(service),
  };
}

function portsOf({ namespace, name }: ServiceInfo, view: View): readonly (readonly [string, readonly ServicePort[]])[] {
  const { servicePorts } = view.services.cluster;
  const own = servicePorts.filter((port) => port.namespace === namespace && port.service === name);
  return [...groupBy(own, ({ label }) => label)];
}

function describePort(port: ServicePort, service: ServiceInfo, view: View): PortInFamily {
  const { node, settings } = view.services;
  const masquerade = view.shownOf(port.label, port.family)?.masquerade;
  const texts = (items: readonly { readonly text: string }[]) => items.map(({ text }) => text);
  const fallback = fallbackOf(port, service, chooseEndpoints(port, node), settings.mode);
  const unboundHints = explainUnboundHints(port, node);
  return {
    family: port.family,
    protocol: port.protocol,
    port: port.port,
    clusterIP: port.clusterIP.text,
    ...(port.nodePort === 0 ? {} : { nodePort: port.nodePort }),
    externalIPs: texts(port.externalIPs),
    loadBalancerIPs: texts(port.loadBalancerIPs),
    sourceRanges: texts(port.sourceRanges),
    internalTrafficPolicy: port.internalPolicyLocal ? 'Local' : 'Cluster',
    ...(isExternallyAccessible(port) ? { externalTrafficPolicy: port.externalPolicyLocal ? 'Local' : 'Cluster' } : {}),
    ...(port.affinitySeconds === undefined ? {} : { affinitySeconds: port.affinitySeconds }),
    ...(port.healthCheckNodePort === 0 ? {} : { healthCheckNodePort: port.healthCheckNodePort }),
    endpoints: explainEndpoints(port, node).map((use) =>
      // What is of policy Local then goes where policy Cluster does.
      describeEndpoint(fallback === 'local-to-all' ? { ...use, local: use.cluster } : use),
    ),
    ...(fallback === undefined ? {} : { fallback }),
    ...(unboundHints === undefined ? {} : { unboundHints }),
    ...(masquerade === undefined ? {} : { masquerade }),
  };
}

function fallbackOf(
  port: ServicePort,
  service: ServiceInfo,
  choice: ReturnType<typeof chooseEndpoints>,
  mode: ProxyMode,
): PortInFamily['fallback'] {
  if (!choice.hasAny) return service.endpointsGiven === false ? 'no-endpoints-given' : 'no-endpoints';
  if (!usesLocalEndpoints(port) || choice.local.length > 0) return undefined;
  return choice.cluster.length > 0 ? modeFacts[mode].localWithoutEndpoints : 'local-drops';
}

function describeEndpoint({ endpoint, cluster, local }: EndpointUse): EndpointDescription {
  const { nodeName, zoneHints, nodeHints, assumed } = endpoint.status;
  return {
    endpoint: endpoint.label,
    ...(nodeName === undefined ? {} : { node: nodeName }),
    condition: conditionOf(endpoint),
    ...(cluster ? { cluster: cluster.kind } : {}),
    ...(local ? { local: local.kind } : {}),
    ...(zoneHints.length > 0 ? { zoneHints } : {}),
    ...(nodeHints.length > 0 ? { nodeHints } : {}),
    ...(assumed ? { assumed: true } : {}),
    ...locate(endpoint.place),
  };
}

function locate(place: ServiceInfo['place']): { readonly place?: Location } {
  return place ? { place: place.locate() } : {};
}
