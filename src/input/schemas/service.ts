import { flag, integer, item, list, object, text, texts, type Schema } from '../../diagnostics/json-schema.ts';
import { metadata, objectConditions, optionalPort, port, protocol, textMap, word } from './shared.ts';

const seconds = integer(1, 86400, 'a timeout is a number of seconds from 1 to 86400 (one day)', 'bad-timeout');

const ingressPorts = list(item({ port, protocol, error: text }));

/** What kpc reads of a v1 Service. Other fields may be there: kubectl prints them all. */
export const serviceSchema: Schema = object({
  metadata,
  spec: object({
    type: word(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'], 'bad-type'),
    clusterIP: text,
    clusterIPs: texts,
    ipFamilies: list({ ...word(['IPv4', 'IPv6'], 'bad-ip-family'), type: 'string', enum: ['IPv4', 'IPv6'] }),
    ipFamilyPolicy: word(['SingleStack', 'PreferDualStack', 'RequireDualStack'], 'bad-ip-family'),
    externalName: text,
    externalIPs: texts,
    loadBalancerIP: text,
    loadBalancerClass: text,
    ports: list({
      ...object({
        name: text,
        protocol,
        port,
        targetPort: { type: ['integer', 'string', 'null'], expected: 'a port number or the name of a container port' },
        nodePort: optionalPort,
        appProtocol: text,
      }),
      type: 'object',
    }),
    sessionAffinity: word(['None', 'ClientIP'], 'bad-session-affinity'),
    sessionAffinityConfig: object({ clientIP: object({ timeoutSeconds: seconds }) }),
    internalTrafficPolicy: word(['Cluster', 'Local'], 'bad-traffic-policy'),
    externalTrafficPolicy: word(['Cluster', 'Local'], 'bad-traffic-policy'),
    healthCheckNodePort: optionalPort,
    loadBalancerSourceRanges: texts,
    publishNotReadyAddresses: flag,
    allocateLoadBalancerNodePorts: flag,
    trafficDistribution: text,
    selector: textMap,
  }),
  status: object({
    conditions: objectConditions,
    loadBalancer: object({
      ingress: list({
        ...object({ ip: text, hostname: text, ipMode: word(['VIP', 'Proxy'], 'bad-ip-mode'), ports: ingressPorts }),
        type: 'object',
      }),
    }),
  }),
});

/** A Service as its schema has it. */
export interface RawService {
  readonly metadata?: RawMetadata | null;
  readonly spec?: {
    readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName' | '' | null;
    readonly clusterIP?: string | null;
    readonly clusterIPs?: readonly string[] | null;
    readonly ipFamilies?: readonly ('IPv4' | 'IPv6')[] | null;
    readonly ipFamilyPolicy?: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack' | '' | null;
    readonly externalName?: string | null;
    readonly externalIPs?: readonly string[] | null;
    readonly ports?: readonly RawServicePort[] | null;
    readonly sessionAffinity?: 'None' | 'ClientIP' | '' | null;
    readonly sessionAffinityConfig?: { readonly clientIP?: { readonly timeoutSeconds?: number | null } | null } | null;
    readonly internalTrafficPolicy?: 'Cluster' | 'Local' | '' | null;
    readonly externalTrafficPolicy?: 'Cluster' | 'Local' | '' | null;
    readonly healthCheckNodePort?: number | null;
    readonly loadBalancerIP?: string | null;
    readonly loadBalancerSourceRanges?: readonly string[] | null;
    readonly publishNotReadyAddresses?: boolean | null;
    readonly allocateLoadBalancerNodePorts?: boolean | null;
    readonly trafficDistribution?: string | null;
    readonly selector?: Readonly<Record<string, string | null>> | null;
  } | null;
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly RawIngress[] | null } | null;
  } | null;
}

export interface RawMetadata {
  readonly name?: string | null;
  readonly namespace?: string | null;
  readonly generateName?: string | null;
  readonly deletionTimestamp?: string | null;
  readonly labels?: Readonly<Record<string, string | null>> | null;
  readonly annotations?: Readonly<Record<string, string | null>> | null;
}

export interface RawServicePort {
  readonly name?: string | null;
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP' | '' | null;
  readonly port?: number | null;
  readonly targetPort?: number | string | null;
  readonly nodePort?: number | null;
}

export interface RawIngress {
  readonly ip?: string | null;
  readonly hostname?: string | null;
  readonly ipMode?: 'VIP' | 'Proxy' | '' | null;
}
