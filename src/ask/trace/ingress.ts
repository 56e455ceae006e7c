import type { Finding } from '../../base/findings/finding.ts';
import { groupBy, uniqueBy } from '../../cluster/grouping.ts';
import type { Location } from '../../kernel/place.ts';
import {
  fullName,
  routeKinds,
  type Ingress,
  type IngressBackend,
  type OtherBackend,
  type IngressRoute,
  titleOfObject,
} from '../../cluster/objects.ts';
import {
  isGranted,
  listEntrances,
  takenHosts,
  type AttachmentDoubt,
  type Entrance,
  type AttachmentRefusal,
} from './gateways.ts';
import { absent, isNamed, nearNames, wrong, type Question, type Read, type Trace } from './question.ts';
import { ask } from './ask.ts';
import type { Scene } from './scene.ts';
import { readDestination } from './read-destination.ts';
import {
  followRequest,
  namesHost,
  readRequest,
  takenBy,
  type Followed,
  type WantedRequest,
} from './ingress-request.ts';

/** The path of requests through an Ingress or a Gateway API route, starting at the controller. */
export interface IngressWay {
  readonly ingress: string | undefined;
  /** The Gateway or route in the question, if no route in the input is attached to it. */
  readonly idle: string | undefined;
  readonly objects: readonly FollowedObject[];
  readonly faults: readonly Finding[];
  /** Whether some of the requests go to a Service. The controller that sends these is assumed to be a pod on this node. */
  readonly reachesService: boolean;
  readonly traces: readonly Trace[];
}

export interface FollowedObject {
  readonly kind: Ingress['kind'];
  readonly name: string;
  readonly place: Location;
  readonly entrances: readonly Entrance[];
  readonly refusals: readonly { readonly entrance: Entrance; readonly refusal: AttachmentRefusal }[] | undefined;
  readonly doubts: readonly AttachmentDoubt[];
  readonly requests: readonly RoutedRequests[];
  readonly ungranted: readonly string[];
}

export interface RoutedRequests extends Pick<IngressRoute, 'hosts' | 'path' | 'pathType'> {
  /** Whether the route also depends on the method, headers or query, so that only some requests take it. */
  readonly isConditional: boolean;
  readonly ends: readonly RouteEnd[];
  readonly copies: readonly RouteEnd[];
}

export type RouteEnd = { readonly kind: 'service'; readonly name: string } | OtherBackend | { readonly kind: 'none' };

/**
 * Follows a question about an Ingress, Gateway or route ("ingress/name", "httproute/name"), or about a request ("https://host/path" or
 * "host/path"). Undefined for any other question.
 */
export function followIngress(question: Question, scene: Scene): Read<IngressWay> | undefined {
  const named = readRouteName(question);
  const request = readRequest(question.to);
  if (named || request?.scheme !== undefined) {
    const kinds = waysIn.flatMap(([list, ...names]) => (scene.side.objects.unread.has(list) ? names : []));
    if (kinds.length > 0) return wrong({ problem: 'unread', what: question.to, kinds });
  }
  if (named) return followNamed(named, question, scene);
  if (!request) return undefined;
  const { ingresses } = scene.side.objects;
  const isOfHost = ingresses.some(({ object }) => object.routes.some((route) => namesHost(route, request)));
  const isRequest = request.scheme !== undefined || isOfHost || isNoService(question, request, scene);
  const taken = followRequest({ ...request, isRequest }, scene);
  const followed = taken.length > 0 ? taken : refusedOf(request, scene);
  if (followed.length > 0) return { kind: 'read', value: follow(followed, question, scene) };
  const isSure = request.scheme !== undefined || (isRequest && hasPath(question, request));
  return isSure ? absent({ problem: 'no-ingress-of-host', request: question.to }) : undefined;
}

/** Returns the objects that have the request's host but that no entrance accepts, without their routes. They explain the refusal. */
function refusedOf(request: Parameters<typeof namesHost>[1], scene: Scene): readonly Followed[] {
  const entrances = listEntrances(scene);
  const taken = new Set(entrances.flatMap(takenBy));
  return scene.side.objects.ingresses.flatMap((from) => {
    if (taken.has(from) || !from.object.routes.some((route) => namesHost(route, request))) return [];
    return [{ from, routes: [], entrances: entrances.filter((each) => each.routes.has(from)) }];
  });
}

/** Reports whether a text is a host with a path. A host has dots, unlike the namespace in "namespace/name". */
function hasPath({ to }: Pick<Question, 'to'>, { host }: Pick<WantedRequest, 'host'>): boolean {
  return host.includes('.') && to.includes('/');
}

/** Reports whether a text names nothing in the cluster but may be a host. It may be one if it has three labels or more, or a path. */
function isNoService({ to, namespace }: Question, request: WantedRequest, scene: Scene): boolean {
  const labels = request.host.split('.').filter((label) => label !== '').length;
  if (labels < (hasPath({ to }, request) ? 2 : 3) || /\.svc(?:[.:/]|$)/.test(to)) return false;
  const found = readDestination(
    { to: request.host, protocol: undefined, namespace, isOutside: false },
    undefined,
    scene,
  );
  return found.kind === 'wrong' && found.diagnostic.code === 'not-found';
}

/** The kinds of objects that requests from outside depend on. An object that was not read may route a request or forbid its path. */
const waysIn = [
  ['ingresses', 'Ingresses', 'routes'],
  ['gateways', 'Gateways'],
  ['referenceGrants', 'ReferenceGrants'],
] as const;

interface NamedRoute {
  readonly kind: Ingress['kind'] | 'Gateway';
  readonly name: string;
}

const kindOfWord = new Map<string, NamedRoute['kind']>([
  ...(['Gateway', 'Ingress', ...routeKinds] as const).map((kind) => [kind.toLowerCase(), kind] as const),
  ['ing', 'Ingress'],
  ['ingresses', 'Ingress'],
  ['gtw', 'Gateway'],
]);

function readRouteName({ to, namespace }: Question): NamedRoute | undefined {
  const [, word = '', name = ''] = /^([a-z]+)\/(.+)$/i.exec(to) ?? [];
  const kind = kindOfWord.get(word.toLowerCase()) ?? kindOfWord.get(word.toLowerCase().replace(/s$/, ''));
  return kind && { kind, name: name.includes('/') || namespace === undefined ? name : `${namespace}/${name}` };
}

function followNamed({ kind, name }: NamedRoute, question: Question, scene: Scene): Read<IngressWay> {
  const entrances = listEntrances(scene);
  const objects = scene.side.objects.ingresses.filter(({ object }) => object.kind === kind);
  const gateways = kind === 'Gateway' ? entrances.flatMap(({ gateway }) => gateway ?? []) : [];
  const all = [...new Set(gateways), ...objects.map(({ object }) => fullName(object.metadata))];
  const names = all.filter((each) => isNamed(each, name));
  const [own] = names;
  if (own === undefined) return absent({ problem: 'no-such', kind, name, near: nearNames(name, all) });
  if (names.length > 1) return wrong({ problem: 'several', kind, name, names });
  const ofGateway = entrances.filter(({ gateway }) => kind === 'Gateway' && gateway === own);
  const followed = [
    ...ofGateway.flatMap((each) => takenBy(each).map((from) => ({ from, entrances: [each] }))),
    ...objects
      .filter(({ object }) => fullName(object.metadata) === own)
      .map((from) => ({ from, entrances: entrances.filter(({ routes }) => routes.has(from)) })),
  ].map((each) => ({ ...each, routes: each.from.object.routes }));
  const way = follow(followed, question, scene);
  return { kind: 'read', value: followed.length > 0 ? way : { ...way, idle: `${kind} ${own}` } };
}

function follow(followed: readonly Followed[], question: Question, scene: Scene): IngressWay {
  const known = followed.map((each) => followObject(each, scene));
  const traces: Trace[] = [];
  const faults: Finding[] = [];
  const targets = new Map(
    known.flatMap(({ object: { kind }, targets: own }) => {
      const protocol = kind === 'UDPRoute' ? 'udp' : 'tcp';
      return own.map((to) => [`${to}/${protocol}`, { to, protocol }] as const);
    }),
  );
  for (const { to, protocol } of targets.values()) {
    const answer = ask({ ...question, from: 'pod', to: `svc/${to}`, protocol }, scene);
    if (answer.kind === 'read') traces.push(answer.value);
    else faults.push(...answer.faults.map(({ diagnostic }) => diagnostic));
  }
  const ingress = followed.find(({ from }) => from.object.kind === 'Ingress')?.from;
  return {
    ingress: ingress && fullName(ingress.object.metadata),
    idle: undefined,
    objects: known.map(({ object }) => object),
    faults,
    reachesService: targets.size > 0,
    traces,
  };
}

function followObject({ from, routes, entrances }: Followed, scene: Scene) {
  const { object, source } = from;
  const attached = entrances.map((entrance) => ({ entrance, ...entrance.routes.get(from) }));
  const taken = attached.filter(({ refusal }) => refusal === undefined);
  const isTaken = taken.length > 0;
  const usable = (isTaken ? routes : [])
    .flatMap(({ backends }) => backends)
    .filter(({ service }) => service !== undefined);
  const [targets, ungranted] = [true, false].map((wanted) => {
    const own = usable.filter((backend) => isGranted(object, backend, scene) === wanted);
    return [...new Set(own.map(backendName))];
  }) as [string[], string[]];
  const followed: FollowedObject = {
    kind: object.kind,
    name: titleOfObject(object),
    place: source.place([]).locate(),
    entrances: taken.map(({ entrance }) => entrance),
    refusals: isTaken
      ? undefined
      : attached.flatMap(({ entrance, refusal }) => (refusal === undefined ? [] : [{ entrance, refusal }])),
    doubts: taken.flatMap(({ doubt }) => doubt ?? []),
    requests: requestsOf(isTaken ? routes.map((route) => asTaken(route, taken)) : routes),
    ungranted,
  };
  return { object: followed, targets };
}

/** Returns a route with only those hosts that at least one entrance accepts. */
function asTaken(route: IngressRoute, entrances: readonly { readonly entrance: Entrance }[]): IngressRoute {
  const hosts = new Set(entrances.flatMap(({ entrance }) => takenHosts(route.hosts, entrance)));
  return { ...route, hosts: hosts.has('') ? [] : [...hosts] };
}

function backendName({ namespace, service, port }: IngressBackend): string {
  return `${namespace}/${service}${port === '' ? '' : `:${port}`}`;
}

function requestsOf(routes: readonly IngressRoute[]): readonly RoutedRequests[] {
  const requests = groupBy(routes, ({ hosts, path, pathType }) => JSON.stringify([hosts, path, pathType]));
  return [...requests.values()].map((own) => {
    const [{ hosts, path, pathType }] = own;
    const [ends, copies] = [false, true].map((isCopy) => {
      const all = own.flatMap(({ backends }) => endsOf(backends, isCopy));
      return uniqueBy(all, (end) => JSON.stringify(end));
    }) as [RouteEnd[], RouteEnd[]];
    // An unconditional route gets every request that the conditional routes leave.
    return { hosts, path, pathType, isConditional: own.every(({ isConditional }) => isConditional), ends, copies };
  });
}

function endsOf(backends: readonly IngressBackend[], areCopies: boolean): readonly RouteEnd[] {
  const own = backends.filter(({ isCopy }) => isCopy === areCopies);
  if (own.length === 0 && !areCopies) return [{ kind: 'none' }];
  return own.map((backend) =>
    backend.service === undefined ? backend.instead : { kind: 'service', name: backendName(backend) },
  );
}
