import {
  fullName,
  type Gateway,
  type Ingress,
  type IngressBackend,
  type IngressRoute,
  type Listener,
  type ReferenceGrant,
  type RouteCondition,
} from '../../cluster/objects.ts';
import { type CommonNames, readMetadata } from './check-values.ts';
import { readSelector } from './read-traffic.ts';
import type { Report } from './report.ts';
import type {
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

const gatewayGroup = 'gateway.networking.k8s.io';

/** Reads where an Ingress sends requests. */
export function readIngress(raw: RawIngressObject, report: Report, names: CommonNames): Ingress {
  const { rules, defaultBackend } = raw.spec ?? {};
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const to = (backend: RawBackend | null | undefined): Omit<IngressRoute, 'hosts' | 'path' | 'pathType'> => {
    const { name, port } = backend?.service ?? {};
    const read = readReference({ name: name ?? '', port: port?.number ?? port?.name ?? null }, metadata.namespace);
    return { conditions: [], filters: [], backends: [read] };
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

/** Reads where a route of the Gateway API sends requests or connections. */
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
    routes: (rules ?? []).flatMap((rule) => readRule(rule, { kind, hosts, namespace: metadata.namespace })),
  };
}

/** "Gateway shop/web". */
function ownerOf({ kind, namespace, name }: RawReference, own: string): string {
  const known = (kind || 'Gateway').replace(/^X(?=ListenerSet$)/, '');
  return `${known} ${fullName({ namespace: namespace || own, name: name ?? '' })}`;
}

/** One route for each match. All of a rule have the same backends. */
function readRule(
  rule: RawRouteRule,
  { kind, hosts, namespace }: { kind: Ingress['kind']; hosts: readonly string[]; namespace: string },
): readonly IngressRoute[] {
  const refs = rule.backendRefs ?? [];
  const ofRule = readFilters(rule.filters, namespace, 1);
  const total = refs.reduce((sum, { weight }) => sum + (weight ?? 1), 0);
  const read = refs.map((ref) => {
    const weight = ref.weight ?? 1;
    return { ...readReference(ref, namespace), weight, ...readFilters(ref.filters, namespace, weight / (total || 1)) };
  });
  const backends = read.flatMap(({ copies, unknown: _, answer, ...backend }) => [{ ...backend, ...answer }, ...copies]);
  const answered = ofRule.answer ? [{ ...readReference({}, namespace), ...ofRule.answer }] : backends;
  const unknown = [ofRule, ...read].flatMap((each) => each.unknown);
  const matches = rule.matches?.length ? rule.matches : [{}];
  return matches.map((match) => ({
    hosts,
    ...readPath(match, kind === 'HTTPRoute' ? '/' : undefined),
    conditions: readConditions(match),
    backends: [...answered, ...ofRule.copies],
    filters: [...new Set(unknown)],
  }));
}

function readReference(
  ref: Omit<RawReference, 'port'> & { readonly port?: number | string | null },
  namespace: string,
): IngressBackend {
  const isService = (ref.kind || 'Service') === 'Service' && !ref.group;
  return {
    service: isService && ref.name ? ref.name : undefined,
    instead: 'something else than a Service',
    namespace: ref.namespace || namespace,
    port: String(ref.port ?? ''),
    weight: 1,
    isCopy: false,
  };
}

/** Filters that change a request or its answer, and not where it goes. */
const harmless = new Set(['RequestHeaderModifier', 'ResponseHeaderModifier', 'URLRewrite', 'CORS']);

/** What filters make of a share of the requests: who answers it, who gets a copy, and the filters that may do anything. */
function readFilters(filters: RawRouteRule['filters'], namespace: string, of: number) {
  const copies: IngressBackend[] = [];
  const unknown: string[] = [];
  let answer: Pick<IngressBackend, 'service' | 'instead'> | undefined;
  for (const { type, requestMirror } of filters ?? []) {
    if (type === 'RequestRedirect') answer = { service: undefined, instead: 'a redirect' };
    else if (type === 'RequestMirror') {
      const { backendRef, percent, fraction } = requestMirror ?? {};
      const share = fraction ? (fraction.numerator ?? 0) / (fraction.denominator || 100) : (percent ?? 100) / 100;
      copies.push({ ...readReference(backendRef ?? {}, namespace), weight: share * of, isCopy: true });
    } else if (type && !harmless.has(type)) unknown.push(type);
  }
  return { copies, unknown, answer };
}

/** Where a request goes by its path; a method of gRPC is "/service/method" (GRPCRouteMatch in apis/v1). */
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

function readConditions({ method, headers, queryParams }: RawRouteMatch): readonly RouteCondition[] {
  const read = (about: RouteCondition['about'], all: RawRouteMatch['headers']) =>
    (all ?? []).map(({ name, value, type }) => {
      return { about, name: name ?? '', value: value ?? '', isPattern: (type || 'Exact') !== 'Exact' };
    });
  return [
    ...(typeof method === 'string' ? [{ about: 'method' as const, name: '', value: method, isPattern: false }] : []),
    ...read('header', headers),
    ...read('query parameter', queryParams),
  ];
}

/** Reads what a Gateway listens to, with the API server's defaults. */
export function readGateway(raw: RawGateway, report: Report, names: CommonNames): Gateway {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const { parentRef, allowedListeners, listeners } = raw.spec ?? {};
  return {
    metadata,
    created: raw.metadata?.creationTimestamp ?? '',
    of: parentRef ? ownerOf(parentRef, metadata.namespace) : undefined,
    sets: readFrom(allowedListeners?.namespaces, 'None'),
    listeners: (listeners ?? []).map(({ name, hostname, port, protocol, allowedRoutes }): Listener => {
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

/** Reads a ListenerSet. It adds listeners to a Gateway, which it has to name. */
export function readListenerSet(raw: RawGateway, report: Report, names: CommonNames): Gateway {
  if (!raw.spec?.parentRef) report.addMissing(['spec', 'parentRef'], 'the ListenerSet', 'the Gateway that it is of');
  return readGateway(raw, report, names);
}

function readFrom(raw: RawNamespaces, usual: 'None' | 'Same'): Listener['from'] {
  return raw?.from === 'Selector' ? readSelector(raw.selector) : raw?.from || usual;
}

/** Reads which references to its namespace a ReferenceGrant allows. */
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
