import type { Address, Network } from '../kernel/address.ts';
import type { Place } from '../kernel/place.ts';
import type { Release } from '../kube-proxy/releases.ts';
import type { SettingValues } from '../kube-proxy/settings/table.ts';

/** The path of a field inside an object: ['spec', 'ports', 0, 'port']. */
export type FieldPath = readonly (string | number)[];

/** Where an object came from. */
export interface Source {
  /** Finds a field, or the nearest field above it that is written down. */
  place(path: FieldPath): Place;
}

/** An object that has passed its checks, with the API server's defaults filled in, and where it came from. */
export interface Sourced<T> {
  readonly object: T;
  readonly source: Source;
}

/** The part of an object's metadata that kpc reads. */
export interface ObjectMeta {
  readonly name: string;
  /** "default" where the object names none. */
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** "namespace/name". */
export function fullName({ namespace, name }: Pick<ObjectMeta, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** A Service with the API server's defaults. Addresses are text, as they are written, and checked. */
export interface Service {
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
    /** '' if none has been given yet, 'None' for a headless Service. */
    readonly clusterIP: string;
    readonly clusterIPs: readonly string[];
    readonly ipFamilies: readonly ('IPv4' | 'IPv6')[];
    readonly ipFamilyPolicy?: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack' | undefined;
    readonly externalName?: string | undefined;
    readonly externalIPs: readonly string[];
    readonly ports: readonly ServicePortSpec[];
    readonly sessionAffinity: 'None' | 'ClientIP';
    /** Seconds; the API server's default is 10800. Meaningful with ClientIP only. */
    readonly sessionAffinityTimeout: number;
    readonly internalTrafficPolicy: 'Cluster' | 'Local';
    readonly externalTrafficPolicy: 'Cluster' | 'Local';
    /** 0 for none. */
    readonly healthCheckNodePort: number;
    /** What the load balancer is asked for; undefined if the choice is left to it. */
    readonly loadBalancerIP?: string | undefined;
    readonly loadBalancerSourceRanges: readonly string[];
    readonly publishNotReadyAddresses: boolean;
    readonly allocateLoadBalancerNodePorts: boolean;
    /** Undefined if it has none: its endpoints are then not its Pods. */
    readonly selector: Readonly<Record<string, string>> | undefined;
    /** '' if it is not set. */
    readonly trafficDistribution: string;
  };
  readonly ingress: readonly LoadBalancerIngress[];
  /** Set if it is being deleted: no controller makes slices for it any more. */
  readonly terminating?: true | undefined;
}

/** One of `spec.ports`; a target port that is a text names a container port. */
export interface ServicePortSpec {
  /** '' for the one port that needs no name. */
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
  readonly targetPort: number | string;
  /** 0 for none. */
  readonly nodePort: number;
}

/** One of `status.loadBalancer.ingress`. kube-proxy programs no address of ipMode Proxy. */
export interface LoadBalancerIngress {
  readonly ip?: string | undefined;
  readonly hostname?: string | undefined;
  readonly ipMode: 'VIP' | 'Proxy';
}

/** An EndpointSlice, or what the control plane would make of Endpoints or of Pods. */
export interface EndpointSlice {
  readonly metadata: ObjectMeta;
  readonly addressType: 'IPv4' | 'IPv6' | 'FQDN';
  readonly ports: readonly EndpointPort[];
  readonly endpoints: readonly SliceEndpoint[];
}

/** A port of a slice; it belongs to the Service port of the same name and protocol. */
export interface EndpointPort {
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  /** Undefined means all ports; kube-proxy takes no such slice port. */
  readonly port: number | undefined;
}

/** One of `endpoints` of a slice. */
export interface SliceEndpoint {
  /** The first address, all that kube-proxy takes: the API allows no second one any more. Undefined for a host name. */
  readonly address: Address | undefined;
  /** All of the list, with host names; absent if that is the text of `address` alone, as it usually is. */
  readonly written?: readonly string[] | undefined;
  readonly hostname?: string | undefined;
  readonly status: EndpointStatus;
}

/** Where an endpoint runs, and whether to use it from there. Endpoints come by the thousand, and many share one. */
export interface EndpointStatus {
  readonly nodeName: string | undefined;
  readonly zone: string | undefined;
  /** As the conditions say, with what their absence means filled in. */
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Set if it was made of a Pod that no input holds: a workload was taken to have it. */
  readonly assumed?: true | undefined;
}

/** A v1 Endpoints object, as far as mirroring it to slices needs it. */
export interface Endpoints {
  readonly metadata: ObjectMeta;
  readonly subsets: readonly EndpointSubset[];
}

interface EndpointSubset {
  readonly addresses: readonly EndpointAddress[];
  readonly notReadyAddresses: readonly EndpointAddress[];
  readonly ports: readonly EndpointPort[];
}

/** One address of an Endpoints object; `ip` is checked. */
export interface EndpointAddress {
  readonly ip: string;
  readonly hostname?: string | undefined;
  readonly nodeName?: string | undefined;
}

/** A Node, as far as rules and endpoints depend on it. */
export interface Node {
  readonly metadata: ObjectMeta;
  /** What its kube-proxy, else its kubelet, says of its own version: "v1.34.2"; '' where neither does. */
  readonly kubernetesVersion: string;
  readonly podCIDRs: readonly string[];
  readonly addresses: readonly { readonly type: string; readonly address: string }[];
  /** Of an assumed one, the name that it has if no flag gives it another. */
  readonly assumedAs?: string | undefined;
  /** Whether its condition Ready is True. */
  readonly ready: boolean;
  /** What of its CPUs Pods may use, in billionths of one; 0 where nothing says. */
  readonly nanoCPUs: bigint;
}

/** What endpoints are made of. */
export interface Pod {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  /** The object that controls it; undefined if nothing does. */
  readonly owner: Owner | undefined;
  /** Whether it is being deleted. */
  readonly terminating: boolean;
  /** Undefined for a manifest: only a cluster knows the state of a Pod. */
  readonly status: PodStatus | undefined;
  /** Set if there is no such Pod: a workload of the input was taken to have it. */
  readonly assumed?: true | undefined;
}

/** What a Pod and a workload's template say alike. */
export interface PodSpec {
  /** '' if it is not set, here and below. */
  readonly nodeName: string;
  readonly hostname: string;
  readonly subdomain: string;
  readonly hostNetwork: boolean;
  /** Those of the containers, then those of the sidecars: in this order a name is looked up. */
  readonly ports: readonly ContainerPort[];
}

/** A port of a container, by which a target port may be named. */
export interface ContainerPort {
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
}

/** The part of a Pod's status that decides whether it is an endpoint. */
export interface PodStatus {
  /** Whether all its containers have ended for good. */
  readonly ended: boolean;
  /** Whether its condition Ready is True. */
  readonly ready: boolean;
  readonly addresses: readonly Address[];
}

/** What makes Pods by a template. */
export interface Workload {
  readonly kind: WorkloadKind;
  readonly metadata: ObjectMeta;
  readonly owner: Owner | undefined;
  /** How many Pods it is to have; undefined for one on each Node. */
  readonly replicas: number | undefined;
  /** The number in the name of its first Pod. */
  readonly firstOrdinal: number;
  /** Whether it lacks a selector and labels of its Pods: only a patch of another one does. */
  readonly isPartial: boolean;
  readonly template: {
    readonly labels: Readonly<Record<string, string>>;
    readonly spec: PodSpec;
  };
}

/** The kinds of objects that Pods can be assumed of. */
export const workloadKinds = [
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'ReplicaSet',
  'ReplicationController',
  'Job',
] as const;

/** The kind of a workload, as manifests name it. */
export type WorkloadKind = (typeof workloadKinds)[number];

/** The controller of an object, in its own namespace. */
export interface Owner {
  readonly kind: string;
  readonly name: string;
}

/** Networks that cluster IPs are given from. */
export interface ServiceCidr {
  readonly metadata: ObjectMeta;
  /** One, or one of each family; the first one's family is that of Services that ask for none. */
  readonly cidrs: readonly Network[];
}

/** What all of which holds of the labels that are selected; without any, every label does. */
export type LabelSelector = readonly LabelRequirement[];

interface LabelRequirement {
  readonly key: string;
  /** "In", "NotIn", "Exists" or "DoesNotExist". */
  readonly operator: string;
  readonly values: readonly string[];
}

/** Which connections network plugins let Pods have. kube-proxy does not look at it. */
export interface NetworkPolicy {
  readonly metadata: ObjectMeta;
  readonly podSelector: LabelSelector;
  /** Undefined if the policy is not about that direction; empty if it allows nothing. */
  readonly ingress: readonly PolicyRule[] | undefined;
  readonly egress: readonly PolicyRule[] | undefined;
}

/** One of `ingress` or `egress` of a NetworkPolicy. */
export interface PolicyRule {
  /** Empty for all. */
  readonly peers: readonly PolicyPeer[];
  /** Empty for all. */
  readonly ports: readonly PolicyPort[];
}

/** `namespaces` is undefined for the policy's own namespace; `network` for one that cannot be read. */
export type PolicyPeer =
  | { readonly kind: 'pods'; readonly pods: LabelSelector; readonly namespaces: LabelSelector | undefined }
  | { readonly kind: 'block'; readonly network: Network | undefined; readonly except: readonly Network[] };

/** One port, or a range up to `endPort`. */
export interface PolicyPort {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  /** Undefined for all ports, a name for the container port that has it. */
  readonly port: number | string | undefined;
  readonly endPort: number | undefined;
}

/** Where an ingress controller sends requests. */
export interface Ingress {
  readonly metadata: ObjectMeta;
  readonly routes: readonly IngressRoute[];
}

/** One path of one host. */
export interface IngressRoute {
  /** '' for any. */
  readonly host: string;
  /** Undefined for the default backend. */
  readonly path: string | undefined;
  readonly isExact: boolean;
  /** Undefined for what is no Service. */
  readonly backend: IngressBackend | undefined;
}

/** A port of a Service in the Ingress's namespace, by number or name. */
export interface IngressBackend {
  readonly service: string;
  readonly port: string;
}

/** A Namespace; only its labels matter, to NetworkPolicies. */
export interface Namespace {
  readonly metadata: ObjectMeta;
}

/** What shapes the rules, of a KubeProxyConfiguration and the flags over it, with kube-proxy's defaults filled in. */
export interface ProxySettings extends SettingValues {
  /** The release of Kubernetes whose kube-proxy is meant. */
  readonly release: Release;
}
