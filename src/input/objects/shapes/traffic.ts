import { anyOf, nullable, text as string } from '../../../base/json/schema.ts';
import {
  integer,
  list,
  map,
  object,
  openItem,
  openObject,
  text,
  texts,
  type ValueOf,
} from '../../../base/json/kubernetes-schema.ts';
import { intOrString, metadata, port, protocol, word } from './shared.ts';

const portOrName = intOrString('a port number or its name');

const requirement = openItem({ key: text, operator: text, values: texts });

/** Closed, because a selector whose field is misspelled would select everything. */
const selector = object({
  matchLabels: map(string, 'a mapping of strings'),
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
    endPort: port,
  }),
);

const policySpec = openObject({
  podSelector: selector,
  policyTypes: texts,
  ingress: list(openItem({ from: peers, ports: policyPorts })),
  egress: list(openItem({ to: peers, ports: policyPorts })),
});

export const networkPolicySchema = openObject({ metadata, spec: policySpec });

const backend = openObject({
  service: openObject({ name: text, port: openObject({ number: port, name: text }) }),
});

export const ingressSchema = openObject({
  metadata,
  spec: openObject({
    defaultBackend: backend,
    rules: list(
      openItem({ host: text, http: openObject({ paths: list(openItem({ path: text, pathType: text, backend })) }) }),
    ),
  }),
});

const reference = { group: text, kind: text, namespace: text, name: text, port };

const filters = list(
  openItem({
    type: text,
    requestMirror: openObject({ backendRef: openObject(reference) }),
  }),
);

const weight = integer(0, 1_000_000, 'a number from 0 to 1000000');

const backendRef = openItem({ ...reference, weight, filters });

const valueMatches = list(openItem({ name: text }));

const grpcMethod = openObject({ type: text, service: text, method: text });

const routeRule = openItem({
  matches: list(
    openItem({
      path: openObject({ type: text, value: text }),
      // A method is a text in an HTTPRoute and an object in a GRPCRoute.
      method: nullable(anyOf('a method', string, grpcMethod)),
      headers: valueMatches,
      queryParams: valueMatches,
    }),
  ),
  filters,
  backendRefs: list(backendRef),
});

export const routeSchema = openObject({
  metadata,
  spec: openObject({
    parentRefs: list(openItem({ ...reference, sectionName: text })),
    hostnames: texts,
    rules: list(routeRule),
  }),
});

const namespaces = openObject({ from: word(['All', 'Same', 'Selector', 'None']), selector });

const allowedRoutes = openObject({
  namespaces,
  kinds: list(openItem({ group: text, kind: text })),
});

export const gatewaySchema = openObject({
  metadata,
  spec: openObject({
    parentRef: openObject(reference),
    allowedListeners: openObject({ namespaces }),
    listeners: list(openItem({ name: text, hostname: text, port, protocol: text, allowedRoutes })),
  }),
});

export const referenceGrantSchema = openObject({
  metadata,
  spec: openObject({
    from: list(openItem({ group: text, kind: text, namespace: text })),
    to: list(openItem({ group: text, kind: text, name: text })),
  }),
});

export const namespaceSchema = openObject({ metadata });

export type RawNetworkPolicy = ValueOf<typeof networkPolicySchema>;
export type RawPolicyRule = NonNullable<ValueOf<typeof policySpec>['ingress']>[number] &
  NonNullable<ValueOf<typeof policySpec>['egress']>[number];
export type RawSelector = ValueOf<typeof selector>;
export type RawRoute = ValueOf<typeof routeSchema>;
export type RawRouteRule = ValueOf<typeof routeRule>;
export type RawRouteMatch = NonNullable<RawRouteRule['matches']>[number];
export type RawReference = NonNullable<NonNullable<RawRouteRule['backendRefs']>[number]>;
export type RawNamespaces = ValueOf<typeof namespaces> | null | undefined;
export type RawGateway = ValueOf<typeof gatewaySchema>;
export type RawReferenceGrant = ValueOf<typeof referenceGrantSchema>;
export type RawIngressObject = ValueOf<typeof ingressSchema>;
export type RawBackend = ValueOf<typeof backend>;
