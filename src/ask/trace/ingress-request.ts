import { groupBy } from '../../cluster/grouping.ts';
import type { Ingress, IngressRoute, Sourced } from '../../cluster/objects.ts';
import { compareAge, fitsHost, listEntrances, type Entrance } from './gateways.ts';
import type { Scene } from './scene.ts';

export interface Followed {
  readonly from: Sourced<Ingress>;
  readonly routes: readonly IngressRoute[];
  readonly entrances: readonly Entrance[];
}

export function takenBy({ routes }: Entrance): readonly Sourced<Ingress>[] {
  return [...routes].flatMap(([route, { refusal }]) => (refusal === undefined ? [route] : []));
}

export interface WantedRequest {
  readonly scheme: 'http' | 'https' | undefined;
  readonly host: string;
  readonly port: number | undefined;
  readonly path: string;
}

/** `isRequest`: whether the text is certainly a request. If the text may name something else, routes for any host do not match it. */
type AskedRequest = WantedRequest & { readonly isRequest: boolean };

export function namesHost({ hosts }: IngressRoute, { host }: Pick<WantedRequest, 'host'>): boolean {
  return hosts.some((each) => fitsHost(each, host));
}

export function readRequest(to: string): WantedRequest | undefined {
  const match = /^(?:(https?):\/\/)?([^/:?#]+)(?::(\d+))?(\/[^?#]*)?(?:[?#].*)?$/i.exec(to);
  if (!match) return undefined;
  const [, scheme, host = '', port, path = '/'] = match;
  return {
    scheme: scheme?.toLowerCase() as WantedRequest['scheme'],
    host: host.toLowerCase(),
    port: port === undefined ? undefined : Number(port),
    path,
  };
}

/** Finds the routes for a request: in each Gateway, the routes of the most specific listener; among all Ingresses, the best route. */
export function followRequest(request: AskedRequest, scene: Scene): readonly Followed[] {
  const weigh = ({ listener }: Entrance): number => weighHost(listener?.host ?? '', request.host);
  const byGateway = groupBy(listEntrances(scene), ({ gateway = '' }) => gateway);
  return [...byGateway.values()].flatMap((entrances) => {
    const listening = entrances.filter((each) => listens(each, request));
    const fitting = onPort(listening, request).toSorted((a, b) => weigh(b) - weigh(a));
    const chosen = fitting.filter((each) => fitting[0] && weigh(each) === weigh(fitting[0]));
    const candidates = chosen.flatMap((entrance) =>
      takenBy(entrance).flatMap((from) => matchRoutes(from, entrance, request)),
    );
    return takeUntilCertain(candidates.toSorted(compareCandidates));
  });
}

const schemes = { http: { port: 80, protocols: ['HTTP'] }, https: { port: 443, protocols: ['HTTPS', 'TLS'] } } as const;

function listens({ listener, attachment }: Entrance, { scheme, host, port }: WantedRequest): boolean {
  if (!listener || attachment.refusal !== undefined) return attachment.refusal === undefined;
  const { http, https } = schemes;
  const protocols: readonly string[] = scheme ? schemes[scheme].protocols : [...http.protocols, ...https.protocols];
  return (
    protocols.includes(listener.protocol) && (port ?? listener.port) === listener.port && fitsHost(listener.host, host)
  );
}

/** If the request has no port, listeners on the default port of its scheme come first. */
function onPort(entrances: readonly Entrance[], { scheme }: WantedRequest): readonly Entrance[] {
  const own = entrances.filter(({ listener }) => scheme && listener?.port === schemes[scheme].port);
  return own.length === 0 ? entrances : own;
}

interface MatchedRoute {
  readonly from: Sourced<Ingress>;
  readonly route: IngressRoute;
  readonly entrance: Entrance;
  /** How specific the match is. The weights are listed in the Gateway API's order of precedence (HTTPRouteRule in apis/v1). */
  readonly weights: readonly number[];
}

function matchRoutes(from: Sourced<Ingress>, entrance: Entrance, request: AskedRequest): readonly MatchedRoute[] {
  const labels = request.host.split('.').length;
  return from.object.routes.flatMap((route) => {
    // An Ingress wildcard matches exactly one label.
    const fits = route.hosts.filter(
      (host) => fitsHost(host, request.host) && (from.object.kind !== 'Ingress' || host.split('.').length === labels),
    );
    const isAny = route.hosts.length === 0 && (request.isRequest || entrance.listener?.host);
    if ((fits.length === 0 && !isAny) || !fitsPath(route, request.path)) return [];
    const host = fits.reduce((most, each) => Math.max(most, weighHost(each, request.host)), 0);
    return [{ from, route, entrance, weights: [host, weighPath(route), Number(route.isConditional)] }];
  });
}

/** Weighs a host pattern: an exact host beats a wildcard, and a longer wildcard beats a shorter one. */
function weighHost(pattern: string, host: string): number {
  return pattern === host ? host.length + 1 : pattern.length;
}

/**
 * Weighs a path. An exact path beats the longest prefix. Patterns weigh most but count only as possible matches, because controllers rank
 * them differently.
 */
function weighPath({ path, pathType }: IngressRoute): number {
  if (pathType === 'pattern') return Number.POSITIVE_INFINITY;
  if (pathType === 'exact') return Number.MAX_SAFE_INTEGER;
  // A match on only a gRPC method ranks below every match on a gRPC service.
  return pathType === 'suffix' ? (path?.length ?? 0) / 1000 : (path?.length ?? -1);
}

function compareCandidates(a: MatchedRoute, b: MatchedRoute): number {
  const at = a.weights.findIndex((each, i) => each !== b.weights[i]);
  if (at >= 0) return (b.weights[at] ?? 0) > (a.weights[at] ?? 0) ? 1 : -1;
  return a.from.object.kind === 'Ingress' ? 0 : compareAge(a.from.object, b.from.object);
}

function takeUntilCertain(candidates: readonly MatchedRoute[]): readonly Followed[] {
  const certain = candidates.findIndex(({ route }) => !route.isConditional && route.pathType !== 'pattern');
  const taken = certain < 0 ? candidates : candidates.slice(0, certain + 1);
  return [...new Set(taken.map(({ from }) => from))].map((from) => {
    const own = taken.filter((each) => each.from === from);
    const entrances = [...new Set(own.map(({ entrance }) => entrance))];
    return { from, routes: [...new Set(own.map(({ route }) => route))], entrances };
  });
}

/** A prefix match ends at a path separator. */
function fitsPath({ path: wanted, pathType }: IngressRoute, path: string): boolean {
  if (wanted === undefined || path === wanted || pathType === 'pattern') return true;
  if (pathType === 'suffix') return path.endsWith(wanted);
  const prefix = wanted.replace(/\/$/, '');
  return pathType === 'prefix' && (path === prefix || path.startsWith(`${prefix}/`));
}
