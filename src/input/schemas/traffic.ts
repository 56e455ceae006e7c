import { integer, item, list, map, object, text, texts, type Schema } from '../../diagnostics/json-schema.ts';
import { metadata, port, protocol } from './shared.ts';

type Taken<S> = NonNullable<S extends Schema<infer T> ? T : never>;

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
    protocol: protocol as Schema<'TCP' | 'UDP' | 'SCTP' | '' | null>,
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

export type RawNetworkPolicy = Taken<typeof networkPolicySchema>;
export type RawPolicyRule = NonNullable<Taken<typeof policySpec>['ingress']>[number] &
  NonNullable<Taken<typeof policySpec>['egress']>[number];
export type RawSelector = Taken<typeof selector>;
export type RawIngressObject = Taken<typeof ingressSchema>;
export type RawBackend = Taken<typeof backend>;
export type RawNamespace = Taken<typeof namespaceSchema>;
