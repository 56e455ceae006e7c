import { groupBy } from '../../cluster/grouping.ts';
import {
  fullName,
  type Gateway,
  type Ingress,
  type IngressBackend,
  type IngressRoute,
  type GatewayListener,
  type RouteParent,
  type Sourced,
  titleOfObject,
} from '../../cluster/objects.ts';
import type { Maybe } from '../../packet/reason.ts';
import { labelsOfNamespace, selectsLabels, type Scene } from './scene.ts';

/** A place where requests come in: a listener of a Gateway or ListenerSet, or the controller of Ingresses. */
export interface Entrance {
  readonly gateway: string | undefined;
  /** The object that routes name as their parent: "Gateway shop/web" or "ListenerSet shop/more". */
  readonly owner: string;
  /** Undefined if the entrance accepts everything. Ingresses do, and so does a parent that is not in the input. */
  readonly listener: GatewayListener | undefined;
  readonly attachment: Attachment;
  readonly routes: ReadonlyMap<Sourced<Ingress>, Attachment>;
}

type EntrancePlace = Omit<Entrance, 'routes'>;

/** Says why a route or listener is refused, or what must hold for it to be accepted. */
interface Attachment {
  readonly refusal?: AttachmentRefusal | undefined;
  readonly doubt?: AttachmentDoubt | undefined;
}

export type AttachmentRefusal =
  | { readonly kind: 'no-listener-sets'; readonly owner: string; readonly namespace: string }
  | { readonly kind: 'conflict'; readonly listener: string }
  /** The listener accepts another route instead, which is older or has a name that sorts first. */
  | { readonly kind: 'rival'; readonly route: string }
  | { readonly kind: 'other-listener' }
  | { readonly kind: 'protocol'; readonly protocol: string }
  | { readonly kind: 'route-kind'; readonly route: Ingress['kind'] }
  | { readonly kind: 'namespace'; readonly namespace: string }
  | { readonly kind: 'host'; readonly host: string };

export type AttachmentDoubt =
  | { readonly kind: 'no-owner'; readonly owner: string }
  /** `taker` accepts objects from this namespace only if the namespace has certain labels. The input does not show whether it has them. */
  | { readonly kind: 'no-labels'; readonly taker: TakerName; readonly namespace: string };

type TakerName = { readonly owner: string } | { readonly listener: string };

/** Lists the input's entrances. A Gateway's listeners precede those of its ListenerSets, and older ListenerSets precede newer ones. */
export function listEntrances(scene: Scene): readonly Entrance[] {
  const { gateways, ingresses } = scene.side.objects;
  const known = new Map(gateways.map(({ object }) => [ownerName(object), object]));
  const sets = groupBy(
    [...known.values()].filter(({ of }) => of !== undefined).toSorted(compareAge),
    ({ of = '' }) => of,
  );
  const named = ingresses
    .toSorted((a, b) => compareAge(a.object, b.object))
    .flatMap((route) =>
      [...new Set(route.object.parents.map(({ owner }) => owner))].map((owner) => ({ owner, route })),
    );
  const routes = groupBy(named, ({ owner }) => owner);
  const owners = new Set([...known.keys(), ...sets.keys(), ...routes.keys()]);
  const places = [...owners].flatMap((owner) =>
    known.get(owner)?.of === undefined ? entrancePlaces(owner, known.get(owner), sets.get(owner) ?? [], scene) : [],
  );
  const all = ingresses.filter(({ object }) => object.kind === 'Ingress').map((each) => [each, {}] as const);
  return [
    { gateway: undefined, owner: '', listener: undefined, attachment: {}, routes: new Map(all) },
    ...places.map((place) => ({ ...place, routes: attachAll(place, routes.get(place.owner) ?? [], scene) })),
  ];
}

function entrancePlaces(
  owner: string,
  gateway: Gateway | undefined,
  sets: readonly Gateway[],
  scene: Scene,
): readonly EntrancePlace[] {
  const name = owner.slice(owner.indexOf(' ') + 1);
  const lacking = gateway ? undefined : ({ kind: 'no-owner', owner } as const);
  const taken: GatewayListener[] = [];
  const listenersOf = (each: Gateway): readonly EntrancePlace[] => {
    const { namespace } = each.metadata;
    const takes = each === gateway || !gateway || takesNamespace(gateway.sets, namespace, gateway.metadata, scene);
    return each.listeners.map((listener) => {
      // Within one Gateway, all listeners that conflict are refused. Across ListenerSets, the first listener wins.
      const rivals = each === gateway ? [...taken, ...each.listeners] : taken;
      const rival = rivals.find((other) => other !== listener && areIndistinct(other, listener));
      const refused = takes === false ? ({ kind: 'no-listener-sets', owner, namespace } as const) : undefined;
      const refusal = refused ?? (rival && ({ kind: 'conflict', listener: rival.name } as const));
      if (refusal === undefined) taken.push(listener);
      const doubt = lacking ?? (takes === undefined ? unlabelled({ owner }, namespace) : undefined);
      return { gateway: name, owner: ownerName(each), listener, attachment: { refusal, doubt } };
    });
  };
  const missing = { gateway: name, owner, listener: undefined, attachment: { doubt: lacking } };
  return [...(gateway ? listenersOf(gateway) : [missing]), ...sets.flatMap(listenersOf)];
}

/**
 * The kinds of routes that each listener protocol accepts. Listeners of one layer can share a port if their hosts differ. Controllers may
 * define other protocols.
 */
const protocols: ReadonlyMap<string, { readonly layer: string; readonly kinds: readonly Ingress['kind'][] }> = new Map([
  ['HTTP', { layer: 'http', kinds: ['HTTPRoute', 'GRPCRoute'] }],
  ['HTTPS', { layer: 'tls', kinds: ['HTTPRoute', 'GRPCRoute'] }],
  ['TLS', { layer: 'tls', kinds: ['TLSRoute', 'TCPRoute'] }],
  ['TCP', { layer: 'tcp', kinds: ['TCPRoute'] }],
  ['UDP', { layer: 'udp', kinds: ['UDPRoute'] }],
]);

/** Reports whether a connection cannot tell two listeners apart (GatewaySpec.Listeners in apis/v1). */
function areIndistinct(one: GatewayListener, other: GatewayListener): boolean {
  const [first, second] = [one, other].map(({ protocol }) => protocols.get(protocol)?.layer);
  if (one.port === undefined || one.port !== other.port || !first || !second) return false;
  return first === second ? one.host === other.host : first !== 'udp' && second !== 'udp';
}

function ownerName({ of, metadata }: Gateway): string {
  return `${of === undefined ? 'Gateway' : 'ListenerSet'} ${fullName(metadata)}`;
}

/** Sorts by age, oldest first, then by name. An object without a creation time counts as the oldest. */
export function compareAge(a: Pick<Ingress, 'created' | 'metadata'>, b: Pick<Ingress, 'created' | 'metadata'>): number {
  const [one, other] = [a, b].map(({ created, metadata }) => `${created} ${fullName(metadata)}`) as [string, string];
  return one === other ? 0 : one < other ? -1 : 1;
}

function attachAll(
  place: EntrancePlace,
  routes: readonly { readonly route: Sourced<Ingress> }[],
  scene: Scene,
): Entrance['routes'] {
  const taken: Ingress[] = [];
  return new Map(
    routes.map(({ route }) => {
      const attachment = attach(route.object, place, scene);
      if (attachment.refusal !== undefined) return [route, attachment];
      const rival = taken.find((other) => areExclusive(other, route.object, place));
      if (!rival) taken.push(route.object);
      return [route, rival ? { refusal: { kind: 'rival', route: titleOfObject(rival) } } : attachment];
    }),
  );
}

/** Reports whether a listener accepts only one of the two routes (GRPCRouteSpec.Hostnames and ListenerEntry.AllowedRoutes in apis/v1). */
function areExclusive(one: Ingress, other: Ingress, place: EntrancePlace): boolean {
  if (one.kind === other.kind) return one.kind === 'TCPRoute' || one.kind === 'UDPRoute';
  const areOfRequests = [one, other].every(({ kind }) => kind === 'HTTPRoute' || kind === 'GRPCRoute');
  const [hosts, others] = [one, other].map(({ routes }) => takenHosts(hostsOf(routes), place)) as [string[], string[]];
  return areOfRequests && hosts.some((host) => others.some((each) => sharedHosts(host, each) !== undefined));
}

function hostsOf(routes: readonly IngressRoute[]): readonly string[] {
  return [...new Set(routes.flatMap(({ hosts }) => hosts))];
}

/**
 * Returns the hosts of a route that a listener accepts; '' means any host. A listener ignores hosts that its own host does not cover
 * (HTTPRouteSpec.Hostnames in apis/v1).
 */
export function takenHosts(hosts: readonly string[], { listener }: Pick<Entrance, 'listener'>): readonly string[] {
  const own = listener?.host ?? '';
  return (hosts.length === 0 ? [''] : hosts).flatMap((host) => sharedHosts(host, own) ?? []);
}

function attach(route: Ingress, place: EntrancePlace, scene: Scene): Attachment {
  const { owner, listener, attachment } = place;
  if (!listener || attachment.refusal !== undefined) return attachment;
  const isMeant = (parent: RouteParent): boolean =>
    parent.owner === owner &&
    (parent.listener ?? listener.name) === listener.name &&
    (parent.port ?? listener.port) === listener.port;
  if (!route.parents.some(isMeant)) return { refusal: { kind: 'other-listener' } };
  if (protocols.get(listener.protocol)?.kinds.includes(route.kind) === false)
    return { refusal: { kind: 'protocol', protocol: listener.protocol } };
  if (listener.kinds.length > 0 && !listener.kinds.includes(route.kind))
    return { refusal: { kind: 'route-kind', route: route.kind } };
  const { namespace } = route.metadata;
  const [, own = ''] = owner.split(/[ /]/);
  const takes = takesNamespace(listener.from, namespace, { namespace: own }, scene);
  if (takes === false) return { refusal: { kind: 'namespace', namespace } };
  if (takenHosts(hostsOf(route.routes), place).length === 0) return { refusal: { kind: 'host', host: listener.host } };
  return takes === undefined ? { doubt: unlabelled({ listener: listener.name }, namespace) } : attachment;
}

function unlabelled(taker: TakerName, namespace: string): AttachmentDoubt {
  return { kind: 'no-labels', taker, namespace };
}

function takesNamespace(
  from: GatewayListener['from'],
  namespace: string,
  own: Pick<Gateway['metadata'], 'namespace'>,
  scene: Scene,
): Maybe {
  if (typeof from !== 'string') return selectsLabels(from, labelsOfNamespace(namespace, scene));
  return from === 'All' || (from === 'Same' && namespace === own.namespace);
}

function sharedHosts(one: string, other: string): string | undefined {
  return fitsHost(other, one) ? one : fitsHost(one, other) ? other : undefined;
}

/** Reports whether a host, or every host of a wildcard, matches a pattern. A wildcard stands for one or more labels. */
export function fitsHost(pattern: string, host: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === '' || pattern === host;
  return host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1;
}

/**
 * Reports whether a route may use a Service. It may use a Service in its own namespace, and one that a ReferenceGrant in the Service's
 * namespace allows.
 */
export function isGranted(
  { kind, metadata: { namespace: own } }: Ingress,
  { service, namespace }: IngressBackend,
  {
    side: {
      objects: { referenceGrants },
    },
  }: Scene,
): boolean {
  const isOf = `${kind} ${own}`;
  return (
    namespace === own ||
    referenceGrants.some(({ object: { metadata, from, services } }) => {
      const isAsked = metadata.namespace === namespace && from.includes(isOf);
      return isAsked && services.some((name) => (name ?? service) === service);
    })
  );
}
