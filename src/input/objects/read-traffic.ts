import {
  fullName,
  type FieldPath,
  type LabelSelector,
  type NetworkPolicy,
  type PolicyPeer,
  type PolicyPort,
  type PolicyRule,
  type Gateway,
  type Ingress,
  type IngressBackend,
  type OtherBackend,
  type IngressRoute,
  type GatewayListener,
  type ReferenceGrant,
} from '../../cluster/objects.ts';
import { checkNetwork, readMetadata, type CommonNames } from './check-values.ts';
import type { Report } from './report.ts';
import type {
  RawNetworkPolicy,
  RawPolicyRule,
  RawSelector,
  RawBackend,
  RawGateway,
  RawIngressObject,
  RawNamespaces,
  RawReference,
  RawReferenceGrant,
  RawRoute,
  RawRouteMatch,
  RawRouteRule,
} from './shapes/traffic.ts';

/** Fills in the API server's defaults (SetDefaults_NetworkPolicy in pkg/apis/networking/v1). */
export function readNetworkPolicy(raw: RawNetworkPolicy, report: Report, names: CommonNames): NetworkPolicy {
  const spec = raw.spec ?? {};
  const given = spec.policyTypes ?? [];
  const types = given.length > 0 ? given : ['Ingress', ...((spec.egress ?? []).length > 0 ? ['Egress'] : [])];
  const rulesOf = (direction: 'ingress' | 'egress'): readonly PolicyRule[] =>
    (spec[direction] ?? []).map((rule, i) => readPolicyRule(rule, ['spec', direction, i], report));
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report, names),
    subject: readLabelSelector(spec.podSelector),
    ingress: types.includes('Ingress') ? rulesOf('ingress') : undefined,
    egress: types.includes('Egress') ? rulesOf('egress') : undefined,
  };
}

function readPolicyRule(rule: RawPolicyRule, path: FieldPath, report: Report): PolicyRule {
  const direction = rule.from ? 'from' : 'to';
  return {
    peers: (rule[direction] ?? []).map(({ podSelector, namespaceSelector, ipBlock }, i): PolicyPeer => {
      const at = [...path, direction, i, 'ipBlock'];
      if (!ipBlock) {
        return {
          kind: 'pods',
          pods: readLabelSelector(podSelector),
          namespaces: namespaceSelector ? readLabelSelector(namespaceSelector) : undefined,
        };
      }
      return {
        kind: 'block',
        network: checkNetwork(ipBlock.cidr ?? '', [...at, 'cidr'], report),
        except: (ipBlock.except ?? []).flatMap((text, n) => checkNetwork(text, [...at, 'except', n], report) ?? []),
      };
    }),
    ports: (rule.ports ?? []).map(({ protocol, port, endPort }) => portOf(protocol || 'TCP', port, endPort)),
  };
}

function portOf(
  protocol: PolicyPort['protocol'],
  port: number | string | null | undefined,
  endPort?: number | null,
): PolicyPort {
  return { protocol, port: port ?? undefined, endPort: endPort ?? undefined };
}

/** A selector without requirements matches everything. */
export function readLabelSelector(raw: RawSelector | null | undefined): LabelSelector {
  const labels = Object.entries(raw?.matchLabels ?? {});
  return [
    ...labels.map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    ...(raw?.matchExpressions ?? []).map(({ key, operator, values }) => ({
      key: key ?? '',
      operator: operator ?? '',
      values: values ?? [],
    })),
  ];
}

const gatewayGroup = 'gateway.networking.k8s.io';

export function readIngress(raw: RawIngressObject, report: Report, names: CommonNames): Ingress {
  const { rules, defaultBackend } = raw.spec ?? {};
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const to = (backend: RawBackend | null | undefined): Omit<IngressRoute, 'hosts' | 'path' | 'pathType'> => {
    const { name, port } = backend?.service ?? {};
    const read = readReference({ name: name ?? '', port: port?.number ?? port?.name ?? null }, metadata.namespace);
    return { isConditional: false, backends: [read] };
  };
  const routes = (rules ?? []).flatMap(({ host, http }) =>
    (http?.paths ?? []).map(({ path, pathType, backend }): IngressRoute => {
      const type = pathType === 'Exact' ? 'exact' : 'prefix';
      return { hosts: host ? [host] : [], path: path || '/', pathType: type, ...to(backend) };
    }),
  );
  if (defaultBackend) routes.push({ hosts: [], path: undefined, pathType: 'prefix', ...to(defaultBackend) });
  return { kind: 'Ingress', metadata, created: '', parents: [], routes };
}

export function readRoute(
  kind: Exclude<Ingress['kind'], 'Ingress'>,
  raw: RawRoute,
  report: Report,
  names: CommonNames,
): Ingress {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const { parentRefs, hostnames, rules } = raw.spec ?? {};
  const hosts = (hostnames ?? []).map((host) => host.toLowerCase());
  return {
    kind,
    metadata,
    created: raw.metadata?.creationTimestamp ?? '',
    parents: (parentRefs ?? []).flatMap((parent) => {
      const owner = ownerOf(parent, metadata.namespace);
      const { sectionName, port } = parent;
      return owner.startsWith('Service ') ? [] : { owner, listener: sectionName || undefined, port: port ?? undefined };
    }),
    routes: (rules ?? []).flatMap((rule) => readRouteRule(rule, { kind, hosts, namespace: metadata.namespace })),
  };
}

function ownerOf({ kind, namespace, name }: RawReference, own: string): string {
  const known = (kind || 'Gateway').replace(/^X(?=ListenerSet$)/, '');
  return `${known} ${fullName({ namespace: namespace || own, name: name ?? '' })}`;
}

/** Returns a route for each match. All of them share the rule's backends. */
function readRouteRule(
  { filters, backendRefs, matches }: RawRouteRule,
  { kind, hosts, namespace }: { kind: Ingress['kind']; hosts: readonly string[]; namespace: string },
): readonly IngressRoute[] {
  const used = (backendRefs ?? []).filter(({ weight }) => weight !== 0);
  const ends = used.flatMap((ref) => readFilters(ref.filters, readReference(ref, namespace), namespace));
  const backends = readFilters(filters, undefined, namespace);
  const isAnswered = backends.some(({ instead, isCopy }) => instead.kind === 'redirect' && !isCopy);
  const all = isAnswered ? backends : [...ends, ...backends];
  return (matches?.length ? matches : [{}]).map((match) => ({
    hosts,
    ...readPath(match, kind === 'HTTPRoute' ? '/' : undefined),
    isConditional: isConditional(match),
    backends: all,
  }));
}

function readReference(
  ref: Omit<RawReference, 'port'> & { readonly port?: number | string | null },
  namespace: string,
): IngressBackend {
  const isService = (ref.kind || 'Service') === 'Service' && !ref.group;
  return {
    service: isService && ref.name ? ref.name : undefined,
    instead: { kind: 'other' },
    namespace: ref.namespace || namespace,
    port: String(ref.port ?? ''),
    isCopy: false,
  };
}

const harmless = new Set(['RequestHeaderModifier', 'ResponseHeaderModifier', 'URLRewrite', 'CORS']);

/** Applies the filters of a backend or its rule. A redirect replaces the backend. A filter of any other kind adds a backend. */
function readFilters(
  filters: RawRouteRule['filters'],
  backend: IngressBackend | undefined,
  namespace: string,
): readonly IngressBackend[] {
  const other = (instead: OtherBackend): IngressBackend => ({ ...readReference({}, namespace), instead });
  const given = (filters ?? []).filter(({ type }) => type && !harmless.has(type));
  const more = given.map(({ type, requestMirror }): IngressBackend => {
    if (type === 'RequestRedirect') return other({ kind: 'redirect' });
    if (type !== 'RequestMirror') return other({ kind: 'unknown-filter', filter: String(type) });
    return { ...readReference(requestMirror?.backendRef ?? {}, namespace), isCopy: true };
  });
  const isRedirected = more.some(({ instead }) => instead.kind === 'redirect');
  return backend && !isRedirected ? [backend, ...more] : more;
}

/** Returns the path of a request. A gRPC method has the path "/service/method" (GRPCRouteMatch in apis/v1). */
function readPath({ path, method }: RawRouteMatch, usual: string | undefined): Pick<IngressRoute, 'path' | 'pathType'> {
  if (path) {
    const types = { Exact: 'exact', PathPrefix: 'prefix' } as const;
    const type = path.type || 'PathPrefix';
    return { path: path.value || '/', pathType: type === 'Exact' || type === 'PathPrefix' ? types[type] : 'pattern' };
  }
  if (!method || typeof method === 'string') return { path: usual, pathType: 'prefix' };
  const { type, service, method: name } = method;
  if (type && type !== 'Exact') return { path: `/${service ?? '.*'}/${name ?? '.*'}`, pathType: 'pattern' };
  if (!service) return { path: `/${name ?? ''}`, pathType: 'suffix' };
  return name ? { path: `/${service}/${name}`, pathType: 'exact' } : { path: `/${service}`, pathType: 'prefix' };
}

/**
 * Reports whether a match has conditions besides the path. In a GRPCRoute, the method is the path; in an HTTPRoute, the method is a text.
 */
function isConditional({ method, headers, queryParams }: RawRouteMatch): boolean {
  return typeof method === 'string' || [headers, queryParams].some((each) => (each ?? []).length > 0);
}

export function readGateway(raw: RawGateway, report: Report, names: CommonNames): Gateway {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const { parentRef, allowedListeners, listeners } = raw.spec ?? {};
  return {
    metadata,
    created: raw.metadata?.creationTimestamp ?? '',
    of: parentRef ? ownerOf(parentRef, metadata.namespace) : undefined,
    sets: readFrom(allowedListeners?.namespaces, 'None'),
    listeners: (listeners ?? []).map(({ name, hostname, port, protocol, allowedRoutes }): GatewayListener => {
      return {
        name: name ?? '',
        host: (hostname ?? '').toLowerCase(),
        port: port ?? undefined,
        protocol: protocol ?? '',
        from: readFrom(allowedRoutes?.namespaces, 'Same'),
        kinds: (allowedRoutes?.kinds ?? []).flatMap(({ group, kind }) =>
          kind && (group || gatewayGroup) === gatewayGroup ? [kind] : ['another'],
        ),
      };
    }),
  };
}

/** Reads a ListenerSet, which must name a Gateway and adds listeners to it. */
export function readListenerSet(raw: RawGateway, report: Report, names: CommonNames): Gateway {
  if (!raw.spec?.parentRef) report.addMissing(['spec'], 'parentRef');
  return readGateway(raw, report, names);
}

function readFrom(raw: RawNamespaces, usual: 'None' | 'Same'): GatewayListener['from'] {
  return raw?.from === 'Selector' ? readLabelSelector(raw.selector) : raw?.from || usual;
}

export function readReferenceGrant(raw: RawReferenceGrant, report: Report, names: CommonNames): ReferenceGrant {
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report, names),
    from: (raw.spec?.from ?? []).flatMap(({ group, kind, namespace }) =>
      group === gatewayGroup ? [`${kind} ${namespace}`] : [],
    ),
    services: (raw.spec?.to ?? []).flatMap(({ group, kind, name }) =>
      kind === 'Service' && !group ? [name || undefined] : [],
    ),
  };
}
