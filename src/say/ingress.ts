import type { AttachmentDoubt, Entrance, AttachmentRefusal } from '../ask/trace/gateways.ts';
import type { FollowedObject, IngressWay, RoutedRequests, RouteEnd } from '../ask/trace/ingress.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { unlessEmpty } from './formats/json.ts';
import { lines, type Block } from './lines.ts';
import { joinWords } from '../base/printable.ts';
import { nameSome } from './words/rows.ts';
import { inOneLine } from './words/words.ts';

const controller = 'the controller is a pod on this node and connects to the cluster IPs of Services';

export function ingressLines(way: IngressWay): Block {
  const said = new Set<string>();
  const routes = way.objects.flatMap((object): Block => {
    const heading = headingOf(object);
    const isSaid = said.has(heading);
    said.add(heading);
    const doubts = doubtsOf(object).map((text) => `assumed: ${text}`);
    return [
      ...(isSaid ? [] : [...lines('heading', 0, heading), ...lines('dim', 1, ...doubts)]),
      ...lines('plain', 1, ...object.requests.flatMap((each) => requestLines(each, object))),
      ...lines('bad', 1, ...problemsOfRoute(object)),
    ];
  });
  return [
    ...(way.idle === undefined ? routes : lines('bad', 0, `${way.idle} accepts no route in the input`)),
    ...lines('bad', 1, ...way.faults.map(inOneLine)),
    ...(way.reachesService
      ? lines('dim', 1, `assumed: ${controller}`)
      : lines('bad', 1, 'so no request reaches a Service')),
  ];
}

/** Returns the assumptions that a path through an Ingress depends on, as clauses. */
export function assumedOfIngress({ objects, reachesService }: IngressWay): readonly string[] {
  return [...new Set(objects.flatMap(doubtsOf)), ...(reachesService ? [controller] : [])];
}

export function ingressJson(way: IngressWay, { side: { nodeName } }: Scene) {
  const problems = [...way.objects.flatMap(problemsOfRoute), ...way.faults.map(inOneLine)];
  const node = nodeName === '' ? undefined : nodeName;
  const assumed = unlessEmpty(assumedOfIngress(way));
  return {
    node,
    ingress: way.ingress,
    routes: way.objects.flatMap(routesJson),
    assumed,
    problems: unlessEmpty(problems),
  };
}

function routesJson(object: FollowedObject) {
  const route = object.kind === 'Ingress' ? undefined : object.name;
  const gateway = gatewaysOf(object)[0]?.gateway;
  return object.requests.flatMap((request) => {
    const { ends, isConditional, pathType } = request;
    // Set if only some requests go to this destination, because the route chooses by method, headers, query, weights or filters.
    const depends = ends.length > 1 || isConditional || pathType === 'pattern' ? true : undefined;
    const [host, path] = [hostWords(request), pathOf(request)];
    return destinationWords(request).map((to) => ({ host, path, to, route, gateway, depends }));
  });
}

function gatewaysOf({ entrances }: FollowedObject): readonly Entrance[] {
  return entrances.filter(({ gateway }) => gateway !== undefined);
}

function headingOf(object: FollowedObject): string {
  const { file, line, column } = object.place;
  const gateways = gatewaysOf(object);
  const by = gateways.length === 0 ? '' : ` by ${joinWords(gateways.map(entranceWords))}`;
  return `${object.name}${by}  (${file}:${line}:${column})`;
}

function entranceWords({ gateway, owner, listener }: Entrance): string {
  const set = owner === `Gateway ${gateway}` ? '' : `, ${owner}`;
  return `Gateway ${gateway}${set}${listener ? `, listener ${listener.name}` : ''}`;
}

function doubtsOf({ doubts }: FollowedObject): readonly string[] {
  return [...new Set(doubts.map(doubtWords))];
}

function doubtWords(doubt: AttachmentDoubt): string {
  if (doubt.kind === 'no-owner') return `${doubt.owner}, which the input lacks, accepts everything that names it`;
  const taker = 'owner' in doubt.taker ? doubt.taker.owner : `listener ${doubt.taker.listener}`;
  return `${taker} accepts namespace ${doubt.namespace}, whose labels the input lacks`;
}

/** Tells why requests do not reach a Service. */
function problemsOfRoute({ name, refusals, ungranted }: FollowedObject): readonly string[] {
  const refused = refusals?.map(
    ({ entrance, refusal }) => `${entranceWords(entrance)} does not accept it: ${attachmentWords(refusal)}`,
  );
  return [
    ...(refused?.length === 0 ? ['no Gateway accepts it, because it names none'] : (refused ?? [])),
    ...ungranted.map(
      (to) =>
        `no ReferenceGrant in the input lets ${name} use Service ${to}: without one, the Gateway answers with an error`,
    ),
  ];
}

function attachmentWords(refusal: AttachmentRefusal): string {
  switch (refusal.kind) {
    case 'no-listener-sets':
      return `${refusal.owner} accepts no ListenerSets from namespace ${refusal.namespace}`;
    case 'conflict':
      return `it conflicts with listener ${refusal.listener}`;
    case 'rival':
      return `it accepts ${refusal.route} instead, which is older or comes first by name`;
    case 'other-listener':
      return 'the route names another listener';
    case 'protocol':
      return `its protocol is ${refusal.protocol}`;
    case 'route-kind':
      return `it accepts no ${refusal.route}`;
    case 'namespace':
      return `it accepts no routes from namespace ${refusal.namespace}`;
    case 'host':
      return `its host is ${refusal.host}`;
  }
}

/** Tells where requests go. One line is for requests that are answered, and one is for each copy. */
function requestLines(request: RoutedRequests, { kind }: FollowedObject): readonly string[] {
  const { isConditional, ends } = request;
  const [host, path] = [hostWords(request), pathOf(request)];
  const all = kind === 'Ingress' ? 'everything else' : 'everything';
  const what = path === undefined && host === '' ? all : [host || 'any host', path ?? ''].join(' ').trim();
  const from = `${what}${isConditional ? ', if it has the method, headers or query that the route requires,' : ''}`;
  const [answers, copies] = [
    destinationWords(request).slice(0, ends.length),
    destinationWords(request).slice(ends.length),
  ];
  const choice = ends.length > 1 ? `one of ${joinWords(answers)}` : answers.join();
  return [`${from} → ${choice}`, ...copies.map((each) => `${from} → ${each}`)];
}

/** Describes where requests end. If there are copies, also describes where these go. */
function destinationWords({ ends, copies }: RoutedRequests): readonly string[] {
  return [...ends.map(endWords), ...copies.map((each) => `${endWords(each)}, a mirrored copy`)];
}

function endWords(end: RouteEnd): string {
  switch (end.kind) {
    case 'service':
      return end.name;
    case 'other':
      return 'something else than a Service';
    case 'redirect':
      return 'a redirect';
    case 'unknown-filter':
      return `the filter ${end.filter}, which kpc does not know`;
    case 'none':
      return 'an error, because no backend accepts requests';
  }
}

const mostShown = 5;

function hostWords({ hosts }: RoutedRequests): string {
  return nameSome(hosts, mostShown);
}

const marks = { exact: '', prefix: '', suffix: '*', pattern: '~ ' };

function pathOf({ path, pathType }: RoutedRequests): string | undefined {
  return path === undefined ? undefined : `${marks[pathType]}${path}`;
}
