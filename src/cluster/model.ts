import type { Address, Network } from '../kernel/address.ts';
import type { Family, Protocol } from '../kernel/family.ts';
import type { ForwardingMethod } from '../kernel/ipvs/ipvs.ts';
import type { Place } from '../kernel/place.ts';
import type { EndpointSources, EndpointStatus, ServicePortSpec } from './objects.ts';

/** The part that all modes share, the same for every node: Service ports with endpoints. The modes decide the rest. */
export interface Cluster extends ClusterObjects {
  readonly addresses: AddressIndex<ServicePort>;
}

export interface ClusterObjects {
  /** All Services except those left to another proxy, sorted by namespace and name. */
  readonly services: readonly ServiceInfo[];
  /** One for each Service port and family that kube-proxy would program, sorted by compareServicePorts. */
  readonly servicePorts: readonly ServicePort[];
  /** Sorted by service and family. */
  readonly healthChecks: readonly ServiceHealthCheck[];
  /** For a part of a cluster: the number of endpoints of the omitted Service ports. */
  readonly endpointsElsewhere?: { readonly [F in Family]: number };
  /** The ranges of cluster IPs, sorted, without duplicates. In nftables mode kube-proxy refuses packets to unused IPs in them. */
  readonly serviceCidrs: readonly ServiceRange[];
}

export interface ServiceRange {
  readonly network: Network;
  /** An object of the cluster, or the flag that replaces it. */
  readonly from: 'ServiceCIDR' | '--service-cluster-ip-range';
  readonly place?: Place | undefined;
}

export interface ServiceInfo {
  readonly namespace: string;
  readonly name: string;
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** Why kube-proxy programs nothing for it; undefined if it does. */
  readonly skipped: 'headless' | 'external-name' | 'no-cluster-ip' | undefined;
  readonly clusterIPs: readonly string[];
  readonly externalName: string | undefined;
  readonly ports: readonly ServicePortSpec[];
  /** False if the input has neither EndpointSlices nor Endpoints for it, and kube-proxy or DNS would look for them. */
  readonly endpointsGiven?: false | undefined;
  /** What its endpoints are made from, besides ports; undefined if a bundle or golden does not record it. */
  readonly sources?: EndpointSources | undefined;
  /** For a headless Service: the addresses that DNS answers with. */
  readonly headlessEndpoints: readonly HeadlessEndpoint[];
  readonly place?: Place | undefined;
}

export interface HeadlessEndpoint {
  readonly address: string;
  readonly hostname: string | undefined;
  readonly ready: boolean;
}

export interface ServiceHealthCheck {
  readonly namespace: string;
  readonly service: string;
  readonly family: Family;
  readonly port: number;
  /** Unique by address and node, from all slices of the Service and family, whatever their ports. */
  readonly readyEndpoints: readonly { readonly address: string; readonly nodeName: string }[];
}

/** kube-proxy's ServicePortName with BaseServicePortInfo, one family, and endpoints. For kernels see ShownPort. */
export interface ServicePort<Unknown = never> {
  readonly namespace: string | Unknown;
  readonly service: string | Unknown;
  /** '' for a port without a name. */
  readonly portName: string | Unknown;
  readonly protocol: Protocol;
  readonly family: Family;
  /** kube-proxy's name: "namespace/service:port". If unknown, "10.96.0.1:80/TCP" or "node port 30080/TCP". */
  readonly label: string;
  readonly clusterIP: Address | Unknown;
  readonly port: number | Unknown;
  /** 0 for none. */
  readonly nodePort: number | Unknown;
  readonly externalIPs: readonly Address[];
  /** Set if the settings ignore the Service's external IPs: it still counts as externally reachable. */
  readonly hasIgnoredExternalIPs?: true | undefined;
  /** Ingress addresses with ipMode VIP. */
  readonly loadBalancerIPs: readonly Address[];
  /** Addresses in a kernel that does not show their kind. */
  readonly otherIPs?: readonly Address[] | undefined;
  /** Set if only part of a kernel was shown: there may be more addresses. */
  readonly hidesAddresses?: true | undefined;
  /** Empty if every client is allowed. In a kernel, a range may only be known as its tool prints it. */
  readonly sourceRanges:
    readonly (Network | (Unknown extends undefined ? { readonly text: string } : never))[] | Unknown;
  /** Set if a kernel shows that there are source ranges, but not which. */
  readonly hidesSourceRanges?: true | undefined;
  /** Seconds of session affinity by client address; 0 for none. */
  readonly affinitySeconds: number | Unknown;
  readonly internalPolicyLocal: boolean | Unknown;
  readonly externalPolicyLocal: boolean | Unknown;
  readonly healthCheckNodePort: number | Unknown;
  /** From the annotation kpc.dev/ipvs-scheduler; '' for the node's scheduler. */
  readonly scheduler: string | Unknown;
  /** From the annotation kpc.dev/ipvs-forwarding-method. */
  readonly forwarding: ForwardingMethod | Unknown;
  /** In kube-proxy's order: "ip:port" as text. One for each address and port. */
  readonly endpoints: readonly Endpoint<Unknown>[] | Unknown;
  /** Places for diagnostics; absent if the cluster was read from a bundle. */
  readonly places?: ServicePortPlaces | undefined;
}

/** A Service port as far as its source shows it; the rest is undefined. Every ServicePort is a ShownPort. */
export type ShownPort = ServicePort<undefined>;

/** Called only when a rule's origin is needed. */
export interface ServicePortPlaces {
  readonly port: Place;
  readonly clusterIP: Place;
  readonly nodePort: Place;
  readonly externalIP: (index: number) => Place;
  readonly ingress: (index: number) => Place;
  readonly sourceRange: (index: number) => Place;
}

/** One address and port behind a Service port. A kernel shows no status, and may not show both. */
export interface Endpoint<Unknown = never> {
  readonly address: Address | Unknown;
  readonly port: number | Unknown;
  /** kube-proxy's name for it: "ip:port", with brackets around IPv6. */
  readonly label: string;
  /** With only the hints that this release's kube-proxy reads. */
  readonly status: EndpointStatus | Unknown;
  /** Other endpoints with this address and port, until a node's choice is made: see pickFromRivals. */
  readonly rivals?: readonly Endpoint[] | undefined;
  readonly place?: Place | undefined;
}

/** An endpoint that has an address; names may have replaced addresses before a dump was pasted. */
export type PlacedEndpoint = Endpoint<undefined> & { readonly address: Address; readonly port: number };

/** Independent of node and mode. */
export interface AddressIndex<Port extends ShownPort = ShownPort> {
  servicesAt(address: string): readonly Port[];
  /** The Service ports for which nodes listen on the port, for clients or for health checks. */
  nodePortsAt(port: number): readonly Port[];
  servedAt(address: string): readonly Port[];
  /** `service`: "namespace/name". */
  portsOf(service: string): readonly Port[];
  /** One for each port at the address; if there are several, the last. */
  endpointsAt(address: string): readonly PlacedEndpoint[];
  endpointsOf(family: Family): Iterable<PlacedEndpoint>;
}

export interface NodeContext {
  /** '' without a node: then no endpoint is local. */
  readonly name: string;
  /** The label topology.kubernetes.io/zone, or ''. */
  readonly zone: string;
  readonly podCIDRs: readonly Network[];
  /** By family: first InternalIP, else first ExternalIP, unless kube-proxy's bind address overrides it; else loopback. */
  readonly nodeIPs: { readonly [F in Family]: Address };
  /** All addresses on the node's links except kube-ipvs0, with loopback, sorted, unique. Empty if unknown. */
  readonly hostAddresses: readonly Address[];
}

export type NodeIdentity = Pick<NodeContext, 'name' | 'zone'>;

export interface PortAddress {
  readonly kind: 'cluster-ip' | 'external-ip' | 'load-balancer-ip' | 'unknown';
  readonly address: Address;
}

export function portAddresses(port: ShownPort): readonly PortAddress[] {
  const { clusterIP, externalIPs, loadBalancerIPs, otherIPs = [] } = port;
  const all: PortAddress[] = clusterIP ? [{ kind: 'cluster-ip', address: clusterIP }] : [];
  for (const address of externalIPs) all.push({ kind: 'external-ip', address });
  for (const address of loadBalancerIPs) all.push({ kind: 'load-balancer-ip', address });
  for (const address of otherIPs) all.push({ kind: 'unknown', address });
  return all;
}

export function hasAddress(port: ShownPort, { text }: Address): boolean {
  return portAddresses(port).some(({ address }) => address.text === text);
}

/** The source ranges, except those that a kernel prints as no network. */
export function sourceNetworks({ sourceRanges = [] }: Pick<ShownPort, 'sourceRanges'>): readonly Network[] {
  return sourceRanges.flatMap((range) => ('prefixLength' in range ? [range] : []));
}

/** "namespace/service", without the namespace if it is unknown; the port's label if the Service is unknown. */
export function serviceName({
  namespace,
  service,
  label = '',
}: Pick<ShownPort, 'namespace' | 'service'> & { readonly label?: string }): string {
  return service === undefined ? label : namespace === undefined ? service : `${namespace}/${service}`;
}

/** "namespace/service:port" → kube-proxy's ServicePortName.String(). */
export function servicePortLabel(namespace: string, service: string, portName: string): string {
  return portName === '' ? `${namespace}/${service}` : `${namespace}/${service}:${portName}`;
}

export interface AssumedWorkload {
  /** "Deployment namespace/name". */
  readonly workload: string;
  readonly pods: readonly AssumedPod[];
  /** No Node is known to meet its nodeSelector or affinity: its Pods are assumed on any. */
  readonly unplaced?: true | undefined;
}

export function unplacedOf(workloads: readonly AssumedWorkload[]): readonly string[] {
  return workloads.flatMap(({ workload, unplaced }) => (unplaced ? [workload] : []));
}

export interface AssumedPod {
  readonly name: string;
  readonly node?: string | undefined;
  /** At most one of each family. */
  readonly addresses: readonly string[];
}

/** Where a Service port lacks endpoints: this node or, if kpc chose where Pods run, nodes without one. */
export function placeWithout({ endpoints = [], service }: Pick<ShownPort, 'endpoints' | 'service'>): string {
  return isPlacedByKpc({ endpoints }) && service !== undefined
    ? `on nodes without a Pod of ${service}`
    : 'on this node';
}

/** Whether kpc chose the nodes of a Service port's endpoints. */
export function isPlacedByKpc({ endpoints = [] }: Pick<ShownPort, 'endpoints'>): boolean {
  return endpoints.length > 0 && endpoints.every(({ status }) => status?.assumed);
}
