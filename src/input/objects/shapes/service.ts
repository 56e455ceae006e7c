import { anything, oneOf, worded } from '../../../base/json/schema.ts';
import { type ValueOf, flag, integer, item, list, object, text, texts } from '../../../base/json/kubernetes-schema.ts';
import {
  metadata,
  objectConditions,
  optionalPort,
  port,
  protocol,
  targetRef,
  textMap,
  typed,
  word,
  intOrString,
} from './shared.ts';

const seconds = integer(1, 86400, 'a timeout is a number of seconds from 1 to 86400 (one day)');

const ingressPorts = list(item({ port, protocol, error: text }));

const servicePort = item({
  name: text,
  protocol,
  port,
  targetPort: intOrString('a port number or the name of a container port'),
  nodePort: optionalPort,
  appProtocol: text,
});

const ingress = item({ ip: text, hostname: text, ipMode: word(['VIP', 'Proxy']), ports: ingressPorts });

const family = worded('IPv4 or IPv6', oneOf('IPv4', 'IPv6'));

export const serviceSchema = object({
  ...typed,
  metadata,
  spec: object({
    type: word(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName']),
    clusterIP: text,
    clusterIPs: texts,
    ipFamilies: list(family),
    ipFamilyPolicy: word(['SingleStack', 'PreferDualStack', 'RequireDualStack']),
    externalName: text,
    externalIPs: texts,
    loadBalancerIP: text,
    loadBalancerClass: text,
    ports: list(servicePort),
    sessionAffinity: word(['None', 'ClientIP']),
    sessionAffinityConfig: object({ clientIP: object({ timeoutSeconds: seconds }) }),
    internalTrafficPolicy: word(['Cluster', 'Local']),
    externalTrafficPolicy: word(['Cluster', 'Local']),
    healthCheckNodePort: optionalPort,
    loadBalancerSourceRanges: texts,
    publishNotReadyAddresses: flag,
    allocateLoadBalancerNodePorts: flag,
    trafficDistribution: text,
    selector: textMap,
    ipFamily: anything,
    topologyKeys: anything,
  }),
  status: object({
    conditions: objectConditions,
    loadBalancer: object({ ingress: list(ingress) }),
  }),
});

export type RawService = ValueOf<typeof serviceSchema>;
export type RawServicePort = ValueOf<typeof servicePort>;
export type RawIngress = ValueOf<typeof ingress>;

const endpointPort = item({ name: text, protocol, port: optionalPort, appProtocol: text });
const hintNames = list(item({ name: text }));

const sliceEndpoint = item({
  addresses: texts,
  conditions: object({ ready: flag, serving: flag, terminating: flag }),
  hostname: text,
  nodeName: text,
  zone: text,
  targetRef,
  deprecatedTopology: textMap,
  hints: object({ forZones: hintNames, forNodes: hintNames }),
});

export const endpointSliceSchema = object({
  ...typed,
  metadata,
  addressType: word(['IPv4', 'IPv6', 'FQDN']),
  ports: list(endpointPort),
  endpoints: list(sliceEndpoint),
});

const endpointAddress = item({ ip: text, hostname: text, nodeName: text, targetRef });

export const endpointsSchema = object({
  ...typed,
  metadata,
  subsets: list(
    item({ addresses: list(endpointAddress), notReadyAddresses: list(endpointAddress), ports: list(endpointPort) }),
  ),
});

export type RawEndpointSlice = ValueOf<typeof endpointSliceSchema>;
export type RawSliceEndpoint = ValueOf<typeof sliceEndpoint>;
export type RawEndpoints = ValueOf<typeof endpointsSchema>;
export type RawEndpointAddress = ValueOf<typeof endpointAddress>;
export type RawEndpointPort = ValueOf<typeof endpointPort>;
