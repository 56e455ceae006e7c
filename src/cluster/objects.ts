import type { Address, Network } from '../kernel/address.ts';
import { compareText } from '../kernel/compare.ts';
import type { Place } from '../kernel/place.ts';
import type { Release } from '../kube-proxy/releases.ts';
import type { SettingValues } from '../settings/table.ts';

export type FieldPath = readonly (string | number)[];

export interface ObjectSource {
  /** Finds a field, or the nearest parent if the field is not written. */
  place(path: FieldPath): Place;
  /** Reports whether a field is known to be wrong, so that no conclusion may be drawn from it. Absent if the object has no errors. */
  isDoubtful?(path: FieldPath): boolean;
}

/** An object that was checked and completed with the API server's defaults, and its source. */
export interface Sourced<T> {
  readonly object: T;
  readonly source: ObjectSource;
}

export type Labels = Readonly<Record<string, string>>;

export interface ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
}

const bookkeeping = /^(?:kubectl\.kubernetes\.io|meta\.helm\.sh|argocd\.argoproj\.io|deployment\.kubernetes\.io)\//;

/** Returns the annotations that may configure a controller. Leaves out those of tools that only keep track of what they applied. */
export function controllerAnnotations({
  annotations,
}: Partial<Pick<ObjectMeta, 'annotations'>>): ObjectMeta['annotations'] {
  return Object.fromEntries(Object.entries(annotations ?? {}).filter(([name]) => !bookkeeping.test(name)));
}

export function fullName({ namespace, name }: Pick<ObjectMeta, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

export function compareFullNames(a: Sourced<{ metadata: ObjectMeta }>, b: Sourced<{ metadata: ObjectMeta }>): number {
  return compareText(fullName(a.object.metadata), fullName(b.object.metadata));
}

export function selectorWords(selector: Labels = {}): string {
  return Object.entries(selector)
    .map((label) => label.join('='))
    .join();
}

function sortedSelectorWords(selector: Labels = {}): string {
  return selectorWords(Object.fromEntries(Object.entries(selector).toSorted(([a], [b]) => compareText(a, b))));
}

export function titleOfObject({
  kind,
  metadata,
}: {
  readonly kind: string;
  readonly metadata: Pick<ObjectMeta, 'namespace' | 'name'>;
}): string {
  return `${kind} ${fullName(metadata)}`;
}

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

/** Annotations that request hints. If both are set, the first one counts. */
const modeAnnotations = ['service.kubernetes.io/topology-aware-hints', 'service.kubernetes.io/topology-mode'] as const;

export function topologyMode({ metadata: { annotations } }: Pick<Service, 'metadata'>): string {
  const name = modeAnnotations.find((each) => Object.hasOwn(annotations, each));
  return (name && annotations[name]) ?? '';
}

/** The fields, besides ports, that determine a Service's endpoints and their hints, each with its default as text. */
export const usualSources = {
  selector: '',
  publishNotReadyAddresses: 'false',
  trafficDistribution: '',
  'topology-mode': '',
} as const;

export type SourceName = keyof typeof usualSources;

const sourceNames = Object.keys(usualSources) as readonly SourceName[];

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

/** A Service with the API server's defaults. Addresses were checked, but are kept as written. */
export interface Service {
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
    /** '' if none has been assigned yet; 'None' for a headless Service. */
    readonly clusterIP: string;
    readonly clusterIPs: readonly string[];
    readonly ipFamilies: readonly ('IPv4' | 'IPv6')[];
    readonly ipFamilyPolicy?: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack' | undefined;
    readonly externalName?: string | undefined;
    readonly externalIPs: readonly string[];
    readonly ports: readonly ServicePortSpec[];
    readonly sessionAffinity: 'None' | 'ClientIP';
    readonly sessionAffinityTimeout: number;
    readonly internalTrafficPolicy: 'Cluster' | 'Local';
    readonly externalTrafficPolicy: 'Cluster' | 'Local';
    readonly healthCheckNodePort: number;
    readonly loadBalancerIP?: string | undefined;
    readonly loadBalancerClass?: string | undefined;
    readonly loadBalancerSourceRanges: readonly string[];
    readonly publishNotReadyAddresses: boolean;
    readonly allocateLoadBalancerNodePorts: boolean;
    /** Undefined if the endpoints are not made from Pods. */
    readonly selector: Readonly<Record<string, string>> | undefined;
    readonly trafficDistribution: string;
  };
  readonly ingress: readonly LoadBalancerIngress[];
  /** Set if the Service is being deleted. Controllers no longer make slices for it. */
  readonly terminating?: true | undefined;
}

export interface ServicePortSpec {
  /** '' for a port without a name. Only a Service's single port may lack a name. */
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
  readonly targetPort: number | string;
  readonly nodePort: number;
}

/** An address of a load balancer. kube-proxy does not program addresses with ipMode Proxy. */
export interface LoadBalancerIngress {
  readonly ip?: string | undefined;
  readonly hostname?: string | undefined;
  readonly ipMode: 'VIP' | 'Proxy';
}

/** An EndpointSlice from the input, or as the control plane would make it from Endpoints or Pods. */
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
  /** Undefined means all ports. kube-proxy ignores such a slice port. */
  readonly port: number | undefined;
}

export interface SliceEndpoint {
  /** The first address, which is the only one that kube-proxy uses; the API no longer allows a second. Undefined for a host name. */
  readonly address: Address | undefined;
  /** All addresses and host names; absent in the usual case of one address written as in `address`. */
  readonly written?: readonly string[] | undefined;
  readonly hostname?: string | undefined;
  readonly status: EndpointStatus;
}

export interface EndpointStatus {
  readonly nodeName: string | undefined;
  readonly zone: string | undefined;
  /** The conditions, with defaults for absent ones. */
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Set if the endpoint comes from a Pod that kpc assumed for a workload. */
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
  /** The version of kube-proxy, else of the kubelet, such as "v1.34.2"; '' if the object has neither. */
  readonly kubernetesVersion: string;
  /** The output of `uname -r`; undefined if the object lacks it. */
  readonly kernelVersion?: string | undefined;
  readonly podCIDRs: readonly string[];
  readonly addresses: readonly { readonly type: string; readonly address: string }[];
  /** Set if the node runs Windows, which kpc does not compile for. */
  readonly isWindows?: true | undefined;
  /** The name of an assumed node before a flag renames it. */
  readonly assumedAs?: string | undefined;
  readonly ready: boolean;
  /** Allocatable CPUs in billionths of a CPU; 0 if unknown. */
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
  /** Whether every value is tolerated, or every taint if the key is ''. Effect '' means all effects. */
  readonly isOfAny: boolean;
}

export interface Pod {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  readonly owner: Owner | undefined;
  readonly terminating: boolean;
  readonly status: PodStatus | undefined;
  readonly assumed?: true | undefined;
}

export interface PodSpec {
  readonly nodeName: string;
  readonly hostname: string;
  readonly subdomain: string;
  readonly hostNetwork: boolean;
  readonly tolerations: readonly Toleration[];
  /** Alternatives from nodeSelector and required node affinity. A Node must meet at least one. Undefined if every Node fits. */
  readonly nodeTerms: readonly (readonly NodeRequirement[])[] | undefined;
  /** Whether the Pod asks an admission webhook to add containers, which no manifest shows. */
  readonly isInjected: boolean;
  /** Ports of containers, then of sidecars: the order in which a name is looked up. */
  readonly ports: readonly ContainerPort[];
  readonly readiness: string;
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
  /** Whether all containers have terminated for good. */
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
  /** The number of Pods; undefined for one Pod on each Node. */
  readonly replicas: number | undefined;
  readonly firstOrdinal: number;
  /** Whether the object lacks a selector and Pod labels, which shows that it is a patch for another workload. */
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
  /** One network, or one for each family. Services without a family get the family of the first network. */
  readonly cidrs: readonly Network[];
}

/** All requirements must match. Without requirements, every label set matches. */
export type LabelSelector = readonly LabelRequirement[];

export interface NodeRequirement extends LabelRequirement {
  readonly of: 'nodeSelector' | 'affinity';
}

export interface LabelRequirement {
  readonly key: string;
  /** "In", "NotIn", "Exists" or "DoesNotExist"; for Nodes also "Gt" or "Lt". */
  readonly operator: string;
  readonly values: readonly string[];
}

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

/** Reports whether labels have each of the wanted keys with its value. */
export function hasLabels(
  labels: Readonly<Record<string, string>>,
  wanted: readonly (readonly [key: string, value: string])[],
): boolean {
  return wanted.every(([key, value]) => labels[key] === value);
}

/** Returns undefined for an unknown operator. */
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

function compareWhole(label = '', value = ''): number {
  const [one, other] = [label, value].map((text) => (/^[+-]?\d{1,15}$/.test(text) ? Number(text) : Number.NaN));
  return (one ?? Number.NaN) - (other ?? Number.NaN);
}

/** The traffic that network plugins allow for Pods. kube-proxy ignores it. */
export interface NetworkPolicy {
  readonly metadata: ObjectMeta;
  readonly subject: LabelSelector;
  /** Undefined if the policy does not cover this direction. */
  readonly ingress: readonly PolicyRule[] | undefined;
  readonly egress: readonly PolicyRule[] | undefined;
}

export interface PolicyRule {
  readonly peers: readonly PolicyPeer[];
  readonly ports: readonly PolicyPort[];
}

/** A peer. `network` is undefined if kpc cannot read it. */
export type PolicyPeer =
  | {
      readonly kind: 'pods';
      readonly pods: LabelSelector;
      /** Undefined for the policy's own namespace. */
      readonly namespaces: LabelSelector | undefined;
    }
  | { readonly kind: 'block'; readonly network: Network | undefined; readonly except: readonly Network[] };

export interface PolicyPort {
  /** Undefined for a named port of any protocol. */
  readonly protocol: 'TCP' | 'UDP' | 'SCTP' | undefined;
  /** Undefined means all ports. A name stands for the container port with this name. */
  readonly port: number | string | undefined;
  readonly endPort: number | undefined;
}

export const routeKinds = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const;

export interface Ingress {
  readonly kind: 'Ingress' | (typeof routeKinds)[number];
  readonly metadata: ObjectMeta;
  /** The creation time as the API server writes it; '' if the object lacks it. */
  readonly created: string;
  /** The Gateways that the route attaches to; empty for an Ingress. Routes to a Service belong to a mesh and are not read. */
  readonly parents: readonly RouteParent[];
  readonly routes: readonly IngressRoute[];
}

/** The Gateway, or similar object, that a route attaches to; a listener or port narrows the choice. */
export interface RouteParent {
  readonly owner: string;
  readonly listener: string | undefined;
  readonly port: number | undefined;
}

export interface IngressRoute {
  /** Empty for any host. */
  readonly hosts: readonly string[];
  readonly path: string | undefined;
  /** The controller defines the meaning of a pattern. */
  readonly pathType: 'exact' | 'prefix' | 'suffix' | 'pattern';
  /** Whether only requests with certain methods, headers or query parameters match. */
  readonly isConditional: boolean;
  /** The backends, each with its share of the requests according to the route's weights and filters. */
  readonly backends: readonly IngressBackend[];
}

/** A backend that is not a Service. */
export type OtherBackend =
  { readonly kind: 'redirect' | 'other' } | { readonly kind: 'unknown-filter'; readonly filter: string };

export interface IngressBackend {
  /** Undefined if the backend is not a Service. `instead` then describes it. */
  readonly service: string | undefined;
  readonly instead: OtherBackend;
  readonly namespace: string;
  readonly port: string;
  readonly isCopy: boolean;
}

export interface Gateway {
  readonly metadata: ObjectMeta;
  readonly created: string;
  /** For a ListenerSet, its Gateway, such as "Gateway shop/web"; undefined for a Gateway. */
  readonly of: string | undefined;
  readonly listeners: readonly GatewayListener[];
  /** For a Gateway, the namespaces whose ListenerSets it accepts. */
  readonly sets: GatewayListener['from'];
}

export interface GatewayListener {
  readonly name: string;
  readonly host: string;
  readonly port: number | undefined;
  readonly protocol: string;
  /** The namespaces whose routes the listener accepts. A selector matches namespaces. */
  readonly from: 'All' | 'Same' | 'None' | LabelSelector;
  /** The kinds of routes that the listener accepts; empty for all that its protocol allows. */
  readonly kinds: readonly string[];
}

export interface ReferenceGrant {
  readonly metadata: ObjectMeta;
  /** The kinds and namespaces of routes, such as "HTTPRoute shop". */
  readonly from: readonly string[];
  /** Undefined for all Services. */
  readonly services: readonly (string | undefined)[];
}

export interface Namespace {
  readonly metadata: ObjectMeta;
  /** Whether the Pods ask an admission webhook for containers that no manifest shows. */
  readonly isInjected: boolean;
}

/** The settings that shape rules: a KubeProxyConfiguration and the flags that override it, with kube-proxy's defaults. */
export interface ProxySettings extends SettingValues {
  readonly release: Release;
}

/** An object that may make Pods but that kpc does not read, such as a CronJob, a Kafka or a HelmRelease. */
export interface PodMaker extends Pick<ObjectMeta, 'name' | 'namespace'> {
  readonly kind: string;
  /** "argoproj.io"; '' for the core group. */
  readonly group: string;
  /**
   * `templates`: only Pods that its templates show. `pods`: also Pods with labels that no template shows. `objects`: the objects in a chart
   * or repository. `unsaid`: unknown, because its spec is empty.
   */
  readonly makes: 'templates' | 'pods' | 'objects' | 'unsaid';
  readonly templates: readonly Labels[];
  /** Other namespaces named in the object. Its Pods may be in one of them. */
  readonly namespaces: readonly string[];
}
