import type { Address, Network } from '../kernel/address.ts';
import type { Place } from '../kernel/place.ts';
import type { Release } from '../kube-proxy/releases.ts';
import type { SettingValues } from '../settings/table.ts';

/** The path of a field inside an object: ['spec', 'ports', 0, 'port']. */
export type FieldPath = readonly (string | number)[];

export interface Source {
  /** Finds a field; if it is not written down, the nearest field above it. */
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
  /** "default" if the object names none. */
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

export interface SliceEndpoint {
  /**
   * The first address, the only one that kube-proxy uses; the API no longer allows a second one. Undefined for a host
   * name.
   */
  readonly address: Address | undefined;
  /** The whole list, with host names; absent if it is just the text of `address`, as it usually is. */
  readonly written?: readonly string[] | undefined;
  readonly hostname?: string | undefined;
  readonly status: EndpointStatus;
}

/** Where an endpoint runs, and its conditions. Endpoints come by the thousand, and many share one status. */
export interface EndpointStatus {
  readonly nodeName: string | undefined;
  readonly zone: string | undefined;
  /** The conditions, with the defaults of absent ones. */
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Set if it was made of a Pod that kpc assumed for a workload. */
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
  /** The version of its kube-proxy, else of its kubelet: "v1.34.2"; '' if the object has neither. */
  readonly kubernetesVersion: string;
  /** What uname -r prints on the node; undefined if the Node does not say. */
  readonly kernelVersion?: string | undefined;
  readonly podCIDRs: readonly string[];
  readonly addresses: readonly { readonly type: string; readonly address: string }[];
  /** The name of an assumed node, unless a flag gives it another. */
  readonly assumedAs?: string | undefined;
  /** Whether its condition Ready is True. */
  readonly ready: boolean;
  /** The CPUs that Pods may use, in billionths of one; 0 if unknown. */
  readonly nanoCPUs: bigint;
  /** Those that keep Pods away: NoSchedule and NoExecute. */
  readonly taints: readonly Taint[];
}

export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

export interface Toleration extends Taint {
  /** Whether any value is tolerated; with key '', any taint. Effect '' stands for all. */
  readonly isOfAny: boolean;
}

/** What endpoints are made of. */
export interface Pod {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  readonly owner: Owner | undefined;
  readonly terminating: boolean;
  /** Undefined for a manifest: only a cluster knows the state of a Pod. */
  readonly status: PodStatus | undefined;
  /** Set if the input has no such Pod: kpc assumed it for a workload. */
  readonly assumed?: true | undefined;
}

/** The fields that a Pod shares with the template of a workload. */
export interface PodSpec {
  /** '' if it is not set, here and below. */
  readonly nodeName: string;
  readonly hostname: string;
  readonly subdomain: string;
  readonly hostNetwork: boolean;
  readonly tolerations: readonly Toleration[];
  /** Whether it asks an admission webhook for containers that no manifest shows. */
  readonly isInjected: boolean;
  /** Ports of containers, then of sidecars: in this order a name is looked up. */
  readonly ports: readonly ContainerPort[];
  /** Ports that the network plugin opens on the Pod's node. */
  readonly hostPorts: readonly HostPort[];
}

export interface HostPort extends ContainerPort {
  /** Where the node listens. */
  readonly hostPort: number;
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

export interface Workload {
  readonly kind: WorkloadKind;
  readonly metadata: ObjectMeta;
  readonly owner: Owner | undefined;
  /** The number of Pods; undefined for one on each Node. */
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

export const workloadKinds = [
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'ReplicaSet',
  'ReplicationController',
  'Job',
] as const;

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

/** All requirements must hold; without any, every label matches. */
export type LabelSelector = readonly LabelRequirement[];

interface LabelRequirement {
  readonly key: string;
  /** "In", "NotIn", "Exists" or "DoesNotExist". */
  readonly operator: string;
  readonly values: readonly string[];
}

/** What network plugins allow for Pods. kube-proxy ignores it. */
export interface NetworkPolicy {
  readonly metadata: ObjectMeta;
  /** The Pods of its namespace that it isolates. */
  readonly subject: LabelSelector;
  /** Undefined if the policy is not about that direction. */
  readonly ingress: readonly PolicyRule[] | undefined;
  readonly egress: readonly PolicyRule[] | undefined;
}

/** One of `ingress` or `egress` of a policy: what it allows. */
export interface PolicyRule {
  /** Empty for all. */
  readonly peers: readonly PolicyPeer[];
  /** Empty for all. */
  readonly ports: readonly PolicyPort[];
}

/** `network` is undefined for one that cannot be read. */
export type PolicyPeer =
  | {
      readonly kind: 'pods';
      readonly pods: LabelSelector;
      /** Undefined for the policy's own namespace. */
      readonly namespaces: LabelSelector | undefined;
    }
  | { readonly kind: 'block'; readonly network: Network | undefined; readonly except: readonly Network[] };

/** One port, or a range up to `endPort`. */
export interface PolicyPort {
  /** Undefined for any, with a name as the port. */
  readonly protocol: 'TCP' | 'UDP' | 'SCTP' | undefined;
  /** Undefined for all ports, a name for the container port that has it. */
  readonly port: number | string | undefined;
  readonly endPort: number | undefined;
}

export const routeKinds = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const;

/** Where requests go: an Ingress, or a route of the Gateway API. */
export interface Ingress {
  readonly kind: 'Ingress' | (typeof routeKinds)[number];
  readonly metadata: ObjectMeta;
  /** When it was made, as the API server writes it; '' if the object does not say. */
  readonly created: string;
  /** What a route attaches to, without Services: those are of a mesh. Empty for an Ingress. */
  readonly parents: readonly RouteParent[];
  readonly routes: readonly IngressRoute[];
}

/** A Gateway, or something else that takes routes, and perhaps one listener or port of it. */
export interface RouteParent {
  /** "Gateway shop/web". */
  readonly owner: string;
  readonly listener: string | undefined;
  readonly port: number | undefined;
}

export interface IngressRoute {
  /** Empty for any. */
  readonly hosts: readonly string[];
  /** Undefined for the default backend, and for what looks at no path. */
  readonly path: string | undefined;
  /** What a pattern means is up to the controller. */
  readonly pathType: 'exact' | 'prefix' | 'suffix' | 'pattern';
  /** Whether it takes only requests with some method, headers or query. */
  readonly isConditional: boolean;
  /** Each gets some of the requests: which, the route's weights and filters decide. */
  readonly backends: readonly IngressBackend[];
}

/** A port of a Service, by number or name. */
export interface IngressBackend {
  /** Undefined for something else: `instead` says what. */
  readonly service: string | undefined;
  readonly instead: string;
  readonly namespace: string;
  readonly port: string;
  /** Whether it gets copies, and no answer of it counts. */
  readonly isCopy: boolean;
}

/** A Gateway, or a ListenerSet, which adds listeners to one. */
export interface Gateway {
  readonly metadata: ObjectMeta;
  /** When it was made, as the API server writes it; '' if the object does not say. */
  readonly created: string;
  /** "Gateway shop/web" for a ListenerSet; undefined for a Gateway. */
  readonly of: string | undefined;
  readonly listeners: readonly Listener[];
  /** Whose ListenerSets a Gateway takes. */
  readonly sets: Listener['from'];
}

/** Where a Gateway takes connections. */
export interface Listener {
  readonly name: string;
  /** '' for any. */
  readonly host: string;
  readonly port: number | undefined;
  readonly protocol: string;
  /** Whose routes it takes. A selector is of namespaces. */
  readonly from: 'All' | 'Same' | 'None' | LabelSelector;
  /** The kinds of routes that it takes; empty for all that its protocol can have. */
  readonly kinds: readonly string[];
}

/** Lets routes of other namespaces use Services of its own. */
export interface ReferenceGrant {
  readonly metadata: ObjectMeta;
  /** Kinds of routes and their namespaces: "HTTPRoute shop". */
  readonly from: readonly string[];
  /** Undefined for all. */
  readonly services: readonly (string | undefined)[];
}

export interface Namespace {
  readonly metadata: ObjectMeta;
  /** Whether its Pods ask an admission webhook for containers that no manifest shows. */
  readonly isInjected: boolean;
}

/** The settings that shape rules, from a KubeProxyConfiguration and the flags over it, with kube-proxy's defaults. */
export interface ProxySettings extends SettingValues {
  /** The release of Kubernetes whose kube-proxy is meant. */
  readonly release: Release;
}
