import {
  anyOf,
  boolean,
  closed,
  listOf,
  objectOf,
  oneOf,
  optional,
  text,
  textThat,
  wholeNumber,
} from '../base/json/schema.ts';
import type { HeadlessEndpoint, ServiceHealthCheck, ServiceInfo } from '../cluster/model.ts';
import type { ServicePortSpec } from '../cluster/objects.ts';
import { families, protocols } from '../kernel/family.ts';
import { schedulers } from '../kernel/ipvs/ipvs.ts';
import { addressSchema, networkSchema, nodeNameSchema, portSchema } from './manifest-schema.ts';

/** A Service in services.json. */
export type ServiceRecord = Omit<ServiceInfo, 'place' | 'endpointsGiven'>;

const protocolSchema = oneOf(...protocols);
const familySchema = oneOf(...families);
const portOrNone = wholeNumber(0, 65_535);
const label = textThat('a name of Kubernetes', 'isLabel');
const portName = textThat('a port name', 'isPortName');
/** The longest session affinity that the API server accepts, in seconds: a day. */
const affinitySchema = wholeNumber(1, 86_400);

const serviceSchema = objectOf<ServiceRecord>({
  namespace: label,
  name: label,
  type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
  skipped: optional(oneOf('headless', 'external-name', 'no-cluster-ip')),
  clusterIPs: listOf(textThat('an IP address or None', 'isClusterIP')),
  externalName: optional(textThat('a DNS name', 'isDnsName')),
  ports: listOf(
    objectOf<ServicePortSpec>({
      name: portName,
      protocol: protocolSchema,
      port: portOrNone,
      targetPort: anyOf('a string or a number', text, wholeNumber(Number.MIN_SAFE_INTEGER)),
      nodePort: portOrNone,
    }),
  ),
  headlessEndpoints: listOf(
    objectOf<HeadlessEndpoint>({ address: addressSchema, hostname: optional(text), ready: boolean }),
  ),
});

export const endpointSchema = objectOf({
  address: addressSchema,
  port: portSchema,
  node: optional(text),
  zone: optional(text),
  ready: optional(boolean),
  serving: optional(boolean),
  terminating: optional(boolean),
  zoneHints: optional(listOf(text)),
  nodeHints: optional(listOf(text)),
  assumed: optional(oneOf(true)),
});

export const servicePortSchema = objectOf({
  namespace: label,
  service: label,
  port: portName,
  protocol: protocolSchema,
  family: familySchema,
  clusterIP: addressSchema,
  number: portSchema,
  nodePort: optional(portOrNone),
  externalIPs: optional(listOf(addressSchema)),
  hasIgnoredExternalIPs: optional(oneOf(true)),
  loadBalancerIPs: optional(listOf(addressSchema)),
  sourceRanges: optional(listOf(networkSchema)),
  affinitySeconds: optional(affinitySchema),
  internalTrafficPolicy: optional(oneOf('Local')),
  externalTrafficPolicy: optional(oneOf('Local')),
  healthCheckNodePort: optional(portOrNone),
  scheduler: optional(oneOf(...schedulers)),
  forwarding: optional(oneOf('masquerade', 'direct', 'tunnel')),
  endpoints: listOf(endpointSchema),
});

/** What services.json must be like: nothing that reads a Cluster looks at its fields again. */
export const servicesSchema = closed(
  objectOf({
    services: listOf(serviceSchema),
    servicePorts: listOf(servicePortSchema),
    healthChecks: listOf(
      objectOf<ServiceHealthCheck>({
        namespace: label,
        service: label,
        family: familySchema,
        port: portSchema,
        readyEndpoints: listOf(
          objectOf<ServiceHealthCheck['readyEndpoints'][number]>({ address: addressSchema, nodeName: nodeNameSchema }),
        ),
      }),
    ),
  }),
);
