import type { Address, Family, Network, Protocol } from '../kernel/address.ts';
import type { ForwardingMethod } from '../kernel/ipvs/ipvs.ts';
import type { Place } from '../kernel/place.ts';
import type { SkipReason } from '../kube-proxy/skipped.ts';
import type { EndpointSources, EndpointStatus, ServicePortSpec } from './objects.ts';

/** The part that all modes and nodes share: Service ports with their endpoints. The modes decide the rest. */
export interface Cluster extends ClusterObjects {
  readonly addresses: AddressIndex<ServicePort>;
}

export interface ClusterObjects {
  /** Sorted by namespace and name. */
  readonly services: readonly ServiceInfo[];
  /** One for each Service port and family that kube-proxy would program, sorted by compareServicePorts. */
  readonly servicePorts: readonly ServicePort[];
  readonly healthChecks: readonly ServiceHealthCheck[];
  /** If this is only a part of a cluster, the number of endpoints of the omitted Service ports. */
  readonly endpointsElsewhere?: { readonly [F in Family]: number };
  /** The ranges of cluster IPs, sorted, without duplicates. In nftables mode, kube-proxy refuses packets to unused IPs in these ranges. */
  readonly serviceCidrs: readonly ServiceRange[];
}

export interface ServiceRange {
  readonly network: Network;
  readonly from: 'ServiceCIDR' | '--service-cluster-ip-range';
  readonly place?: Place | undefined;
}

export interface ServiceInfo {
  readonly namespace: string;
  readonly name: string;
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  readonly skipped: SkipReason | undefined;
  readonly clusterIPs: readonly string[];
  readonly externalName: string | undefined;
  readonly ports: readonly ServicePortSpec[];
  /** Set if the input has neither EndpointSlices nor Endpoints for the Service, although kube-proxy or DNS would look for them. */
  readonly endpointsGiven?: false | undefined;
  /** The fields, besides ports, that determine the endpoints; undefined if a bundle or golden does not record them. */
  readonly sources?: EndpointSources | undefined;
  /** For a headless Service, the addresses in DNS answers. */
  readonly headlessEndpoints: readonly HeadlessEndpoint[];
  readonly place?: Place | undefined;
}

/** Returns a Service's cluster IPs. A headless Service has "None". */
export function heldClusterIPs({ clusterIPs }: ServiceInfo): readonly string[] {
  return clusterIPs.filter((each) => each !== 'None');
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
  /** Unique by address and node. Taken from all slices of the Service and family, whatever their ports. */
  readonly readyEndpoints: readonly { readonly address: string; readonly nodeName: string }[];
}

/**
 * kube-proxy's ServicePortName and BaseServicePortInfo for one family, and endpoints. A ShownPort has only the parts that a kernel shows.
 */
export interface ServicePort<Unknown = never> {
  readonly namespace: string | Unknown;
  readonly service: string | Unknown;
  readonly portName: string | Unknown;
  readonly protocol: Protocol;
  readonly family: Family;
  /** kube-proxy's name, "namespace/service:port". If the name is unknown, "10.96.0.1:80/TCP" or "node port 30080/TCP". */
  readonly label: string;
  readonly clusterIP: Address | Unknown;
  readonly port: number | Unknown;
  readonly nodePort: number | Unknown;
  readonly externalIPs: readonly Address[];
  /** Set if the settings ignore the Service's external IPs. The port still counts as externally accessible. */
  readonly hasIgnoredExternalIPs?: true | undefined;
  /** Ingress addresses with ipMode VIP. */
  readonly loadBalancerIPs: readonly Address[];
  /** Addresses in a kernel that does not show their kind. */
  readonly otherIPs?: readonly Address[] | undefined;
  /** Set if only part of a kernel was shown, so there may be more addresses. */
  readonly hidesAddresses?: true | undefined;
  /** Empty if every client is allowed. A range from a kernel may be known only as text. */
  readonly sourceRanges:
    readonly (Network | (Unknown extends undefined ? { readonly text: string } : never))[] | Unknown;
  readonly hidesSourceRanges?: true | undefined;
  readonly affinitySeconds: number | Unknown;
  readonly internalPolicyLocal: boolean | Unknown;
  readonly externalPolicyLocal: boolean | Unknown;
  readonly healthCheckNodePort: number | Unknown;
  /** From the annotation kpc.dev/ipvs-scheduler; '' means the node's scheduler. */
  readonly scheduler: string | Unknown;
  readonly forwarding: ForwardingMethod | Unknown;
  /** One for each address and port, ordered by the text "ip:port", as in kube-proxy. */
  readonly endpoints: readonly Endpoint<Unknown>[] | Unknown;
  readonly places?: ServicePortPlaces | undefined;
}

/** A Service port with only the facts that its source shows. Every ServicePort is a ShownPort. */
export type ShownPort = ServicePort<undefined>;

export interface ServicePortPlaces {
  readonly port: Place;
  readonly clusterIP: Place;
  readonly nodePort: Place;
  readonly externalIP: (index: number) => Place;
  readonly ingress: (index: number) => Place;
  readonly sourceRange: (index: number) => Place;
}

/** An address and port behind a Service port. A kernel shows no status, and sometimes only the address or the port. */
export interface Endpoint<Unknown = never> {
  readonly address: Address | Unknown;
  readonly port: number | Unknown;
  readonly label: string;
  /** Has only the hints that this release's kube-proxy reads. */
  readonly status: EndpointStatus | Unknown;
  /** Other endpoints with this address and port. Each node later chooses one of them (pickFromRivals). */
  readonly rivals?: readonly Endpoint[] | undefined;
  readonly place?: Place | undefined;
}

/** An endpoint with an address. An endpoint has no address if the pasted dump shows a name instead. */
export type PlacedEndpoint = Endpoint<undefined> & { readonly address: Address; readonly port: number };

export interface AddressIndex<Port extends ShownPort = ShownPort> {
  servicesAt(address: string): readonly Port[];
  nodePortsAt(port: number): readonly Port[];
  servedAt(address: string): readonly Port[];
  portsOf(service: string): readonly Port[];
  /** Returns the endpoints at an address, one for each port; the last one if there are several. */
  endpointsAt(address: string): readonly PlacedEndpoint[];
  endpointsOf(family: Family): Iterable<PlacedEndpoint>;
}

export interface NodeContext {
  /** '' if there is no node. No endpoint is local then. */
  readonly name: string;
  readonly zone: string;
  readonly podCIDRs: readonly Network[];
  /** By family: kube-proxy's bind address, else the first InternalIP, else the first ExternalIP, else loopback. */
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

/** Reports whether a Service port has a packet's protocol, which is in lower case and may be icmp. */
export function hasProtocol(port: Pick<ShownPort, 'protocol'>, protocol: string): boolean {
  return port.protocol.toLowerCase() === protocol;
}

export function sourceNetworks({ sourceRanges = [] }: Pick<ShownPort, 'sourceRanges'>): readonly Network[] {
  return sourceRanges.flatMap((range) => ('prefixLength' in range ? [range] : []));
}

/** Tells apart the ports of a dual-stack Service, which share their labels. */
export function keyOfPort({ family, label }: Pick<ShownPort, 'family' | 'label'>): string {
  return `${family} ${label}`;
}

export function serviceName({
  namespace,
  service,
  label = '',
}: Pick<ShownPort, 'namespace' | 'service'> & { readonly label?: string }): string {
  return service === undefined ? label : namespace === undefined ? service : `${namespace}/${service}`;
}

/** Returns kube-proxy's ServicePortName.String(): "namespace/service:port". */
export function servicePortLabel(namespace: string, service: string, portName: string): string {
  return portName === '' ? `${namespace}/${service}` : `${namespace}/${service}:${portName}`;
}

export interface AssumedWorkload {
  readonly workload: string;
  readonly pods: readonly AssumedPod[];
  /** Set if kpc knows no Node that meets the nodeSelector or affinity. The Pods are then assumed on any Node. */
  readonly unplaced?: true | undefined;
}

export function unplacedOf(workloads: readonly AssumedWorkload[]): readonly string[] {
  return workloads.flatMap(({ workload, unplaced }) => (unplaced ? [workload] : []));
}

export interface AssumedPod {
  readonly name: string;
  readonly node?: string | undefined;
  readonly addresses: readonly string[];
}

export function isPlacedByKpc({ endpoints = [] }: Pick<ShownPort, 'endpoints'>): boolean {
  return endpoints.length > 0 && endpoints.every(({ status }) => status?.assumed);
}
