import type { HeadlessEndpoint, ServiceHealthCheck, ServiceInfo, ServicePort } from '../cluster/model.ts';
import type { ServicePortSpec } from '../cluster/objects.ts';
import { families, protocols } from '../kernel/family.ts';
import { address, network, port } from './address-shapes.ts';

import { boolean, listOf, objectOf, oneOf, optional, shape, text, wholeNumber } from '../base/shape.ts';

/** The records are the file's format: fields at their usual value are left out. */
export type ServiceRecord = Omit<ServiceInfo, 'place' | 'endpointsGiven'>;

export interface ServicePortRecord {
  readonly namespace: string;
  readonly service: string;
  readonly port: string;
  readonly protocol: ServicePort['protocol'];
  readonly family: ServicePort['family'];
  readonly clusterIP: string;
  readonly number: number;
  readonly nodePort?: number | undefined;
  readonly externalIPs?: readonly string[] | undefined;
  readonly hasIgnoredExternalIPs?: true | undefined;
  readonly loadBalancerIPs?: readonly string[] | undefined;
  readonly sourceRanges?: readonly string[] | undefined;
  readonly affinitySeconds?: number | undefined;
  readonly internalTrafficPolicy?: 'Local' | undefined;
  readonly externalTrafficPolicy?: 'Local' | undefined;
  readonly healthCheckNodePort?: number | undefined;
  readonly scheduler?: string | undefined;
  readonly forwarding?: ServicePort['forwarding'] | undefined;
  readonly endpoints: readonly EndpointRecord[];
}

/** services.json. */
export interface ServicesFile {
  readonly services: readonly ServiceRecord[];
  readonly servicePorts: readonly ServicePortRecord[];
  readonly healthChecks: readonly ServiceHealthCheck[];
}

export interface EndpointRecord {
  readonly address: string;
  readonly port: number;
  readonly node?: string | undefined;
  readonly zone?: string | undefined;
  readonly ready?: boolean | undefined;
  readonly serving?: boolean | undefined;
  readonly terminating?: boolean | undefined;
  readonly zoneHints?: readonly string[] | undefined;
  readonly nodeHints?: readonly string[] | undefined;
  readonly assumed?: true | undefined;
}

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

const servicePort = objectOf<ServicePortRecord>({
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
  endpoints: listOf(
    objectOf<EndpointRecord>({
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
    }),
  ),
});

/** What services.json must be like: nothing that reads a Cluster looks at its fields again. */
export const servicesShape = objectOf<ServicesFile>({
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
