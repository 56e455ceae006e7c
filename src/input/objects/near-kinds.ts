import { findNearest } from '../../base/find-nearest.ts';
import { workloadVersions } from './read-workload.ts';

/** Kind → the apiVersions that kpc reads it of, the newest first. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  Service: ['v1'],
  EndpointSlice: ['discovery.k8s.io/v1', 'discovery.k8s.io/v1beta1'],
  Endpoints: ['v1'],
  Node: ['v1'],
  Pod: ['v1'],
  ServiceCIDR: ['networking.k8s.io/v1', 'networking.k8s.io/v1beta1', 'networking.k8s.io/v1alpha1'],
  KubeProxyConfiguration: ['kubeproxy.config.k8s.io/v1alpha1'],
};

/** Kinds of lists that kubectl prints. */
const lists: Readonly<Record<string, readonly string[]>> = {
  List: ['v1'],
  ServiceList: ['v1'],
  EndpointSliceList: ['discovery.k8s.io/v1'],
  EndpointsList: ['v1'],
  NodeList: ['v1'],
  PodList: ['v1'],
};

/** A misspelling of a kind differs by these many letters at most: APIService and ServiceAccount are kinds of their own. */
const mostLetters = 2;

/**
 * The kind, with its apiVersion, that an object of no known kind is probably meant to be: "Service (v1)". Undefined for what
 * may well be a kind of its own, such as the Service of Knative.
 */
export function findMeantKind(apiVersion: string, kind: string, readsWorkloads: boolean): string | undefined {
  const known: Readonly<Record<string, readonly string[]>> = {
    ...kinds,
    ...lists,
    ...(readsWorkloads ? workloadVersions : {}),
  };
  const versions = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (versions?.includes(apiVersion)) return undefined;
  if (versions) {
    const near = findNearest(apiVersion, versions);
    return isOfKubernetes(apiVersion) || near !== undefined ? `${kind} (${near ?? versions[0] ?? ''})` : undefined;
  }
  if (!isOfKubernetes(apiVersion)) return undefined;
  if (Object.hasOwn(known, kind)) return undefined;
  const candidates = Object.keys(known).filter((each) => {
    return Math.abs(each.length - kind.length) <= mostLetters && isSameFamily(each, apiVersion);
  });
  const near = findNearest(kind, candidates, mostLetters);
  return near === undefined ? undefined : `${near} (${known[near]?.[0] ?? ''})`;
}

/** Whether the group of an apiVersion is one of Kubernetes' own, in which no other program can define a kind. */
function isOfKubernetes(apiVersion: string): boolean {
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  return !group.includes('.') || group.endsWith('.k8s.io');
}

/** A configuration of the kubelet is spelled much like that of kube-proxy. */
function isSameFamily(kind: string, apiVersion: string): boolean {
  return kind === 'KubeProxyConfiguration' ? /^kubeproxy/i.test(apiVersion) : true;
}
