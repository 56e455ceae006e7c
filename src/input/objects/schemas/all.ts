import type { DescribedValue, Schema } from '../../../diagnostics/json-schema.ts';
import { endpointSliceSchema, endpointsSchema, serviceSchema } from './service.ts';
import { kubeProxyConfigurationSchema } from './kube-proxy-configuration.ts';
import { nodeSchema, podSchema, serviceCidrSchema, workloadSchema } from './node.ts';
import { packetTestsSchema } from './packet-tests.ts';
import { ingressSchema, namespaceSchema, networkPolicySchema } from './traffic.ts';

/**
 * The kinds that kpc reads, and its own file of packet tests. A Workload is a Deployment, a StatefulSet and the like. The schemas
 * of the first five have all fields that Kubernetes knows (up to 1.37).
 */
const allSchemas = {
  Service: serviceSchema,
  EndpointSlice: endpointSliceSchema,
  Endpoints: endpointsSchema,
  Node: nodeSchema,
  ServiceCIDR: serviceCidrSchema,
  Pod: podSchema,
  Workload: workloadSchema,
  KubeProxyConfiguration: kubeProxyConfigurationSchema,
  PacketTests: packetTestsSchema,
  NetworkPolicy: networkPolicySchema,
  Ingress: ingressSchema,
  Namespace: namespaceSchema,
};

/** What an object of each kind is when its schema takes it. */
export type RawObjects = { readonly [Kind in keyof typeof allSchemas]: DescribedValue<(typeof allSchemas)[Kind]> };

export const schemas: { readonly [Kind in keyof RawObjects]: Schema } = allSchemas;
