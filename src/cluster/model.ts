import type { Address, Network } from '../kernel/address.ts';
import type { Family, Protocol } from '../kernel/family.ts';
import type { ForwardingMethod } from '../kernel/ipvs/ipvs.ts';
import type { Place } from '../kernel/place.ts';
import type { EndpointStatus, ServicePortSpec } from './objects.ts';

/**
 * What all proxy modes share: the Service ports of both families with their endpoints. It is the same for every node;
 * what a node makes of it is decided in endpoint-choice.ts and by the modes.
 */
export interface Cluster {
  /** All Services of the input that were not left to another proxy, sorted by namespace and name. */
  readonly services: readonly ServiceInfo[];
  /** One for each Service port and family that kube-proxy would program, sorted by compareServicePorts. */
  readonly servicePorts: readonly ServicePort[];
  /** Sorted by service and family. */
  readonly healthChecks: readonly ServiceHealthCheck[];
  /** Of a part of a cluster, how many endpoints the Service ports have that are left out. */
  readonly endpointsElsewhere?: { readonly [F in Family]: number };
  /** What cluster IPs are given from, sorted, none twice: kube-proxy drops packets to the rest of it in nftables mode. */
  readonly serviceCidrs: readonly ServiceRange[];
}

/** A network that cluster IPs are given from. */
export interface ServiceRange {
  readonly network: Network;
  /** An object of the cluster, or the flag that replaces it. */
  readonly from: 'ServiceCIDR' | '--service-cluster-ip-range';
  readonly place?: Place | undefined;
}

/** A Service as people know it, whether kube-proxy programs it or not. */
export interface ServiceInfo {
  readonly namespace: string;
  readonly name: string;
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** Why kube-proxy programs nothing for it; undefined if it does. */
  readonly skipped: 'headless' | 'external-name' | 'no-cluster-ip' | undefined;
  readonly clusterIPs: readonly string[];
  readonly externalName: string | undefined;
  readonly ports: readonly ServicePortSpec[];
  /** Set if the input held neither an EndpointSlice nor Endpoints of it, and kube-proxy would look for them. */
  readonly endpointsGiven?: false | undefined;
  /** The addresses that DNS answers with, of a headless Service only. */
  readonly headlessEndpoints: readonly HeadlessEndpoint[];
  readonly place?: Place | undefined;
}

/** One address that the name of a headless Service resolves to. */
export interface HeadlessEndpoint {
  readonly address: string;
  readonly hostname: string | undefined;
  readonly ready: boolean;
}

/** A Service with a health check node port: what kube-proxy answers there depends on the ready endpoints on the node. */
export interface ServiceHealthCheck {
  readonly namespace: string;
  readonly service: string;
  readonly family: Family;
  readonly port: number;
  /** One for each address and node, of all slices of the Service and family, whatever their ports. */
  readonly readyEndpoints: readonly { readonly address: string; readonly nodeName: string }[];
}

/** A Service port in one family: kube-proxy's ServicePortName with its BaseServicePortInfo and its endpoints. */
export interface ServicePort {
  readonly namespace: string;
  readonly service: string;
  /** '' for a port without a name. */
  readonly portName: string;
  readonly protocol: Protocol;
  readonly family: Family;
  /** "namespace/service" or "namespace/service:port": kube-proxy's name of it, the same in both families. */
  readonly label: string;
  readonly clusterIP: Address;
  readonly port: number;
  /** 0 for none. */
  readonly nodePort: number;
  readonly externalIPs: readonly Address[];
  /** Set if the Service has others, which the settings say to ignore: it still counts as reached from outside. */
  readonly hasIgnoredExternalIPs?: true | undefined;
  /** Ingress addresses of mode VIP. */
  readonly loadBalancerIPs: readonly Address[];
  /** Empty where every client is let in. */
  readonly sourceRanges: readonly Network[];
  /** Seconds of session affinity by client address; undefined for none. */
  readonly affinitySeconds: number | undefined;
  readonly internalPolicyLocal: boolean;
  readonly externalPolicyLocal: boolean;
  /** 0 for none. */
  readonly healthCheckNodePort: number;
  /** From the annotation kpc.dev/ipvs-scheduler; undefined takes the node's. */
  readonly scheduler: string | undefined;
  /** From the annotation kpc.dev/ipvs-forwarding-method. */
  readonly forwarding: ForwardingMethod;
  /** Sorted by kube-proxy's order: "ip:port" as text. One for each address and port. */
  readonly endpoints: readonly Endpoint[];
  /** Fields to point at; absent if the cluster was read from a bundle. */
  readonly places?: ServicePortPlaces | undefined;
}

/** Places of the fields of one Service port. Called only where a rule's origin is asked for. */
export interface ServicePortPlaces {
  readonly port: Place;
  readonly clusterIP: Place;
  readonly nodePort: Place;
  readonly externalIP: (index: number) => Place;
  readonly ingress: (index: number) => Place;
  readonly sourceRange: (index: number) => Place;
}

/** One address and port behind a Service port. Which of them a node uses is not said here: see endpoint-choice.ts. */
export interface Endpoint {
  readonly address: Address;
  readonly port: number;
  /** "ip:port", brackets around IPv6: kube-proxy's name of it. */
  readonly label: string;
  /** With the hints that the kube-proxy of the release reads, and no others. */
  readonly status: EndpointStatus;
  /**
   * Others of the same address and port, in the order of their slices, where a kube-proxy takes the one that is on its
   * own node: see settleRivals. Absent once that is settled.
   */
  readonly rivals?: readonly Endpoint[] | undefined;
  readonly place?: Place | undefined;
}

/** What kpc knows of the node it compiles for. */
export interface NodeContext {
  /** '' if there is no node: then no endpoint is local. */
  readonly name: string;
  /** The label topology.kubernetes.io/zone, or ''. */
  readonly zone: string;
  readonly podCIDRs: readonly Network[];
  /**
   * The node's own address in each family (InternalIP before ExternalIP, first of its family; kube-proxy's bind
   * address wins); the loopback address if there is none.
   */
  readonly nodeIPs: { readonly [F in Family]: Address };
  /**
   * All addresses on the node's links but kube-ipvs0's, both families, loopback included, sorted and without
   * duplicates. Empty if they are not known.
   */
  readonly hostAddresses: readonly Address[];
}

/** What of a node decides which endpoints of a Service port it uses: no plan of a Service port looks at more. */
export type NodeIdentity = Pick<NodeContext, 'name' | 'zone'>;

/** "namespace/service:port" → kube-proxy's ServicePortName.String(). */
export function servicePortLabel(namespace: string, service: string, portName: string): string {
  return portName === '' ? `${namespace}/${service}` : `${namespace}/${service}:${portName}`;
}
