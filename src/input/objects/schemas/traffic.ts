import { integer, list, map, openItem, openObject, text, texts, type DescribedValue, type Schema } from '../../../diagnostics/json-schema.ts';
import { metadata, port, protocol } from './shared.ts';

const portOrName: Schema<number | string | null> = {
  type: ['integer', 'string', 'null'],
  expected: 'a port number or its name',
};

const requirement = openItem({ key: text, operator: text, values: texts });

const selector = openObject({
  matchLabels: map<string>({ type: 'string', expected: 'a string' }, 'a mapping of strings'),
  matchExpressions: list(requirement),
});

const peers = list(
  openItem({
    podSelector: selector,
    namespaceSelector: selector,
    ipBlock: openObject({ cidr: text, except: texts }),
  }),
);

const policyPorts = list(
  openItem({
    protocol,
    port: portOrName,
    endPort: integer(1, 65535, 'a port is a number from 1 to 65535'),
  }),
);

const policySpec = openObject({
  podSelector: selector,
  policyTypes: texts,
  ingress: list(openItem({ from: peers, ports: policyPorts })),
  egress: list(openItem({ to: peers, ports: policyPorts })),
});

/** What kpc reads of a NetworkPolicy of networking.k8s.io/v1. */
export const networkPolicySchema = openObject({ metadata, spec: policySpec });

const backend = openObject({
  service: openObject({ name: text, port: openObject({ number: port, name: text }) }),
});

/** What kpc reads of an Ingress of networking.k8s.io/v1. */
export const ingressSchema = openObject({
  metadata,
  spec: openObject({
    defaultBackend: backend,
    rules: list(openItem({ host: text, http: openObject({ paths: list(openItem({ path: text, pathType: text, backend })) }) })),
  }),
});

/** What kpc reads of a v1 Namespace. */
export const namespaceSchema = openObject({ metadata });

export type RawNetworkPolicy = DescribedValue<typeof networkPolicySchema>;
export type RawPolicyRule = NonNullable<DescribedValue<typeof policySpec>['ingress']>[number] &
  NonNullable<DescribedValue<typeof policySpec>['egress']>[number];
export type RawSelector = DescribedValue<typeof selector>;
export type RawIngressObject = DescribedValue<typeof ingressSchema>;
export type RawBackend = DescribedValue<typeof backend>;
