import type { Finding } from '../../base/findings/finding.ts';
import { joinWords, nameSome } from '../../base/printable.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { descriptionLine, type DescriptionLine } from '../describe/description-line.ts';
import { fullName, routeKinds, type Ingress, type IngressBackend, type IngressRoute } from '../../cluster/objects.ts';
import { isGranted, listEntrances, takenHosts, type Entrance } from './gateways.ts';
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

/** Requests through an Ingress or a Gateway API route, from the controller on. */
export interface IngressWay {
  /** "namespace/name" of the Ingress, if there is one. */
  readonly ingress: string | undefined;
  readonly lines: readonly DescriptionLine[];
  readonly routes: readonly RouteInWords[];
  readonly problems: readonly string[];
  /** The assumptions that it depends on because the input lacks facts. */
  readonly assumed: readonly string[];
  /** Why some targets are not followed. */
  readonly faults: readonly Finding[];
  /** The last line, after the faults. */
  readonly end: DescriptionLine;
  readonly traces: readonly Trace[];
}

interface RouteInWords {
  readonly host: string;
  readonly path: string | undefined;
  readonly to: string;
  /** "HTTPRoute shop/web"; undefined for an Ingress. */
  readonly route: string | undefined;
  readonly gateway: string | undefined;
  /** Whether only some requests go there, because the route chooses by method, headers, query, weights or filters. */
  readonly depends: boolean | undefined;
}

/**
 * Follows a question about an Ingress, Gateway or route ("ingress/name", "httproute/name") or about a request
 * ("https://host/path" or "host/path"); undefined for any other question.
 */
export function followIngress(question: Question, scene: Scene): Read<IngressWay> | undefined {
  const named = readRouteName(question);
  const request = readRequest(question.to);
  if (named || request?.scheme !== undefined) {
    const kinds = waysIn.flatMap(([list, words]) => (scene.side.objects.unread.has(list) ? [words] : []));
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

/** The objects with the request's host that no entrance takes, to say why: none of their routes counts. */
function refusedOf(request: Parameters<typeof namesHost>[1], scene: Scene): readonly Followed[] {
  const entrances = listEntrances(scene);
  const taken = new Set(entrances.flatMap(takenBy));
  return scene.side.objects.ingresses.flatMap((from) => {
    if (taken.has(from) || !from.object.routes.some((route) => namesHost(route, request))) return [];
    return [{ from, routes: [], entrances: entrances.filter((each) => each.routes.has(from)) }];
  });
}

/** Whether a text is a host with a path: the namespace of "namespace/name" has no dots. */
function hasPath({ to }: Pick<Question, 'to'>, { host }: Pick<WantedRequest, 'host'>): boolean {
  return host.includes('.') && to.includes('/');
}

/**
 * Whether a text that may be any host names nothing in the cluster: a host of three labels or more, such as www.example.com, or one
 * with a path.
 */
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

/** Kinds of objects that a way from outside depends on. An unread object may be the first part of the way, or forbid it. */
const waysIn = [
  ['ingresses', 'Ingresses or routes'],
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
  const nothing = descriptionLine('bad', 0, `${kind} ${own} takes no route of the input`);
  return { kind: 'read', value: followed.length > 0 ? way : { ...way, lines: [nothing] } };
}

/** The routes in words, and the packets from the controller to their Services. */
function follow(followed: readonly Followed[], question: Question, scene: Scene): IngressWay {
  const words = followed.map((each) => describeFollowed(each, scene));
  const problems = words.flatMap((each) => each.problems);
  const traces: Trace[] = [];
  const faults: Finding[] = [];
  const lines: DescriptionLine[] = [];
  const said = new Set<string>();
  for (const { heading, doubts, lines: own, problems: wrongs } of words) {
    if (!said.has(heading))
      lines.push(
        descriptionLine('heading', 0, heading),
        ...doubts.map((text) => descriptionLine('dim', 1, `assumed: ${text}`)),
      );
    said.add(heading);
    lines.push(
      ...own.map((text) => descriptionLine('plain', 1, text)),
      ...wrongs.map((text) => descriptionLine('bad', 1, text)),
    );
  }
  const targets = new Map(
    words.flatMap(({ protocol, targets: own }) => own.map((to) => [`${to}/${protocol}`, { to, protocol }])),
  );
  for (const { to, protocol } of targets.values()) {
    const answer = ask({ ...question, from: 'pod', to: `svc/${to}`, protocol }, scene);
    if (answer.kind === 'read') traces.push(answer.value);
    else {
      faults.push(...answer.faults.map(({ diagnostic }) => diagnostic));
    }
  }
  const controller = 'the controller is a pod on this node and connects to the cluster IPs of Services';
  const ingress = followed.find(({ from }) => from.object.kind === 'Ingress')?.from;
  return {
    ingress: ingress && fullName(ingress.object.metadata),
    lines,
    faults,
    assumed: [...new Set(words.flatMap(({ doubts }) => doubts)), ...(targets.size > 0 ? [controller] : [])],
    end:
      targets.size > 0
        ? descriptionLine('dim', 1, `assumed: ${controller}`)
        : descriptionLine('bad', 1, 'so no request reaches a Service'),
    routes: words.flatMap(({ routes }) => routes),
    problems,
    traces,
  };
}

function describeFollowed({ from, routes, entrances }: Followed, scene: Scene) {
  const { object, source } = from;
  const { kind, metadata } = object;
  const { file, line: row, column } = source.place([]).locate();
  const named = `${kind} ${fullName(metadata)}`;
  const attached = entrances.map((entrance) => ({ entrance, ...entrance.routes.get(from) }));
  const taken = attached.filter(({ refusal }) => refusal === undefined);
  const gateways = taken.filter(({ entrance }) => entrance.gateway !== undefined);
  const by = gateways.length === 0 ? '' : ` by ${joinWords(gateways.map(({ entrance }) => entranceWords(entrance)))}`;
  const refused = attached.flatMap(({ entrance, refusal }) =>
    refusal === undefined ? [] : `${entranceWords(entrance)} does not take it: ${refusal}`,
  );
  const usable = (taken.length > 0 ? routes : [])
    .flatMap(({ backends }) => backends)
    .filter(({ service }) => service !== undefined);
  const [targets, ungranted] = [true, false].map((wanted) => {
    const own = usable.filter((backend) => isGranted(object, backend, scene) === wanted);
    return [...new Set(own.map(backendWords))];
  }) as [string[], string[]];
  const common = { route: kind === 'Ingress' ? undefined : named, gateway: gateways[0]?.entrance.gateway };
  return {
    heading: `${named}${by}  (${file}:${row}:${column})`,
    doubts: [...new Set(taken.flatMap(({ doubt }) => doubt ?? []))],
    ...waysOf(taken.length > 0 ? routes.map((route) => asTaken(route, taken)) : routes, common),
    problems: [
      ...(taken.length > 0 ? [] : refused.length > 0 ? refused : ['no Gateway takes it: it names none']),
      ...ungranted.map(
        (to) =>
          `no ReferenceGrant of the input lets ${named} use Service ${to}: without one, the Gateway answers with an error`,
      ),
    ],
    targets,
    protocol: kind === 'UDPRoute' ? ('udp' as const) : ('tcp' as const),
  };
}

/** A route with those of its hosts that some of the entrances take. */
function asTaken(route: IngressRoute, entrances: readonly { readonly entrance: Entrance }[]): IngressRoute {
  const hosts = new Set(entrances.flatMap(({ entrance }) => takenHosts(route.hosts, entrance)));
  return { ...route, hosts: hosts.has('') ? [] : [...hosts] };
}

function entranceWords({ gateway, owner, listener }: Entrance): string {
  const set = owner === `Gateway ${gateway}` ? '' : `, ${owner}`;
  return `Gateway ${gateway}${set}${listener ? `, listener ${listener.name}` : ''}`;
}

function backendWords({ namespace, service, port }: IngressBackend): string {
  return `${namespace}/${service}${port === '' ? '' : `:${port}`}`;
}

/** Where routes send the requests for each host and path: a line of words, and a row for each backend. */
function waysOf(routes: readonly IngressRoute[], way: Pick<RouteInWords, 'route' | 'gateway'>) {
  const lines: string[] = [];
  const rows: RouteInWords[] = [];
  const requests = groupBy(routes, ({ hosts, path, pathType }) => JSON.stringify([hosts, path, pathType]));
  for (const own of requests.values()) {
    const [{ hosts, path: written, pathType }] = own as [IngressRoute];
    const host = nameSome(hosts, mostShown);
    const marks = { exact: '', prefix: '', suffix: '*', pattern: '~ ' };
    const path = written === undefined ? undefined : `${marks[pathType]}${written}`;
    // An unconditional route takes everything that conditional ones leave.
    const isOpen = own.every(({ isConditional }) => isConditional);
    const [ends, copies] = [false, true].map((isCopy) => [
      ...new Set(own.flatMap(({ backends }) => endsOf(backends, isCopy))),
    ]) as [string[], string[]];
    const depends = ends.length > 1 || isOpen || pathType === 'pattern' ? true : undefined;
    const to = [...ends, ...copies.map((each) => `${each}, a copy`)];
    rows.push(...to.map((each) => ({ host, path, to: each, ...way, depends })));
    const request =
      path === undefined && host === '' ? anything(way) : [host || 'any host', path ?? ''].join(' ').trim();
    const needs = isOpen ? ', if it has the method, headers or query that the route asks for,' : '';
    const choice = ends.length > 1 ? `one of ${joinWords(ends)}` : ends.join();
    lines.push(`${request}${needs} → ${choice}`, ...copies.map((each) => `${request}${needs} → ${each}, a copy`));
  }
  return { lines, routes: rows };
}

function anything({ route }: Pick<RouteInWords, 'route'>): string {
  return route === undefined ? 'everything else' : 'everything';
}

/** The backends of a route, or the ones that get mirrored copies. */
function endsOf(backends: readonly IngressBackend[], areCopies: boolean): readonly string[] {
  const own = backends.filter(({ isCopy }) => isCopy === areCopies);
  if (own.length === 0 && !areCopies) return ['an error, because it has no backend that takes requests'];
  return own.map((backend) => (backend.service === undefined ? backend.instead : backendWords(backend)));
}

const mostShown = 5;
