import { portAddresses, serviceName, type ServicePort } from '../../cluster/model.ts';
import { isLinkLocal, isLoopback, numberOf, type Address } from '../../kernel/address.ts';
import { spanOf } from '../../kernel/address-range.ts';
import { families, type Family } from '../../kernel/family.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { servicesWithoutEndpoints } from '../trace/doubted-ends.ts';
import type { Scene } from '../trace/scene.ts';
import { portKey, type PortKey, type Questions } from './questions.ts';
import type { Clients } from './senders.ts';

type CompiledSnapshot = Exclude<Scene['side'], { readonly kind: 'dump' }>;

/** How one side's Service ports use addresses and node ports ("ipv4 tcp 30080"). */
interface Side {
  readonly snapshot: CompiledSnapshot;
  /** By Service address. */
  readonly claims: ReadonlyMap<string, readonly ServicePort[]>;
  /** By endpoint address. */
  readonly serves: ReadonlyMap<string, readonly ServicePort[]>;
  readonly nodePorts: ReadonlyMap<string, readonly ServicePort[]>;
  /** "namespace/name" of the Services whose endpoints the input lacks. */
  readonly ungiven: ReadonlySet<string>;
  readonly shapes: Map<ServicePort, Shape | undefined>;
}

/** Everything except names that decides how packets to a Service port end. */
interface Shape {
  /** Equal for two ports of one shape. */
  readonly number: number;
  /** Its addresses and its endpoints' addresses, in an order that is part of the shape, without duplicates. */
  readonly addresses: readonly string[];
}

/** Where networks that rules may match begin and end, sorted. */
type Cuts = { readonly [F in Family]: readonly bigint[] };

/** A destination reduced to its kind. */
export interface Described {
  /** Equal for equivalent destinations. */
  readonly shape: string;
  /** The addresses involved, including itself and endpoints; in the same order for equivalent destinations. */
  readonly addresses: readonly string[];
}

/** The order in which addresses and Service ports were first met, which makes two descriptions equal if they only differ in names. */
interface Cast {
  readonly addresses: Map<string, number>;
  readonly ports: Map<string, number>;
}

/**
 * Finds equivalent destinations: neither side distinguishes their packets except by the addresses and names of Services of one
 * shape. This only holds for compiled sides, whose states follow from the Services.
 */
export class Likeness {
  readonly #sides: readonly Side[];
  readonly #clients: Clients;
  /** Addresses that are equivalent to no other: the node's own, and those of senders that represent many. */
  readonly #single: ReadonlySet<string>;
  readonly #cuts: Cuts;
  readonly #kinds = new Map<string, string>();
  readonly #shapes = new Map<string, number>();

  private constructor(sides: readonly Side[], clients: Clients, single: ReadonlySet<string>, cuts: Cuts) {
    this.#sides = sides;
    this.#clients = clients;
    this.#single = single;
    this.#cuts = cuts;
  }

  /** Undefined for sides that were read from a node, and for a mode that gives each Service port its own listening port. */
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
    return new Likeness(snapshots.map(indexPorts), clients, single, { ipv4: edges('ipv4'), ipv6: edges('ipv6') });
  }

  /** Undefined for a destination that no Service uses, or that is equivalent to no other. */
  describe(address: Address, key: PortKey): Described | undefined {
    const cast: Cast = { addresses: new Map([[address.text, 0]]), ports: new Map() };
    const told: unknown[] = [this.#kindOf(address)];
    let isPart = false;
    for (const side of this.#sides) {
      const claims = side.claims.get(address.text) ?? [];
      const serves = side.serves.get(address.text) ?? [];
      const atNode = side.nodePorts.get(`${address.family} ${key}`) ?? [];
      // Names decide which of several Services comes first.
      if (areOfSeveral(claims) || areOfSeveral(atNode)) return undefined;
      const isAsked = claims.some(({ protocol, port }) => portKey(protocol, port) === key);
      const isReached = serves.some(({ protocol, endpoints }) =>
        endpoints.some((each) => each.address.text === address.text && portKey(protocol, each.port) === key),
      );
      // A node port stands for what it leads to.
      told.push(isAsked || isReached || atNode.length === 0 ? key : '', isAsked, isReached);
      // A health check port leads to kube-proxy itself.
      told.push(...atNode.map(({ protocol, nodePort }) => portKey(protocol, nodePort) === key));
      for (const ports of [claims, serves, atNode]) {
        told.push('|');
        for (const port of ports) {
          const shape = this.#shapeOf(port, side);
          if (!shape) return undefined;
          isPart = true;
          told.push(shape.number, turnOf(port.label, cast.ports));
          for (const each of shape.addresses) told.push(turnOf(each, cast.addresses));
        }
      }
    }
    return isPart ? { shape: told.join(' '), addresses: [...cast.addresses.keys()] } : undefined;
  }

  /** Everything about a Service port that decides how packets end; undefined if its shape does not cover that. */
  #shapeOf(port: ServicePort, side: Side): Shape | undefined {
    if (side.shapes.has(port)) return side.shapes.get(port);
    const shape = this.#readShape(port, side);
    side.shapes.set(port, shape);
    return shape;
  }

  #readShape(port: ServicePort, side: Side): Shape | undefined {
    const own = portAddresses(port);
    if (
      own.some(({ address }) => side.serves.has(address.text)) ||
      port.endpoints.some(({ address, rivals }) => rivals !== undefined || side.claims.has(address.text))
    )
      return undefined;
    const turns = new Map<string, number>();
    const meet = (address: Address) => [turnOf(address.text, turns), this.#kindOf(address)];
    const { name } = side.snapshot.node;
    const text = JSON.stringify([
      [port.family, port.protocol, port.port, port.nodePort > 0, port.healthCheckNodePort > 0, port.affinitySeconds],
      [port.internalPolicyLocal, port.externalPolicyLocal, port.scheduler, port.forwarding, port.hasIgnoredExternalIPs],
      port.sourceRanges.map((range) => range.text),
      side.ungiven.has(serviceName(port)),
      own.map(({ kind, address }) => [kind, meet(address)]),
      port.endpoints.map(({ address, port: number, status }) => {
        const { nodeName, ready, serving, terminating, zoneHints, nodeHints } = status;
        const hints = [zoneHints, nodeHints.includes(name), nodeHints.length];
        return [meet(address), number, nodeName === name, ready, serving, terminating, hints];
      }),
    ]);
    return { number: turnOf(text, this.#shapes), addresses: [...turns.keys()] };
  }

  /** How rules and the node treat an address. */
  #kindOf(address: Address): string {
    const known = this.#kinds.get(address.text);
    if (known !== undefined) return known;
    const isSingle = this.#single.has(address.text) || isLoopback(address) || isLinkLocal(address);
    const kind = isSingle
      ? address.text
      : `${address.family} ${this.#clients.placeOf(address)} ${indexIn(this.#cuts[address.family], numberOf(address))}`;
    this.#kinds.set(address.text, kind);
    return kind;
  }
}

function areOfSeveral(ports: readonly ServicePort[]): boolean {
  const [first, ...others] = ports;
  return first !== undefined && others.some((port) => serviceName(port) !== serviceName(first));
}

/** When something was first met. */
function turnOf(text: string, turns: Map<string, number>): number {
  const known = turns.get(text);
  if (known !== undefined) return known;
  turns.set(text, turns.size);
  return turns.size - 1;
}

/** How many of the sorted numbers are at most `at`. */
function indexIn(sorted: readonly bigint[], at: bigint): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as bigint) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function indexPorts(snapshot: CompiledSnapshot): Side {
  const { servicePorts } = snapshot.cluster;
  const claims = new Map<string, ServicePort[]>();
  const serves = new Map<string, ServicePort[]>();
  const nodePorts = new Map<string, ServicePort[]>();
  const add = (to: Map<string, ServicePort[]>, key: string, port: ServicePort): void => {
    const known = to.get(key);
    if (!known) to.set(key, [port]);
    else if (known.at(-1) !== port) known.push(port);
  };
  for (const port of servicePorts) {
    const { family, protocol, nodePort, healthCheckNodePort, endpoints } = port;
    for (const { address } of portAddresses(port)) add(claims, address.text, port);
    for (const { address } of endpoints) add(serves, address.text, port);
    if (nodePort > 0) add(nodePorts, `${family} ${portKey(protocol, nodePort)}`, port);
    if (healthCheckNodePort > 0) add(nodePorts, `${family} ${portKey('tcp', healthCheckNodePort)}`, port);
  }
  return {
    snapshot,
    claims,
    serves,
    nodePorts,
    shapes: new Map(),
    ungiven: servicesWithoutEndpoints(snapshot),
  };
}
