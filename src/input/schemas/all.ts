import type { Schema } from '../../diagnostics/json-schema.ts';
import { endpointSliceSchema } from './endpoint-slice.ts';
import type { RawEndpointSlice } from './endpoint-slice.ts';
import { endpointsSchema } from './endpoints.ts';
import type { RawEndpoints } from './endpoints.ts';
import { kubeProxyConfigurationSchema } from './kube-proxy-configuration.ts';
import type { KubeProxyConfig } from './kube-proxy-configuration.ts';
import { nodeSchema } from './node.ts';
import type { RawNode } from './node.ts';
import { packetTestsSchema } from './packet-tests.ts';
import type { RawPacketTests } from './packet-tests.ts';
import { podSchema } from './pod.ts';
import type { RawPod } from './pod.ts';
import { serviceCidrSchema } from './service-cidr.ts';
import type { RawServiceCidr } from './service-cidr.ts';
import { serviceSchema } from './service.ts';
import type { RawService } from './service.ts';
import { ingressSchema, namespaceSchema, networkPolicySchema } from './traffic.ts';
import type { RawIngressObject, RawNamespace, RawNetworkPolicy } from './traffic.ts';
import { workloadSchema } from './workload.ts';
import type { RawWorkload } from './workload.ts';

/** The kinds that kpc reads, and its own file of packet tests, and what each is when its schema takes it. */
export interface RawObjects {
  Service: RawService;
  EndpointSlice: RawEndpointSlice;
  Endpoints: RawEndpoints;
  Node: RawNode;
  Pod: RawPod;
  /** A Deployment, a StatefulSet and the like. */
  Workload: RawWorkload;
  ServiceCIDR: RawServiceCidr;
  KubeProxyConfiguration: KubeProxyConfig;
  PacketTests: RawPacketTests;
  NetworkPolicy: RawNetworkPolicy;
  Ingress: RawIngressObject;
  Namespace: RawNamespace;
}

export const schemas: { readonly [Kind in keyof RawObjects]: Schema } = {
  Service: serviceSchema,
  EndpointSlice: endpointSliceSchema,
  Endpoints: endpointsSchema,
  Node: nodeSchema,
  Pod: podSchema,
  Workload: workloadSchema,
  ServiceCIDR: serviceCidrSchema,
  KubeProxyConfiguration: kubeProxyConfigurationSchema,
  PacketTests: packetTestsSchema,
  NetworkPolicy: networkPolicySchema,
  Ingress: ingressSchema,
  Namespace: namespaceSchema,
};
