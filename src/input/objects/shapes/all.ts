import {
  Autoscaler,
  Endpoints,
  EndpointSlice,
  Gateway,
  Ingress,
  KubeProxyConfiguration,
  Namespace,
  NetworkPolicy,
  Node,
  PacketTests,
  Pod,
  ReferenceGrant,
  Route,
  Service,
  ServiceCIDR,
  Workload,
} from '#checks';
import type { Check } from '../../../base/json/check.ts';

/**
 * The kinds that kpc reads, and its own file of packet tests. A Workload is a Deployment, a StatefulSet and the like. The first
 * five have all fields that Kubernetes knows (up to 1.37).
 */
const checksByKind = {
  Service,
  EndpointSlice,
  Endpoints,
  Node,
  ServiceCIDR,
  Pod,
  Workload,
  Autoscaler,
  KubeProxyConfiguration,
  PacketTests,
  NetworkPolicy,
  Ingress,
  Route,
  Gateway,
  ReferenceGrant,
  Namespace,
};

/** What an object of each kind is when its check accepts it. */
export type RawObjects = {
  readonly [Kind in keyof typeof checksByKind]: (typeof checksByKind)[Kind] extends Check<infer T>
    ? NonNullable<T>
    : never;
};

export const checks: { readonly [Kind in keyof RawObjects]: Check } = checksByKind;
