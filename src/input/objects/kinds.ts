import { findNearest } from '../../base/names.ts';
import type {
  Autoscaler,
  EndpointSlice,
  Endpoints,
  Gateway,
  Ingress,
  Namespace,
  NetworkPolicy,
  Node,
  Pod,
  ReferenceGrant,
  Service,
  ServiceCidr,
  Sourced,
  Workload,
  WorkloadKind,
  routeKinds,
} from '../../cluster/objects.ts';
import { type CommonNames, readServiceCidr } from './check-values.ts';
import { readEndpointSlice, readEndpoints } from './read-endpoints.ts';
import {
  readGateway,
  readListenerSet,
  readIngress,
  readReferenceGrant,
  readRoute,
  readNetworkPolicy,
} from './read-traffic.ts';
import { readAutoscaler, readNamespace, readNode, readPod, readWorkload } from './read-node-and-pod.ts';
import { readService } from './read-service.ts';
import type { Report } from './report.ts';
import { validate, type RawObjects } from './validate.ts';
import type { KubeProxyConfig } from './shapes/kube-proxy-configuration.ts';

interface ObjectTypes {
  services: Service;
  slices: EndpointSlice;
  /** v1 Endpoints as read. mirrorEndpoints makes slices from them. */
  endpoints: Endpoints;
  nodes: Node;
  serviceCidrs: ServiceCidr;
  pods: Pod;
  /** This list and `autoscalers` are filled only on request. Otherwise their objects count as skipped. */
  workloads: Workload;
  autoscalers: Autoscaler;
  policies: NetworkPolicy;
  /** This list and the following ones are filled only on request. Otherwise their objects count as skipped. */
  ingresses: Ingress;
  gateways: Gateway;
  referenceGrants: ReferenceGrant;
  namespaces: Namespace;
  configs: KubeProxyConfig;
}

export type ObjectLists = { readonly [List in keyof ObjectTypes]: Sourced<ObjectTypes[List]>[] };

export type UnreadLists = ReadonlySet<keyof ObjectLists>;

interface Readers {
  readonly names: CommonNames;
}

interface Kind {
  /** The apiVersions that kpc reads, newest first. */
  readonly versions: readonly string[];
  /**
   * Which commands read the kind. All other commands count its objects as ignored and do not check them. All commands read "always". trace,
   * test, lint, compile --check and comparisons of two inputs also read "traffic". compile, describe, migrate and comparisons of two modes
   * or releases do not, because they only concern kube-proxy's rules.
   */
  readonly group: 'always' | 'workloads' | 'traffic';
  readonly list: keyof ObjectLists;
  readonly read: (value: unknown, report: Report, readers: Readers, into: ObjectLists) => void;
}

function defineKind<Name extends keyof RawObjects, List extends keyof ObjectTypes>(
  group: Kind['group'],
  list: List,
  versions: readonly string[],
  shape: Name,
  read: (raw: RawObjects[Name], report: Report, names: CommonNames) => ObjectTypes[List],
): Kind {
  return {
    versions,
    group,
    list,
    read: (value, report, { names }, into) => {
      const raw = validate(shape, value, report);
      const object = raw === undefined ? undefined : read(raw, report, names);
      // Keep a configuration with errors, so that other faults in its settings are reported in the same run.
      if (object === undefined || (report.hasErrors && list !== 'configs')) return;
      into[list].push({ object, source: report.hasErrors ? report : report.source });
    },
  };
}

/** Clusters before 1.16 served the old versions. */
function workload(kind: WorkloadKind, ...versions: readonly string[]): Kind {
  return defineKind('workloads', 'workloads', versions, 'Workload', (raw, report, names) => {
    return readWorkload(kind, raw, report, names);
  });
}

function defineRouteKind(kind: (typeof routeKinds)[number], ...versions: readonly string[]): Kind {
  return defineKind('traffic', 'ingresses', versions, 'Route', (raw, report, names) =>
    readRoute(kind, raw, report, names),
  );
}

function listenerSet(version: string): Kind {
  return defineKind('traffic', 'gateways', [version], 'Gateway', readListenerSet);
}

const [gateways, gatewaysBeta, gatewaysAlpha] = ['v1', 'v1beta1', 'v1alpha2'].map(
  (version) => `gateway.networking.k8s.io/${version}`,
) as [string, string, string];

const slice = 'discovery.k8s.io/v1';
const apps = ['apps/v1', 'apps/v1beta2'] as const;
const networking = 'networking.k8s.io/v1';

const kinds: Readonly<Record<string, Kind>> = {
  Service: defineKind('always', 'services', ['v1'], 'Service', readService),
  EndpointSlice: defineKind('always', 'slices', [slice], 'EndpointSlice', readEndpointSlice),
  Endpoints: defineKind('always', 'endpoints', ['v1'], 'Endpoints', readEndpoints),
  Node: defineKind('always', 'nodes', ['v1'], 'Node', readNode),
  ServiceCIDR: defineKind('always', 'serviceCidrs', [networking, `${networking}beta1`], 'ServiceCIDR', readServiceCidr),
  Pod: defineKind('always', 'pods', ['v1'], 'Pod', readPod),
  KubeProxyConfiguration: defineKind(
    'always',
    'configs',
    ['kubeproxy.config.k8s.io/v1alpha1'],
    'KubeProxyConfiguration',
    (raw) => raw,
  ),
  Deployment: workload('Deployment', ...apps, 'apps/v1beta1', 'extensions/v1beta1'),
  StatefulSet: workload('StatefulSet', ...apps, 'apps/v1beta1'),
  DaemonSet: workload('DaemonSet', ...apps, 'extensions/v1beta1'),
  ReplicaSet: workload('ReplicaSet', ...apps, 'extensions/v1beta1'),
  ReplicationController: workload('ReplicationController', 'v1'),
  Job: workload('Job', 'batch/v1'),
  HorizontalPodAutoscaler: defineKind(
    'workloads',
    'autoscalers',
    ['autoscaling/v2', 'autoscaling/v1', 'autoscaling/v2beta2'],
    'Autoscaler',
    readAutoscaler,
  ),
  NetworkPolicy: defineKind('traffic', 'policies', [networking], 'NetworkPolicy', readNetworkPolicy),
  Ingress: defineKind('traffic', 'ingresses', [networking], 'Ingress', readIngress),
  HTTPRoute: defineRouteKind('HTTPRoute', gateways, gatewaysBeta, gatewaysAlpha),
  GRPCRoute: defineRouteKind('GRPCRoute', gateways, gatewaysAlpha),
  TLSRoute: defineRouteKind('TLSRoute', gateways, 'gateway.networking.k8s.io/v1alpha3', gatewaysAlpha),
  TCPRoute: defineRouteKind('TCPRoute', gateways, gatewaysAlpha),
  UDPRoute: defineRouteKind('UDPRoute', gateways, gatewaysAlpha),
  Gateway: defineKind('traffic', 'gateways', [gateways, gatewaysBeta, gatewaysAlpha], 'Gateway', readGateway),
  ListenerSet: listenerSet(gateways),
  XListenerSet: listenerSet('gateway.networking.x-k8s.io/v1alpha1'),
  ReferenceGrant: defineKind(
    'traffic',
    'referenceGrants',
    [gateways, gatewaysBeta, gatewaysAlpha],
    'ReferenceGrant',
    readReferenceGrant,
  ),
  Namespace: defineKind('traffic', 'namespaces', ['v1'], 'Namespace', readNamespace),
};

export function emptyObjectLists(): ObjectLists {
  const lists = Object.values(kinds).map(({ list }) => [list, []] as const);
  return Object.fromEntries(lists) as unknown as ObjectLists;
}

/** Lists that are not requested from a cluster, because slices and pods have the same information, or the API server has no such object. */
const unasked: ReadonlySet<keyof ObjectLists> = new Set(['endpoints', 'workloads', 'autoscalers', 'configs']);

/** Cluster-wide policies that kpc does not read. If a cluster has any of these policies, the effect of NetworkPolicies is unknown. */
const unreadPolicies = ['AdminNetworkPolicy', 'BaselineAdminNetworkPolicy', 'ClusterNetworkPolicy'].map(
  (kind) => [kind, { versions: ['policy.networking.k8s.io/v1alpha2'], list: 'policies' }] as const,
);

/** The resources to request from a cluster (as in kubectl api-resources -o name), each with the list that it fills or makes uncertain. */
export const resources = [...Object.entries<Pick<Kind, 'versions' | 'list'>>(kinds), ...unreadPolicies].flatMap(
  ([
    kind,
    {
      versions: [version = ''],
      list,
    },
  ]) => {
    const plural = `${kind.toLowerCase()}s`.replace(/cys$/, 'cies').replace(/sss$/, 'sses');
    const group = version.includes('/') ? `.${version.slice(0, version.indexOf('/'))}` : '';
    return unasked.has(list) ? [] : [{ name: `${plural}${group}`, list }];
  },
);

export interface AskedKinds {
  readonly workloads: boolean;
  readonly traffic: boolean;
}

function kindNamed(name: string): Kind | undefined {
  return Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}

export function findReader(apiVersion: string, kind: string, asked: AskedKinds): Kind['read'] | undefined {
  const known = kindNamed(kind);
  return known?.versions.includes(apiVersion) && isAsked(known, asked) ? known.read : undefined;
}

function isAsked({ group }: Kind, asked: AskedKinds): boolean {
  return group === 'always' || asked[group];
}

/** API groups whose objects neither make Services or Pods nor touch packets. */
const idleGroups =
  /^(?:[^/]+\.)?(?:cert-manager\.io|coreos\.com|external-secrets\.io|bitnami\.com|velero\.io|kyverno\.io|argocd-image-updater\.argoproj\.io)\//;

/**
 * Reports whether an object acts beside kube-proxy's rules: it routes to Services, refuses packets, is a workload that kpc was not asked to
 * read, or is another program's, which may also make Services and Pods.
 */
export function actsBesideRules(apiVersion: string, kind: string, asked: AskedKinds): boolean {
  const known = kindNamed(kind);
  if (known?.versions.includes(apiVersion))
    return known.list === 'workloads' ? !asked.workloads : known.group === 'traffic' && known.list !== 'namespaces';
  return kind.endsWith('NetworkPolicy') || !(isOfKubernetes(apiVersion) || idleGroups.test(apiVersion));
}

/** Reports whether kpc reads a kind with this name, but only in other versions. */
export function isOfOtherVersion(apiVersion: string, kind: string): boolean {
  const known = kindNamed(kind);
  return known !== undefined && known.group !== 'traffic' && !known.versions.includes(apiVersion);
}

/** Reports whether the API group is reserved for Kubernetes, so that no other program can define a kind in it. */
export function isOfKubernetes(apiVersion: string): boolean {
  return /^(?:[^/]*$|[^./]+\/|[^/]+\.k8s\.io\/)/.test(apiVersion);
}

/**
 * The number of wrong letters in a misspelled kind. APIService and ServiceAccount differ from Service by more, and are kinds of their own.
 */
const mostLetters = 2;

/** Returns the kind that an unknown one probably means: "Service (v1)". Undefined for another program's kind, such as Knative's Service. */
export function findMeantKind(apiVersion: string, kind: string, asked: AskedKinds): string | undefined {
  const own = kindNamed(kind);
  // The first version of ServiceCIDR had other fields.
  const isKnown = own?.versions.includes(apiVersion) || apiVersion === 'networking.k8s.io/v1alpha1';
  if (own) {
    const near = own.group === 'always' && !isKnown ? findNearest(apiVersion, own.versions) : undefined;
    const isMeant = near !== undefined || (own.group === 'always' && !isKnown && isOfKubernetes(apiVersion));
    return isMeant ? `${kind} (${near ?? own.versions[0] ?? ''})` : undefined;
  }
  const candidates = Object.entries(kinds).flatMap(([name, known]) => {
    const isNear = Math.abs(name.length - kind.length) <= mostLetters;
    return isNear && known.group !== 'traffic' && isAsked(known, asked) ? [name] : [];
  });
  const near = isOfKubernetes(apiVersion) ? findNearest(kind, candidates, mostLetters) : undefined;
  return near === undefined ? undefined : `${near} (${kindNamed(near)?.versions[0] ?? ''})`;
}
