import {
  closed,
  textThat,
  wholeNumber,
  amount,
  listOf,
  mapOf,
  matching,
  nullable,
  objectOf,
  oneOf,
  optional,
  text,
  anyOf,
  boolean,
  type Shaped,
} from '../base/json/schema.ts';
import { skipReasons } from '../kube-proxy/skipped.ts';
import type { AssignedService } from '../cluster/assign-addresses.ts';
import type {
  AssumedPod,
  AssumedWorkload,
  ServiceRange,
  HeadlessEndpoint,
  ServiceHealthCheck,
  ServiceInfo,
} from '../cluster/model.ts';
import { schedulers, type IpvsTimeouts } from '../kernel/ipvs/ipvs.ts';
import { proxyModes } from '../kube-proxy/modes.ts';
import { releaseRange } from '../kube-proxy/releases.ts';
import { settingsSchema } from '../settings/table.ts';
import type { BundleFileName } from './state-files.ts';
import type { EndpointSources, ServicePortSpec } from '../cluster/objects.ts';
import { families, protocols } from '../kernel/address.ts';

const addressSchema = textThat('an IP address', 'isAddress');
const networkSchema = textThat('a CIDR', 'isNetwork');
const nodeNameSchema = textThat("a node's name", 'isNodeName');
const plainText = textThat('plain text', 'isPrintable');
const portSchema = wholeNumber(1, 65_535);

export const assignedSchema = objectOf<AssignedService>({
  service: text,
  clusterIPs: listOf(addressSchema),
  nodePorts: mapOf(portSchema),
  healthCheckNodePort: optional(portSchema),
  loadBalancerIPs: optional(listOf(addressSchema)),
});

export const assumedSchema = objectOf<AssumedWorkload>({
  workload: text,
  pods: listOf(objectOf<AssumedPod>({ name: text, node: optional(text), addresses: listOf(addressSchema) })),
  unplaced: optional(oneOf(true)),
});

export const assumedHeadSchema = objectOf({
  node: optional(oneOf(true)),
  mode: optional(oneOf(true)),
  clusterCIDRs: optional(listOf(networkSchema)),
  /** The cluster's families. Recorded only if a Service gets its families from the cluster. */
  families: optional(listOf(oneOf(...families))),
});

export type AssumedHead = Shaped<typeof assumedHeadSchema>;

export const healthCheckSchema = objectOf({
  port: portSchema,
  /** The Service, as "namespace/name". */
  service: text,
  localEndpoints: objectOf({ ipv4: optional(wholeNumber(0)), ipv6: optional(wholeNumber(0)) }),
});

/** The schema of manifest.json, with keys in written order. Fields of a checked Manifest need no further checks. */
export const manifestSchema = closed(
  objectOf({
    formatVersion: wholeNumber(1),
    kpcVersion: text,
    /** The version of the kube-proxy that this state is for, such as "v1.36.3". It gives the release, which is not in the settings. */
    kubeProxyVersion: textThat(`the version of a kube-proxy of Kubernetes ${releaseRange}`, 'isKubeProxyVersion'),
    mode: oneOf(...proxyModes),
    /** Set if kpc-apply dump read the state from a node. There are then no Services. */
    dumped: optional(oneOf(true)),
    /** `name` is "" if no name was given. In a dump, it is the machine's name, which may be "WORKER_1". */
    node: objectOf({
      name: textThat("a node's name", 'isPrintable'),
      zone: plainText,
      podCIDRs: listOf(networkSchema),
      nodeIPs: objectOf({ ipv4: addressSchema, ipv6: addressSchema }),
      hostAddresses: listOf(addressSchema),
    }),
    families: listOf(oneOf('ipv4', 'ipv6')),
    /** The settings that determine the state. kpc-apply also uses them on the node, for conntrack and conn_reuse_mode. */
    settings: settingsSchema,
    /** Networks with their sources. kube-proxy drops packets to unused addresses of these networks. */
    serviceCidrs: optional(
      listOf(
        objectOf<{ readonly cidr: string; readonly from: ServiceRange['from'] }>({
          cidr: networkSchema,
          from: oneOf('ServiceCIDR', '--service-cluster-ip-range'),
        }),
      ),
    ),
    /** Timeouts in seconds for `ipvsadm --set`. null if kube-proxy does not set them. */
    ipvsTimeouts: nullable(objectOf<IpvsTimeouts>({ tcp: amount, tcpFin: amount, udp: amount })),
    /** The health checks, sorted by port. */
    healthChecks: listOf(healthCheckSchema),
    assigned: listOf(assignedSchema),
    assumedEndpoints: optional(listOf(assumedSchema)),
    /** The oldest version of each tool that can read the files. */
    tools: mapOf(text),
    counts: mapOf(wholeNumber(0)),
    /** The SHA-256 of each other file, in hex, keyed by file name. */
    files: mapOf<string, BundleFileName>(matching('a SHA-256 in hex', /^[0-9a-f]{64}$/)),
  }),
);

export type ServiceRecord = Omit<ServiceInfo, 'place' | 'endpointsGiven' | 'sources'>;

const protocolSchema = oneOf(...protocols);
const familySchema = oneOf(...families);
const portOrNone = wholeNumber(0, 65_535);
const label = textThat('a name of Kubernetes', 'isLabel');
const portName = textThat('a port name', 'isPortName');
/** The longest session affinity that the API server accepts is a day, in seconds. */
const affinitySchema = wholeNumber(1, 86_400);

const serviceSchema = objectOf<ServiceRecord>({
  namespace: label,
  name: label,
  type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
  skipped: optional(oneOf(...skipReasons)),
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
  node: optional(nodeNameSchema),
  zone: optional(textThat('a zone', 'isLabelValue')),
  ready: optional(boolean),
  serving: optional(boolean),
  terminating: optional(boolean),
  zoneHints: optional(listOf(plainText)),
  nodeHints: optional(listOf(plainText)),
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

/** A golden's record of the sources of a Service's endpoints. */
export const sourcesSchema = closed(
  objectOf<Partial<EndpointSources>>({
    selector: optional(text),
    publishNotReadyAddresses: optional(text),
    trafficDistribution: optional(text),
    'topology-mode': optional(text),
  }),
);

/** The schema of services.json. After this check, a Cluster's fields need no further checks. */
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

export const signatureSchema = objectOf({
  keyId: matching('the id of a key', /^[0-9a-f]{16}$/),
  serial: wholeNumber(0),
  bytes: wholeNumber(0),
  signature: matching('a signature in base64', /^[A-Za-z0-9+/]{86}==$/),
});
