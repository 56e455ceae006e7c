import type { Address, Network } from '../kernel/address.ts';
import { compareText } from '../kernel/compare.ts';
import type { Place } from '../kernel/place.ts';
import type { Release } from '../kube-proxy/releases.ts';
import type { SettingValues } from '../settings/table.ts';

/** The path of a field inside an object: ['spec', 'ports', 0, 'port']. */
export type FieldPath = readonly (string | number)[];

export interface ObjectSource {
  /** Finds a field, or the nearest parent field if it is not written. */
  place(path: FieldPath): Place;
  /** Whether a field was already reported as wrong, so that nothing should be concluded from it; false for objects without errors. */
  isDoubtful?(path: FieldPath): boolean;
}

/** A checked object with the API server's defaults, and its source. */
export interface Sourced<T> {
  readonly object: T;
  readonly source: ObjectSource;
}

export type Labels = Readonly<Record<string, string>>;

export interface ObjectMeta {
  readonly name: string;
  /** "default" if the object names none. */
  readonly namespace: string;
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
}

export function fullName({ namespace, name }: Pick<ObjectMeta, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

export function compareFullNames(a: Sourced<{ metadata: ObjectMeta }>, b: Sourced<{ metadata: ObjectMeta }>): number {
  return compareText(fullName(a.object.metadata), fullName(b.object.metadata));
}

/** "app=web,tier=front", in kubectl's syntax. */
export function selectorWords(selector: Labels = {}): string {
  return Object.entries(selector)
    .map((label) => label.join('='))
    .join();
}

/** Equal for selectors that select the same. */
function sortedSelectorWords(selector: Labels = {}): string {
  return selectorWords(Object.fromEntries(Object.entries(selector).toSorted(([a], [b]) => compareText(a, b))));
}

/** "HTTPRoute shop/web". */
export function titleOfObject({
  kind,
  metadata,
}: {
  readonly kind: string;
  readonly metadata: Pick<ObjectMeta, 'namespace' | 'name'>;
}): string {
  return `${kind} ${fullName(metadata)}`;
}

/** The objects that endpoints are made from. */
export interface EndpointObjects {
  readonly services: readonly Sourced<Service>[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly endpoints: readonly Sourced<Endpoints>[];
  readonly pods: readonly Sourced<Pod>[];
  readonly workloads: readonly Sourced<Workload>[];
  readonly nodes: readonly Sourced<Node>[];
  readonly namespaces: readonly Sourced<Namespace>[];
}

export function addressesOfPod({ status }: Pick<Pod, 'status'>): readonly string[] {
  return (status?.addresses ?? []).map(({ text }) => text);
}

/** Annotations that ask for hints; the first wins if both are set. */
const modeAnnotations = ['service.kubernetes.io/topology-aware-hints', 'service.kubernetes.io/topology-mode'] as const;

/** Its value; '' without one. */
export function topologyMode({ metadata: { annotations } }: Pick<Service, 'metadata'>): string {
  const name = modeAnnotations.find((each) => Object.hasOwn(annotations, each));
  return (name && annotations[name]) ?? '';
}

/** The fields, besides ports, from which a Service's endpoints and their hints are made: each as text, without effect. */
export const usualSources = {
  selector: '',
  publishNotReadyAddresses: 'false',
  trafficDistribution: '',
  'topology-mode': '',
} as const;

export type SourceName = keyof typeof usualSources;

const sourceNames = Object.keys(usualSources) as readonly SourceName[];

/** As text, equal for Services whose endpoints are made from equal fields. */
export type EndpointSources = Readonly<Record<SourceName, string>>;

export function endpointSources(service: Service): EndpointSources {
  const { selector, publishNotReadyAddresses, trafficDistribution } = service.spec;
  return {
    selector: sortedSelectorWords(selector),
    publishNotReadyAddresses: String(publishNotReadyAddresses),
    trafficDistribution,
    'topology-mode': topologyMode(service),
  };
}

export function changedSources(old: EndpointSources, fresh: EndpointSources): readonly SourceName[] {
  return sourceNames.filter((name) => old[name] !== fresh[name]);
}

/** A Service with the API server's defaults. Addresses are checked text, as written. */
export interface Service {
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
    /** '' if none has been assigned yet, 'None' for a headless Service. */
    readonly clusterIP: string;
    readonly clusterIPs: readonly string[];
    readonly ipFamilies: readonly ('IPv4' | 'IPv6')[];
    readonly ipFamilyPolicy?: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack' | undefined;
    readonly externalName?: string | undefined;
    readonly externalIPs: readonly string[];
    readonly ports: readonly ServicePortSpec[];
    readonly sessionAffinity: 'None' | 'ClientIP';
    /** Seconds; the API server's default is 10800. Only used with ClientIP. */
    readonly sessionAffinityTimeout: number;
    readonly internalTrafficPolicy: 'Cluster' | 'Local';
    readonly externalTrafficPolicy: 'Cluster' | 'Local';
    /** 0 for none. */
    readonly healthCheckNodePort: number;
    /** The address requested from the load balancer; undefined if it may choose. */
    readonly loadBalancerIP?: string | undefined;
    readonly loadBalancerSourceRanges: readonly string[];
    readonly publishNotReadyAddresses: boolean;
    readonly allocateLoadBalancerNodePorts: boolean;
    /** Undefined means that its endpoints are not made from Pods. */
    readonly selector: Readonly<Record<string, string>> | undefined;
    readonly trafficDistribution: string;
  };
  readonly ingress: readonly LoadBalancerIngress[];
  /** Set if it is being deleted: controllers then no longer make slices for it. */
  readonly terminating?: true | undefined;
}

export interface ServicePortSpec {
  /** '' without a name, which is only allowed for a single port. */
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
  readonly targetPort: number | string;
  readonly nodePort: number;
}

/** kube-proxy does not program addresses of ipMode Proxy. */
export interface LoadBalancerIngress {
  readonly ip?: string | undefined;
  readonly hostname?: string | undefined;
  readonly ipMode: 'VIP' | 'Proxy';
}

/** An EndpointSlice, given or as the control plane would make it from Endpoints or Pods. */
export interface EndpointSlice {
  readonly metadata: ObjectMeta;
  readonly addressType: 'IPv4' | 'IPv6' | 'FQDN';
  readonly ports: readonly EndpointPort[];
  readonly endpoints: readonly SliceEndpoint[];
}

/** Matches the Service port with the same name and protocol. */
export interface EndpointPort {
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  /** Undefined means all ports; kube-proxy ignores such a slice port. */
  readonly port: number | undefined;
}

export interface SliceEndpoint {
  /** The first address, the only one kube-proxy uses; the API no longer allows a second. Undefined for a host name. */
  readonly address: Address | undefined;
  /** The whole list, including host names; absent if it is just the text of `address`, as usual. */
  readonly written?: readonly string[] | undefined;
  readonly hostname?: string | undefined;
  readonly status: EndpointStatus;
}

/** Many endpoints share one. */
export interface EndpointStatus {
  readonly nodeName: string | undefined;
  readonly zone: string | undefined;
  /** The conditions, with defaults for absent ones. */
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Set if it was made from a Pod that kpc assumed for a workload. */
  readonly assumed?: true | undefined;
}

export interface Endpoints {
  readonly metadata: ObjectMeta;
  readonly subsets: readonly {
    readonly addresses: readonly EndpointAddress[];
    readonly notReadyAddresses: readonly EndpointAddress[];
    readonly ports: readonly EndpointPort[];
  }[];
}

export interface EndpointAddress {
  readonly ip: string;
  readonly hostname?: string | undefined;
  readonly nodeName?: string | undefined;
}

export interface Node {
  readonly metadata: ObjectMeta;
  /** The version of its kube-proxy, else of its kubelet: "v1.34.2"; '' if the object has neither. */
  readonly kubernetesVersion: string;
  /** The output of uname -r on the node; undefined if the Node object lacks it. */
  readonly kernelVersion?: string | undefined;
  readonly podCIDRs: readonly string[];
  readonly addresses: readonly { readonly type: string; readonly address: string }[];
  /** The name of an assumed node, unless a flag renames it. */
  readonly assumedAs?: string | undefined;
  readonly ready: boolean;
  /** Allocatable CPUs in billionths of one; 0 if unknown. */
  readonly nanoCPUs: bigint;
  /** Taints that keep Pods away: NoSchedule and NoExecute. */
  readonly taints: readonly Taint[];
}

export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

export interface Toleration extends Taint {
  /** Whether it tolerates any value; with key '', any taint. Effect '' means all. */
  readonly isOfAny: boolean;
}

export interface Pod {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  readonly owner: Owner | undefined;
  readonly terminating: boolean;
  /** Undefined for a manifest: only a cluster knows a Pod's state. */
  readonly status: PodStatus | undefined;
  /** Set if kpc assumed the Pod for a workload in the input. */
  readonly assumed?: true | undefined;
}

export interface PodSpec {
  /** '' if unset, as for the other texts below. */
  readonly nodeName: string;
  readonly hostname: string;
  readonly subdomain: string;
  readonly hostNetwork: boolean;
  readonly tolerations: readonly Toleration[];
  /**
   * The labels that a Node needs, from nodeSelector and required node affinity: one of these alternatives; undefined if any Node will do.
   */
  readonly nodeTerms: readonly (readonly NodeRequirement[])[] | undefined;
  /** Whether it asks an admission webhook for containers that no manifest shows. */
  readonly isInjected: boolean;
  /** Ports of containers, then of sidecars: the order in which names are looked up. */
  readonly ports: readonly ContainerPort[];
  /** The probes and gates that decide when a Pod is ready, as text; '' if there are none. */
  readonly readiness: string;
  /** Ports that the network plugin opens on the Pod's node. */
  readonly hostPorts: readonly HostPort[];
}

export interface HostPort extends ContainerPort {
  readonly hostPort: number;
}

export interface ContainerPort {
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
}

export interface PodStatus {
  /** Whether all its containers have terminated for good. */
  readonly ended: boolean;
  readonly ready: boolean;
  readonly addresses: readonly Address[];
}

export interface Autoscaler {
  readonly metadata: ObjectMeta;
  readonly target: Owner;
  readonly least: number;
  readonly most: number;
}

export interface Workload {
  readonly kind: WorkloadKind;
  readonly metadata: ObjectMeta;
  readonly owner: Owner | undefined;
  /** The number of Pods; undefined for one on each Node. */
  readonly replicas: number | undefined;
  /** The ordinal in the name of its first Pod. */
  readonly firstOrdinal: number;
  /** Whether it lacks a selector and Pod labels, as only a patch of another workload does. */
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

export interface Owner {
  readonly kind: string;
  readonly name: string;
}

export interface ServiceCidr {
  readonly metadata: ObjectMeta;
  /** One network, or one of each family; Services that name no family get the first one's. */
  readonly cidrs: readonly Network[];
}

/** All requirements must match; with none, every label set matches. */
export type LabelSelector = readonly LabelRequirement[];

export interface NodeRequirement extends LabelRequirement {
  readonly of: 'nodeSelector' | 'affinity';
}

export interface LabelRequirement {
  readonly key: string;
  /** "In", "NotIn", "Exists" or "DoesNotExist"; of Nodes also "Gt" or "Lt". */
  readonly operator: string;
  readonly values: readonly string[];
}

/** In kubectl's syntax. */
export function requirementWords({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    case 'Gt':
      return `${key}>${values.join()}`;
    case 'Lt':
      return `${key}<${values.join()}`;
    case 'NotIn':
      return `${key} notin (${values.join()})`;
    default:
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join()})`;
  }
}

/** Undefined for an unknown operator. */
export function meetsRequirement(
  { key, operator, values }: LabelRequirement,
  labels: Readonly<Record<string, string>>,
): boolean | undefined {
  const label = Object.hasOwn(labels, key) ? labels[key] : undefined;
  const isListed = label !== undefined && values.includes(label);
  switch (operator) {
    case 'In':
      return isListed;
    case 'NotIn':
      return !isListed;
    case 'Exists':
      return label !== undefined;
    case 'DoesNotExist':
      return label === undefined;
    case 'Gt':
      return compareWhole(label, values[0]) > 0;
    case 'Lt':
      return compareWhole(label, values[0]) < 0;
    default:
      return undefined;
  }
}

/** NaN unless both are whole numbers. */
function compareWhole(label = '', value = ''): number {
  const [one, other] = [label, value].map((text) => (/^[+-]?\d{1,15}$/.test(text) ? Number(text) : Number.NaN));
  return (one ?? Number.NaN) - (other ?? Number.NaN);
}

/** Traffic that network plugins allow for Pods. kube-proxy ignores it. */
export interface NetworkPolicy {
  readonly metadata: ObjectMeta;
  readonly subject: LabelSelector;
  /** Undefined if the policy does not cover that direction. */
  readonly ingress: readonly PolicyRule[] | undefined;
  readonly egress: readonly PolicyRule[] | undefined;
}

/** An allowing rule from a policy's `ingress` or `egress`. */
export interface PolicyRule {
  readonly peers: readonly PolicyPeer[];
  readonly ports: readonly PolicyPort[];
}

/** `network` is undefined if it cannot be read. */
export type PolicyPeer =
  | {
      readonly kind: 'pods';
      readonly pods: LabelSelector;
      /** Undefined for the policy's own namespace. */
      readonly namespaces: LabelSelector | undefined;
    }
  | { readonly kind: 'block'; readonly network: Network | undefined; readonly except: readonly Network[] };

export interface PolicyPort {
  /** Undefined for any protocol, if the port is a name. */
  readonly protocol: 'TCP' | 'UDP' | 'SCTP' | undefined;
  /** Undefined for all ports; a name for the container port with that name. */
  readonly port: number | string | undefined;
  readonly endPort: number | undefined;
}

export const routeKinds = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const;

export interface Ingress {
  readonly kind: 'Ingress' | (typeof routeKinds)[number];
  readonly metadata: ObjectMeta;
  /** Creation time as the API server writes it; '' if the object lacks it. */
  readonly created: string;
  /** The Gateways it attaches to. Routes with a Service as parent are left out, because they belong to a mesh. Empty for an Ingress. */
  readonly parents: readonly RouteParent[];
  readonly routes: readonly IngressRoute[];
}

/** A Gateway or similar parent, optionally narrowed to a listener or port. */
export interface RouteParent {
  /** "Gateway shop/web". */
  readonly owner: string;
  readonly listener: string | undefined;
  readonly port: number | undefined;
}

export interface IngressRoute {
  /** Empty for any. */
  readonly hosts: readonly string[];
  /** Undefined for the default backend, and for protocols without paths. */
  readonly path: string | undefined;
  /** The controller defines what a pattern means. */
  readonly pathType: 'exact' | 'prefix' | 'suffix' | 'pattern';
  /** Whether it only takes requests with certain methods, headers or query parameters. */
  readonly isConditional: boolean;
  /** Each gets a share of the requests, according to the route's weights and filters. */
  readonly backends: readonly IngressBackend[];
}

export interface IngressBackend {
  /** Undefined for another kind of backend, described by `instead`. */
  readonly service: string | undefined;
  readonly instead: string;
  readonly namespace: string;
  readonly port: string;
  readonly isCopy: boolean;
}

export interface Gateway {
  readonly metadata: ObjectMeta;
  readonly created: string;
  /** For a ListenerSet: "Gateway shop/web"; undefined for a Gateway. */
  readonly of: string | undefined;
  readonly listeners: readonly GatewayListener[];
  /** For a Gateway: which namespaces' ListenerSets it accepts. */
  readonly sets: GatewayListener['from'];
}

export interface GatewayListener {
  readonly name: string;
  /** '' for any host. */
  readonly host: string;
  readonly port: number | undefined;
  readonly protocol: string;
  /** Which namespaces' routes it accepts; a selector matches namespaces. */
  readonly from: 'All' | 'Same' | 'None' | LabelSelector;
  /** The kinds of routes it accepts; empty for all that its protocol allows. */
  readonly kinds: readonly string[];
}

/** Lets routes in other namespaces use this namespace's Services. */
export interface ReferenceGrant {
  readonly metadata: ObjectMeta;
  /** The kinds and namespaces of routes: "HTTPRoute shop". */
  readonly from: readonly string[];
  /** Undefined for all Services. */
  readonly services: readonly (string | undefined)[];
}

export interface Namespace {
  readonly metadata: ObjectMeta;
  /** Whether its Pods ask an admission webhook for containers that no manifest shows. */
  readonly isInjected: boolean;
}

/** The settings that shape rules, from a KubeProxyConfiguration and the flags that override it, with kube-proxy's defaults. */
export interface ProxySettings extends SettingValues {
  readonly release: Release;
}

/** An object that kpc does not read, and that may make Pods: a CronJob, or one of a kind that another program defined. */
export interface PodMaker extends Pick<ObjectMeta, 'name' | 'namespace'> {
  readonly kind: string;
  /** "argoproj.io"; '' for the core group. */
  readonly group: string;
  /** Whether another program defined its kind, or makes Pods for it. These may then have labels that no template shows. */
  readonly isCustom: boolean;
  readonly templates: readonly Labels[];
  /** Other namespaces that it names: the Pods that it makes may be there. */
  readonly namespaces: readonly string[];
}
