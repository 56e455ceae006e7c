import { hasProtocol, sourceNetworks, type ShownPort } from '../../cluster/model.ts';
import type { EndpointStatus } from '../../cluster/objects.ts';
import { contains, joinHostPort, type Address, type Network } from '../../kernel/address.ts';
import { isUnknownOwn, type Packet } from '../../packet/packet.ts';
import { addressKind } from '../trace/service-ends.ts';
import { nodeSocketText } from '../trace/read-destination.ts';
import type { Scene } from '../trace/scene.ts';
import type { Answers } from './compare.ts';
import type { PlacedSender } from './senders.ts';
import type { destinationKinds, EffectSender, SenderRange } from './effects.ts';

type Sent = Pick<Packet, 'destination' | 'protocol' | 'port'>;

export interface KnownDestination {
  readonly kind: (typeof destinationKinds)[number];
  readonly ports: readonly ShownPort[];
}

export function textOfDestination({ destination, protocol, port }: Sent): string {
  if (isUnknownOwn(destination)) return nodeSocketText({ port, protocol }, destination.family);
  return protocol === 'icmp' ? destination.text : joinHostPort(destination.text, port);
}

export const isOfService: ReadonlySet<KnownDestination['kind']> = new Set([
  'cluster-ip',
  'external-ip',
  'load-balancer-ip',
  'unknown',
  'node-port',
]);

export function portText({ label, family }: ShownPort): string {
  return `${label} ${family}`;
}

/** Says on which sides the sender is an endpoint of the Service that it sends to. */
type OwnEndpoint = 'kept' | 'removed' | 'added';

/**
 * Returns on which sides the sender is an endpoint of the Services that it sends to; undefined if it is one on neither side. If only one
 * side has the Service, its endpoints count as `kept`.
 */
export function ownEndpointOf(
  { address }: PlacedSender,
  { ports }: KnownDestination,
  sides: readonly (Pick<Scene, 'side'> & { readonly ports: ReadonlySet<string> })[],
): OwnEndpoint | undefined {
  if (!address) return undefined;
  const asked = ports.map(portText);
  const [old, fresh] = sides.map(({ side, ports: all }) => ({
    isServed: side.addresses.servedAt(address.text).some((each) => asked.includes(portText(each))),
    hasPort: asked.some((each) => all.has(each)),
  }));
  if (!old?.isServed && !fresh?.isServed) return undefined;
  if (old?.hasPort && !old.isServed) return 'added';
  return fresh?.hasPort && !fresh.isServed ? 'removed' : 'kept';
}

/**
 * Names the sender as precisely as the report needs. For load balancer addresses, the name includes a source range from the Service,
 * because kube-proxy applies source ranges only there.
 */
export function senderOf(
  { who, address, place, among, isMoved }: PlacedSender,
  { kind, ports }: KnownDestination,
  own: OwnEndpoint | undefined,
): EffectSender {
  if (own) {
    const isElsewhere = place === 'other-node';
    if (own === 'kept') return { kind: isElsewhere ? 'other-endpoint' : 'endpoint' };
    return { kind: `${own}-endpoint`, isElsewhere };
  }
  const usual: EffectSender =
    among && isMoved ? { kind: 'range', who, within: among.text, without: [] } : { kind: place, who };
  if (kind !== 'load-balancer-ip' && kind !== 'unknown') return usual;
  const ranges = ports.flatMap(sourceNetworks);
  if (ranges.length === 0 || !address) return usual;
  if (place === 'outside') return { kind: 'range', who: { kind: 'client' }, ...cellOf(address, ranges) };
  const isCut = among !== undefined && ranges.some((range) => isWithin(range, among));
  return isCut ? { kind: 'range', who, ...cellOf(address, ranges) } : usual;
}

/** Returns all addresses that the ranges do not distinguish from this one: the narrowest range around it, minus ranges inside. */
function cellOf(address: Address, ranges: readonly Network[]): Pick<SenderRange, 'within' | 'without'> {
  const narrowest = ranges
    .filter((range) => contains(range, address))
    .reduce<Network | undefined>((best, range) => (!best || isWithin(range, best) ? range : best), undefined);
  const holes = narrowest ? ranges.filter((range) => isWithin(range, narrowest)) : ranges;
  const outermost = holes.filter((hole) => !holes.some((other) => isWithin(hole, other))).map(({ text }) => text);
  return { within: narrowest?.text, without: [...new Set(outermost)] };
}

function isWithin({ address, prefixLength }: Network, other: Network): boolean {
  return prefixLength > other.prefixLength && contains(other, address);
}

export function destinationFinder(
  scenes: readonly Scene[],
  nodes: ReadonlyMap<string, Address>,
): (packet: Sent, answers?: Answers) => KnownDestination {
  const indexes = [...new Set(scenes.map(({ side }) => side.addresses))];
  return ({ destination, protocol, port }, answers) => {
    const { text, family } = destination;
    const there = indexes.flatMap((index) => index.servicesAt(text));
    const own = there.filter((each) => each.port === port && hasProtocol(each, protocol));
    const [first] = own;
    if (first) return { kind: addressKind(first, destination) ?? 'unknown', ports: own };
    // In IPVS mode, the addresses of Services are also the node's own.
    if (!nodes.has(text) && !answers?.from && !answers?.to) {
      if (there.length === 0) return { kind: 'unserved-address', ports: [] };
      return { kind: protocol === 'icmp' ? 'ping' : 'unserved-port', ports: there };
    }
    const listening = indexes.flatMap((index) => index.nodePortsAt(port)).filter((each) => each.family === family);
    const isAsked = (each: ShownPort): boolean => each.nodePort === port && hasProtocol(each, protocol);
    const asked = listening.filter(
      (each) => isAsked(each) || (each.healthCheckNodePort === port && protocol === 'tcp'),
    );
    if (!asked[0]) return { kind: 'node', ports: there };
    return { kind: isAsked(asked[0]) ? 'node-port' : 'health-check', ports: asked };
  };
}

/** Returns, by name and family, the Service ports with an endpoint that may get connections, so that rules may name it. */
export function servedPorts({ side: { ports } }: Scene): readonly string[] {
  const serves = (status: EndpointStatus | undefined): boolean =>
    !status || status.ready || (status.serving && status.terminating);
  return ports.flatMap(({ label, family, endpoints = [] }) =>
    endpoints.some(({ status }) => serves(status)) ? [`${label} ${family}`] : [],
  );
}

/**
 * Reports whether a load balancer's source ranges exclude the sender on a side. The node has no single address, so it counts as excluded if
 * only one side has ranges.
 */
export function isShutOut(sender: Address | undefined, ports: readonly ShownPort[]): boolean {
  const lists = ports.map(sourceNetworks);
  const named = lists.filter(({ length }) => length > 0);
  if (!sender) return named.length > 0 && named.length < lists.length;
  return named.some((ranges) => !ranges.some((range) => contains(range, sender)));
}
