import { portAddresses, serviceName, type AddressIndex, type ServicePort } from '../../cluster/model.ts';
import type { EndpointStatus } from '../../cluster/objects.ts';
import {
  type Address,
  addressNumber,
  families,
  type Family,
  ipv4Number,
  isLinkLocal,
  isLoopback,
} from '../../kernel/address.ts';
import { spanOf } from '../../kernel/address-range.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { healthAnswerOf, type HealthAnswer } from '../../snapshot/health-checks.ts';
import { servicesWithoutEndpoints } from '../trace/service-ends.ts';
import type { Scene } from '../trace/scene.ts';
import { portKey, readPortKey, type ProtocolPort, type Questions } from './questions.ts';
import type { Clients } from './senders.ts';

type CompiledSnapshot = Exclude<Scene['side'], { readonly kind: 'dump' }>;

interface LikenessSide {
  readonly index: AddressIndex<ServicePort>;
  readonly ungiven: ReadonlySet<string>;
  readonly stale: Scene['stale'] | undefined;
  readonly node: string;
  /** Returns kube-proxy's answer to the Service's health checks, which depends on the ready endpoints of all the Service's ports. */
  readonly answer: (port: ServicePort) => HealthAnswer['status'] | undefined;
  readonly shapes: Map<ServicePort, Shape | undefined>;
}

/** Everything except names that decides how packets to a Service port end. */
interface Shape {
  readonly number: number;
  /** The addresses of the port and of its endpoints, without duplicates, in the order that the shape describes. */
  readonly addresses: readonly string[];
}

type Cuts = { readonly ipv4: readonly number[]; readonly ipv6: readonly bigint[] };

interface Use {
  readonly side: LikenessSide;
  readonly claims: readonly ServicePort[];
  readonly serves: readonly ServicePort[];
  readonly asked: readonly ProtocolPort[];
  readonly reached: readonly ProtocolPort[];
}

export interface Described {
  readonly shape: string;
  /** All addresses involved: the destination's own, its endpoints' and others. Equivalent destinations list theirs in the same order. */
  readonly addresses: readonly string[];
}

/** Numbers addresses and Service ports in order of first appearance. Descriptions that differ only in names then become equal. */
interface Cast {
  readonly addresses: Map<string, number>;
  readonly ports: Map<string, number>;
}

/**
 * Finds equivalent destinations. Neither side distinguishes packets to these, except by the addresses and names of Services with the same
 * shape. Only compiled sides have equivalent destinations, because their states follow from their Services.
 */
export class Likeness {
  readonly #sides: readonly LikenessSide[];
  readonly #clients: Clients;
  /** Addresses without an equivalent: the node's own, and those of senders that represent many others. */
  readonly #single: ReadonlySet<string>;
  readonly #cuts: Cuts;
  readonly #shapes = new Map<string, number>();
  readonly #places = new Map<string, number>();

  private constructor(sides: readonly LikenessSide[], clients: Clients, single: ReadonlySet<string>, cuts: Cuts) {
    this.#sides = sides;
    this.#clients = clients;
    this.#single = single;
    this.#cuts = cuts;
  }

  /** Returns undefined for sides that were read from a node, and for a mode in which each Service port has its own listening port. */
  static of(
    scenes: readonly [Scene, Scene],
    { spans }: Questions,
    clients: Clients,
    nodes: ReadonlyMap<string, Address>,
  ): Likeness | undefined {
    const snapshots = scenes.flatMap(({ side }) =>
      side.kind !== 'dump' && side.isAsCompiled && !modeFacts[side.mode].kinds.has('proxyPorts') ? side : [],
    );
    if (snapshots.length < scenes.length) return undefined;
    const networks = [
      ...scenes.flatMap(({ podTraffic }) => podTraffic.networks),
      ...snapshots.flatMap(({ cluster, node }) => [
        ...cluster.serviceCidrs.map(({ network }) => network),
        ...cluster.servicePorts.flatMap(({ sourceRanges }) => sourceRanges),
        ...node.podCIDRs,
      ]),
    ];
    const ranges = new Map(networks.map((each) => [each.text, each]));
    const all = [...spans, ...[...ranges.values()].map(spanOf)];
    const edges = (family: Family): readonly bigint[] => {
      const own = all.filter((span) => span.family === family).flatMap(({ first, last }) => [first, last + 1n]);
      return [...new Set(own)].sort((a, b) => (a < b ? -1 : 1));
    };
    const usual = families.flatMap((family) => clients.usual[family].flatMap(({ address }) => address?.text ?? []));
    const single = new Set([...nodes.keys(), ...usual]);
    return new Likeness(sidesOf(snapshots, scenes), clients, single, {
      ipv4: edges('ipv4').map(Number),
      ipv6: edges('ipv6'),
    });
  }

  /** Describes the destinations at an address. Undefined if no Service uses the address, or if no other destination can be equivalent. */
  at(address: Address): (key: ProtocolPort) => Described | undefined {
    const cast: Cast = { addresses: new Map([[address.text, 0]]), ports: new Map() };
    const told: unknown[] = [this.#kindOf(address)];
    const uses = this.#sides.map((side) => this.#usesOf(address, side));
    const isCovered = uses.every(({ side, claims, serves }) => {
      return !areOfSeveral(claims) && [claims, serves].every((ports) => this.#tell(ports, side, told, cast));
    });
    if (!isCovered) return () => undefined;
    const own = turnOf(told.join(' '), this.#places);
    const isPart = uses.some(({ claims, serves }) => claims.length + serves.length > 0);
    const addresses = [...cast.addresses.keys()];
    return (key) => {
      const atNode = this.#sides.map(({ index }) => nodePortsAt(index, address.family, key));
      const asked = uses.map((use, i) => askedWords(use, key, atNode[i] ?? none)).join(' ');
      if (atNode.every(({ length }) => length === 0))
        return isPart ? { shape: `${own} ${asked}`, addresses } : this.#describeIdle(address, key);
      // If several Services have this node port, their names decide which Service gets packets, so no other destination can be equivalent.
      if (atNode.some(areOfSeveral)) return undefined;
      const further = { addresses: new Map(cast.addresses), ports: new Map(cast.ports) };
      const toldHere: unknown[] = [own, asked];
      const isKnown = this.#sides.every((side, i) => this.#tell(atNode[i] ?? none, side, toldHere, further));
      return isKnown ? { shape: toldHere.join(' '), addresses: [...further.addresses.keys()] } : undefined;
    };
  }

  /** Describes a node port that exists only in the other family, so that no rule in this family matches it. */
  #describeIdle({ family, text }: Address, key: ProtocolPort): Described | undefined {
    const other = family === 'ipv4' ? 'ipv6' : 'ipv4';
    const isOfOther = this.#sides.every(({ index }) => nodePortsAt(index, other, key).length > 0);
    return isOfOther ? { shape: `idle ${text} ${readPortKey(key).protocol}`, addresses: [text] } : undefined;
  }

  #usesOf({ text }: Address, side: LikenessSide): Use {
    const claims = side.index.servicesAt(text);
    const serves = side.index.servedAt(text);
    const reached = serves.flatMap(({ protocol, endpoints }) =>
      endpoints.flatMap(({ address, port }) => (address.text === text ? portKey(protocol, port) : [])),
    );
    return { side, claims, serves, asked: claims.map(({ protocol, port }) => portKey(protocol, port)), reached };
  }

  /** Adds all facts about the ports that decide how packets end. Returns false if the ports' shapes do not cover all of these facts. */
  #tell(ports: readonly ServicePort[], side: LikenessSide, told: unknown[], cast: Cast): boolean {
    told.push('|');
    for (const port of ports) {
      const shape = this.#shapeOf(port, side);
      if (!shape) return false;
      told.push(shape.number, turnOf(port.label, cast.ports));
      for (const each of shape.addresses) told.push(turnOf(each, cast.addresses));
    }
    return true;
  }

  #shapeOf(port: ServicePort, side: LikenessSide): Shape | undefined {
    if (side.shapes.has(port)) return side.shapes.get(port);
    const shape = this.#readShape(port, side);
    side.shapes.set(port, shape);
    return shape;
  }

  #readShape(port: ServicePort, { index, ungiven, stale, node, answer }: LikenessSide): Shape | undefined {
    const own = portAddresses(port);
    if (
      own.some(({ address }) => index.endpointsAt(address.text).length > 0) ||
      port.endpoints.some(({ address, rivals }) => rivals !== undefined || index.servicesAt(address.text).length > 0)
    )
      return undefined;
    const turns = new Map<string, number>();
    const meet = (address: Address) => [turnOf(address.text, turns), this.#kindOf(address)];
    let text = JSON.stringify([
      [
        port.family,
        port.protocol,
        port.port,
        port.nodePort > 0,
        port.healthCheckNodePort > 0,
        port.affinitySeconds,
        answer(port),
      ],
      [port.internalPolicyLocal, port.externalPolicyLocal, port.scheduler, port.forwarding, port.hasIgnoredExternalIPs],
      port.sourceRanges.map((range) => range.text),
      ungiven.has(serviceName(port)),
      stale?.has(port.label),
      own.map(({ kind, address }) => [kind, meet(address)]),
    ]);
    for (const { address, port: number, status } of port.endpoints) {
      const turn = turnOf(address.text, turns);
      text += `;${turn},${this.#kindOf(address)},${number},${placementWords(status, node)}`;
    }
    return { number: turnOf(text, this.#shapes), addresses: [...turns.keys()] };
  }

  #kindOf(address: Address): string {
    const isSingle = this.#single.has(address.text) || isLoopback(address) || isLinkLocal(address);
    return isSingle
      ? address.text
      : `${address.family} ${this.#clients.placeOf(address)} ${betweenCuts(this.#cuts, address)}`;
  }
}

function askedWords({ asked, reached }: Use, key: ProtocolPort, atNode: readonly ServicePort[]): string {
  const isAsked = asked.includes(key);
  const isReached = reached.includes(key);
  // A node port leads to endpoints; a health check port leads to kube-proxy itself.
  const ofNode = atNode.map(({ protocol, nodePort }) => portKey(protocol, nodePort) === key);
  return [isAsked || isReached || atNode.length === 0 ? key : '', isAsked, isReached, ...ofNode].join(' ');
}

function placementWords(
  { nodeName, ready, serving, terminating, zoneHints, nodeHints }: EndpointStatus,
  node: string,
): string {
  const words = `${nodeName === node},${ready},${serving},${terminating}`;
  if (zoneHints.length + nodeHints.length === 0) return words;
  return `${words},${JSON.stringify([zoneHints, nodeHints.includes(node), nodeHints.length])}`;
}

function areOfSeveral(ports: readonly ServicePort[]): boolean {
  const [first, ...others] = ports;
  return first !== undefined && others.some((port) => serviceName(port) !== serviceName(first));
}

function turnOf(text: string, turns: Map<string, number>): number {
  const known = turns.get(text);
  if (known !== undefined) return known;
  turns.set(text, turns.size);
  return turns.size - 1;
}

function betweenCuts({ ipv4, ipv6 }: Cuts, address: Address): number {
  return address.family === 'ipv4' ? indexIn(ipv4, ipv4Number(address)) : indexIn(ipv6, addressNumber(address));
}

function indexIn<N extends number | bigint>(sorted: readonly N[], at: N): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as N) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function sidesOf(snapshots: readonly CompiledSnapshot[], scenes: readonly Scene[]): readonly LikenessSide[] {
  const sides = snapshots.map((side, i) => {
    const { cluster, node } = side;
    const ungiven = servicesWithoutEndpoints({ cluster });
    const checks = new Map(cluster.healthChecks.map((check) => [`${serviceName(check)} ${check.family}`, check]));
    const answer = (port: ServicePort) => {
      const check = checks.get(`${serviceName(port)} ${port.family}`);
      return check && healthAnswerOf(check, side).status;
    };
    const stale = scenes[i]?.stale;
    return { index: cluster.addresses, ungiven, stale, node: node.name, answer, shapes: new Map() };
  });
  return sides.filter(
    ({ index, node }, i) => sides.findIndex((each) => each.index === index && each.node === node) === i,
  );
}

function nodePortsAt(index: AddressIndex<ServicePort>, family: Family, key: ProtocolPort): readonly ServicePort[] {
  const isMeant = ({ protocol, nodePort, healthCheckNodePort }: ServicePort): boolean =>
    portKey(protocol, nodePort) === key || portKey('tcp', healthCheckNodePort) === key;
  return index.nodePortsAt(readPortKey(key).port).filter((port) => port.family === family && isMeant(port));
}

const none: readonly never[] = [];
