import type { Schema } from '../../diagnostics/json-schema.ts';
import { endpointSliceSchema, type RawEndpointSlice } from './endpoint-slice.ts';
import { endpointsSchema, type RawEndpoints } from './endpoints.ts';
import { kubeProxyConfigurationSchema, type KubeProxyConfig } from './kube-proxy-configuration.ts';
import { nodeSchema, type RawNode } from './node.ts';
import { packetTestsSchema, type RawPacketTests } from './packet-tests.ts';
import { podSchema, type RawPod } from './pod.ts';
import { serviceCidrSchema, type RawServiceCidr } from './service-cidr.ts';
import { serviceSchema, type RawService } from './service.ts';
import { ingressSchema, namespaceSchema, networkPolicySchema, type RawIngressObject, type RawNamespace, type RawNetworkPolicy } from './traffic.ts';
import { workloadSchema, type RawWorkload } from './workload.ts';

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
