import type { Shape } from '../../../base/json-shape.ts';
import type { ValueOf } from '../../../base/kubernetes-shape.ts';
import { endpointSliceShape, endpointsShape, serviceShape } from './service.ts';
import { kubeProxyConfigurationShape } from './kube-proxy-configuration.ts';
import { nodeShape, podShape, serviceCidrShape, workloadShape } from './node.ts';
import { packetTestsShape } from './packet-tests.ts';
import {
  gatewayShape,
  ingressShape,
  namespaceShape,
  networkPolicyShape,
  referenceGrantShape,
  routeShape,
} from './traffic.ts';

/**
 * The kinds that kpc reads, and its own file of packet tests. A Workload is a Deployment, a StatefulSet and the like. The first
 * five have all fields that Kubernetes knows (up to 1.37).
 */
const shapesByKind = {
  Service: serviceShape,
  EndpointSlice: endpointSliceShape,
  Endpoints: endpointsShape,
  Node: nodeShape,
  ServiceCIDR: serviceCidrShape,
  Pod: podShape,
  Workload: workloadShape,
  KubeProxyConfiguration: kubeProxyConfigurationShape,
  PacketTests: packetTestsShape,
  NetworkPolicy: networkPolicyShape,
  Ingress: ingressShape,
  Route: routeShape,
  Gateway: gatewayShape,
  ReferenceGrant: referenceGrantShape,
  Namespace: namespaceShape,
};

/** What an object of each kind is when its shape accepts it. */
export type RawObjects = { readonly [Kind in keyof typeof shapesByKind]: ValueOf<(typeof shapesByKind)[Kind]> };

export const shapes: { readonly [Kind in keyof RawObjects]: Shape } = shapesByKind;
