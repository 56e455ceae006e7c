import type { HeadlessEndpoint, ServiceHealthCheck, ServiceInfo } from '../cluster/model.ts';
import type { ServicePortSpec } from '../cluster/objects.ts';
import { families, protocols } from '../kernel/family.ts';
import { address, network, port } from './stored-address.ts';
import {
  boolean,
  listOf,
  objectOf,
  oneOf,
  optional,
  shape,
  text,
  wholeNumber,
  type Shaped,
} from '../base/json-shape.ts';

/** A Service of services.json. */
export type ServiceRecord = Omit<ServiceInfo, 'place' | 'endpointsGiven'>;

const protocol = oneOf(...protocols);
const family = oneOf(...families);
const portOrNone = wholeNumber(0, 65_535);

const service = objectOf<ServiceRecord>({
  namespace: text,
  name: text,
  type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
  skipped: optional(oneOf('headless', 'external-name', 'no-cluster-ip')),
  clusterIPs: listOf(text),
  externalName: optional(text),
  ports: listOf(
    objectOf<ServicePortSpec>({
      name: text,
      protocol,
      port: portOrNone,
      targetPort: shape<number | string>(
        'a string or a number',
        (value) => typeof value === 'string' || (typeof value === 'number' && Number.isSafeInteger(value)),
      ),
      nodePort: portOrNone,
    }),
  ),
  headlessEndpoints: listOf(objectOf<HeadlessEndpoint>({ address: text, hostname: optional(text), ready: boolean })),
});

const endpoint = objectOf({
  address,
  port,
  node: optional(text),
  zone: optional(text),
  ready: optional(boolean),
  serving: optional(boolean),
  terminating: optional(boolean),
  zoneHints: optional(listOf(text)),
  nodeHints: optional(listOf(text)),
  assumed: optional(oneOf(true)),
});

/** An endpoint of services.json: a field at its usual value is left out. */
export type EndpointRecord = Shaped<typeof endpoint>;

const servicePort = objectOf({
  namespace: text,
  service: text,
  port: text,
  protocol,
  family,
  clusterIP: address,
  number: port,
  nodePort: optional(portOrNone),
  externalIPs: optional(listOf(address)),
  hasIgnoredExternalIPs: optional(oneOf(true)),
  loadBalancerIPs: optional(listOf(address)),
  sourceRanges: optional(listOf(network)),
  affinitySeconds: optional(wholeNumber(0)),
  internalTrafficPolicy: optional(oneOf('Local')),
  externalTrafficPolicy: optional(oneOf('Local')),
  healthCheckNodePort: optional(portOrNone),
  scheduler: optional(text),
  forwarding: optional(oneOf('masquerade', 'direct', 'tunnel')),
  endpoints: listOf(endpoint),
});

/** A Service port of services.json, likewise. */
export type ServicePortRecord = Shaped<typeof servicePort>;

/** What services.json must be like: nothing that reads a Cluster looks at its fields again. */
export const servicesShape = objectOf({
  services: listOf(service),
  servicePorts: listOf(servicePort),
  healthChecks: listOf(
    objectOf<ServiceHealthCheck>({
      namespace: text,
      service: text,
      family,
      port,
      readyEndpoints: listOf(objectOf<ServiceHealthCheck['readyEndpoints'][number]>({ address: text, nodeName: text })),
    }),
  ),
});
