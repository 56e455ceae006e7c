import { integer, item, list, map, object, text, texts, type DescribedValue, type Schema } from '../../../diagnostics/json-schema.ts';
import { metadata, port, protocol } from './shared.ts';

const portOrName: Schema<number | string | null> = {
  type: ['integer', 'string', 'null'],
  expected: 'a port number or its name',
};

const requirement = item({ key: text, operator: text, values: texts });

const selector = object({
  matchLabels: map<string>({ type: 'string', expected: 'a string' }, 'a mapping of strings'),
  matchExpressions: list(requirement),
});

const peers = list(
  item({
    podSelector: selector,
    namespaceSelector: selector,
    ipBlock: object({ cidr: text, except: texts }),
  }),
);

const policyPorts = list(
  item({
    protocol,
    port: portOrName,
    endPort: integer(1, 65535, 'a port is a number from 1 to 65535', 'bad-port'),
  }),
);

const policySpec = object({
  podSelector: selector,
  policyTypes: texts,
  ingress: list(item({ from: peers, ports: policyPorts })),
  egress: list(item({ to: peers, ports: policyPorts })),
});

/** What kpc reads of a NetworkPolicy of networking.k8s.io/v1. */
export const networkPolicySchema = object({ metadata, spec: policySpec });

const backend = object({
  service: object({ name: text, port: object({ number: port, name: text }) }),
});

/** What kpc reads of an Ingress of networking.k8s.io/v1. */
export const ingressSchema = object({
  metadata,
  spec: object({
    defaultBackend: backend,
    tls: list(item({ hosts: texts })),
    rules: list(item({ host: text, http: object({ paths: list(item({ path: text, pathType: text, backend })) }) })),
  }),
  status: object({ loadBalancer: object({ ingress: list(item({ ip: text, hostname: text })) }) }),
});

/** What kpc reads of a v1 Namespace. */
export const namespaceSchema = object({ metadata });

export type RawNetworkPolicy = DescribedValue<typeof networkPolicySchema>;
export type RawPolicyRule = NonNullable<DescribedValue<typeof policySpec>['ingress']>[number] &
  NonNullable<DescribedValue<typeof policySpec>['egress']>[number];
export type RawSelector = DescribedValue<typeof selector>;
export type RawIngressObject = DescribedValue<typeof ingressSchema>;
export type RawBackend = DescribedValue<typeof backend>;
export type RawNamespace = DescribedValue<typeof namespaceSchema>;
