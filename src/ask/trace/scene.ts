import { type Endpoint, hasProtocol, type ServicePort } from '../../cluster/model.ts';
import { nodeAddresses, planNodePorts, zoneOf } from '../../cluster/node-context.ts';
import { type LabelSelector, meetsRequirement, type Node } from '../../cluster/objects.ts';
import { endpointClass, PlanMemo, type TrafficPlan } from '../../cluster/plan-traffic.ts';
import { type StalePorts, stalePortsOf } from '../../cluster/stale-slices.ts';
import { addressAfter, contains, families, isLoopback } from '../../kernel/address.ts';
import { addressesOn, type Link } from '../../kernel/link/link.ts';
import type { SocketAddress } from '../../kernel/ports-and-marks.ts';
import { type Evaluator, fateOnAnyOf, prepareEvaluator } from '../../packet/evaluate.ts';
import { type Fate, type Packet, unknownOwn } from '../../packet/packet.ts';
import { allOf, type Maybe } from '../../packet/reason.ts';
import type { CompiledSnapshot, DumpedSnapshot, Snapshot } from '../../snapshot/snapshot.ts';
import { knowledgeOf, wholeState } from './knowledge.ts';
import { type PodTraffic, podTrafficOf } from './pod-networks.ts';

export interface Scene {
  readonly side: Snapshot;
  readonly asked: Snapshot;
  /** The node's links, except those that kube-proxy makes. In a comparison, links may come from the other side. */
  readonly links: readonly Link[];
  readonly evaluate: Evaluator;
  /**
   * Evaluates a packet as `kpc trace` does, without facts from the other side of a comparison. `fate`: what `evaluate` returned for the
   * packet. Only a packet that may end differently is evaluated again.
   */
  readonly alone: (packet: Packet, fate: Fate) => Fate | undefined;
  readonly stale: StalePorts;
  readonly podTraffic: PodTraffic;
}

/**
 * Reports whether a packet goes to a node port at an address that is not in the input. A Node lists one or two addresses, but a node may
 * have more, such as those of another network card, of a VPN, or a virtual IP.
 */
export function isUnplacedDestination(
  { destination, port, protocol }: Packet,
  { side, links }: Pick<Scene, 'side' | 'links'>,
): boolean {
  if (side.kind === 'dump' || side.node.hostAddresses.some(isLoopback)) return false;
  const isNodePort = side.addresses
    .nodePortsAt(port)
    .some((each) => each.nodePort === port && each.family === destination.family && hasProtocol(each, protocol));
  const isKnown =
    side.endpoints.isOfService(destination.text) ||
    side.endpoints.has(destination.text) ||
    side.cluster.serviceCidrs.some(({ network }) => contains(network, destination)) ||
    // The node's bridge usually has the first address of the node's pod network.
    side.node.podCIDRs.some(
      (network) => contains(network, destination) && addressAfter(network.address, 1).text !== destination.text,
    ) ||
    side.objects.nodes.some(({ object }) => object.addresses.some(({ address }) => address === destination.text)) ||
    links.some(({ addresses }) => addresses.some(({ address }) => address.text === destination.text));
  return isNodePort && !isKnown;
}

export function sceneOf(side: Snapshot): Scene {
  return sceneAt(atSomeAddress(side), side);
}

function sceneAt(side: Snapshot, asked: Snapshot): Scene {
  const { links } = side;
  const podTraffic = podTrafficOf(wholeState(side));
  const evaluate = evaluatorOf(side, links, podTraffic);
  const ask = (packet: Packet, fate: Fate): Fate =>
    isUnplacedDestination(packet, { side, links }) ? evaluate({ ...packet, isUnplaced: true }) : fate;
  const alone = asked.alone ? evaluatedLater(asked.alone) : ask;
  return { side, asked, links, podTraffic, evaluate, alone, stale: new Map() };
}

function evaluatedLater(open: () => Snapshot | undefined): Scene['alone'] {
  let made: { readonly scene: Scene | undefined } | undefined;
  return (packet) => {
    if (!made) {
      const side = open();
      made = { scene: side && sceneOf(side) };
    }
    return made.scene && evaluateAlone(made.scene)(packet);
  };
}

function evaluateAlone({ evaluate, alone }: Scene): (packet: Packet) => Fate | undefined {
  return (packet) => alone(packet, evaluate(packet));
}

/**
 * Gives the node a placeholder address if the input shows none. A node always has an address, and node ports listen at that address if they
 * listen at all addresses or at the primary one.
 */
function atSomeAddress(side: Snapshot): Snapshot {
  if (side.kind === 'dump' || !side.isAsCompiled) return side;
  const { node, settings, families: own } = side;
  if (node.hostAddresses.length > 0 || families.some((family) => !isLoopback(node.nodeIPs[family]))) return side;
  const open = own.filter((family) => {
    const at = { nodeIPs: unknownOwn, hostAddresses: [unknownOwn[family]] };
    return planNodePorts(settings, at, family).addresses?.length !== 0;
  });
  if (open.length === 0) return side;
  const addresses = open.map((family) => [family, unknownOwn[family]] as const);
  const nodeIPs = { ...node.nodeIPs, ...Object.fromEntries(addresses) };
  return side.on({ ...node, nodeIPs, hostAddresses: open.map((family) => unknownOwn[family]) });
}

function evaluatorOf(
  side: Snapshot,
  links: readonly Link[],
  podTraffic: PodTraffic,
  clusterIPs: ReadonlySet<string> = new Set(),
  stale: StalePorts = new Map(),
): Evaluator {
  const own = prepareEvaluator(wholeState(side), knowledgeOf(side, links, podTraffic, clusterIPs, stale));
  return evaluateOnAny(side, own, (one) => evaluatorOf(one, one.links, podTraffic, clusterIPs, stale));
}

/** Returns the other side's cluster IPs that no Service on this side has. This side does not show that the node lacks them. */
function clusterIPsOnlyOf(other: Snapshot, side: Snapshot): ReadonlySet<string> {
  const own = new Set(side.ports.flatMap(({ clusterIP }) => clusterIP?.text ?? []));
  return new Set(other.ports.flatMap(({ clusterIP }) => (clusterIP && !own.has(clusterIP.text) ? clusterIP.text : [])));
}

export function pairsElsewhere(from: Snapshot, to: Snapshot): readonly (readonly [Snapshot, Snapshot])[] {
  return from.elsewhere.flatMap((old) => {
    const fresh = to.elsewhere.find(({ nodeName }) => nodeName === old.nodeName);
    return fresh ? [[old, fresh] as const] : [];
  });
}

export function isLocalEndpoint({ side: { endpoints } }: Scene, endpoint: SocketAddress): boolean | undefined {
  return endpoints.isLocal(endpoint);
}

/** The parts of a state that a dump may lack. kpc then assumes that they are the same as on the other side. */
export const partsOfDump = ['sets', 'virtualServers', 'links', 'sysctls'] as const;

/**
 * Completes two sides of one node. Facts that one side lacks, such as the node's addresses and cluster IPs, come from the other side. If
 * that side is a dump, all that other programs have on the node comes from it too. `wholes`: sides with objects, if the scenes lack these.
 */
export function onOneNode(
  from: Scene,
  to: Scene,
  wholes: readonly [Snapshot, Snapshot] = [from.asked, to.asked],
): readonly [Scene, Scene] {
  const [old, fresh] = wholes;
  const [isOpen, isOtherOpen] = [from, to].map(({ side, asked }) => side !== asked);
  const [one, other] = isOpen === isOtherOpen ? [from, to] : [bare(from), bare(to)];
  return [completeScene(one, other, stalePortsOf(old, fresh)), completeScene(other, one, stalePortsOf(fresh, old))];
}

function bare(scene: Scene): Scene {
  const { asked } = scene;
  return { ...sceneAt(asked, asked), alone: evaluateAlone(scene) };
}

function completeScene(scene: Scene, other: Scene, stale: StalePorts): Scene {
  const { side } = scene;
  const host = side.kind !== 'dump' && other.side.kind === 'dump' ? other.side : undefined;
  const missing = partsOfDump.filter((part) => !side.coverage[part] && other.side.coverage[part]);
  const knowsAddresses = scene.links.some(({ addresses }) => addresses.length > 0);
  const clusterIPs = clusterIPsOnlyOf(other.side, side);
  if (!host && missing.length === 0 && knowsAddresses && clusterIPs.size + stale.size === 0) return scene;
  const taken = Object.fromEntries(missing.map((part) => [part, other.side.state[part]]));
  const shown = Object.fromEntries(missing.map((part) => [part, true]));
  const { allAddresses } = (missing.includes('links') ? other : scene).side.coverage;
  const coverage = { ...side.coverage, ...shown, allAddresses };
  const completed =
    side.kind === 'dump'
      ? side.completedBy({ ...side.state, ...taken }, coverage)
      : host
        ? side.besideDump(host)
        : side;
  const links = knowsAddresses && !(host && showsAddresses(host, scene)) ? scene.links : other.links;
  const evaluate = evaluatorOf(completed, links, scene.podTraffic, clusterIPs, stale);
  return { ...scene, side: completed, links, stale, evaluate, alone: evaluateAlone(scene) };
}

function showsAddresses({ coverage, links }: DumpedSnapshot, scene: Scene): boolean {
  const shown = addressesOn(links);
  const own = scene.links.flatMap(({ addresses }) => addresses);
  return coverage.links && own.every(({ address }) => isLoopback(address) || shown.has(address.text));
}

export interface KnownLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** Whether `labels` holds all labels. */
  readonly isWhole: boolean;
}

export function selectsLabels(selector: LabelSelector, { labels, isWhole }: KnownLabels): Maybe {
  return allOf(selector, (requirement) =>
    isWhole || Object.hasOwn(labels, requirement.key) ? meetsRequirement(requirement, labels) : undefined,
  );
}

/** Returns a namespace's labels. kube-apiserver labels every Namespace with its name. */
export function labelsOfNamespace(namespace: string | undefined, { side: { objects } }: Scene): KnownLabels {
  if (namespace === undefined) return { labels: {}, isWhole: false };
  const own = objects.namespaces.find(({ object }) => object.metadata.name === namespace);
  const labels = { ...own?.object.metadata.labels, 'kubernetes.io/metadata.name': namespace };
  return { labels, isWhole: own !== undefined };
}

/**
 * Finds a packet's fate if the input has several Nodes and no Node is named. The result is the fate that all Nodes share, or unknown. `own`
 * evaluates the packet on a node without a name, which has neither endpoints nor a Node's address.
 */
function evaluateOnAny(side: Snapshot, own: Evaluator, make: (one: Snapshot) => Evaluator): Evaluator {
  const { anyOf } = side.kind === 'dump' ? { anyOf: undefined } : side;
  if (side.kind === 'dump' || !anyOf) return own;
  const standIns = new StandIns(side, anyOf);
  const made = new Map<string, Evaluator | undefined>();
  const evaluate = (name: string, isOwner: boolean, packet: Packet): readonly (readonly [string, Fate])[] => {
    const key = `${name} ${isOwner}`;
    if (!made.has(key)) {
      const one = standIns.snapshotOf(name, isOwner);
      made.set(key, one && make(one));
    }
    const found = made.get(key)?.(packet);
    return found ? [[name, found]] : [];
  };
  const onAny = (packet: Packet): Fate => {
    const owner = standIns.ownerOf(packet);
    const others = standIns.namesFor(packet, owner).flatMap((name) => evaluate(name, false, packet));
    const fates = owner === undefined ? others : [...evaluate(owner, true, packet), ...others];
    return fateOnAnyOf(new Map(fates)) ?? own(packet);
  };
  return Object.assign(onAny, { placeOf: own.placeOf, isNeighbour: own.isNeighbour });
}

/** Chooses Nodes that together show all differences between Nodes for a packet: one or two for each class of plans for its ports. */
class StandIns {
  readonly #side: CompiledSnapshot;
  readonly #nodes: ReadonlyMap<string, Node>;
  readonly #plans = new PlanMemo();
  readonly #ofPorts = new Map<ServicePort, readonly string[]>();
  #owners: ReadonlyMap<string, string> | undefined;

  constructor(side: CompiledSnapshot, nodes: ReadonlyMap<string, Node>) {
    this.#side = side;
    this.#nodes = nodes;
  }

  ownerOf({ destination }: Packet): string | undefined {
    this.#owners ??= new Map(
      [...this.#nodes].flatMap(([name, node]) => nodeAddresses(node).map(({ text }) => [text, name] as const)),
    );
    return this.#owners.get(destination.text);
  }

  namesFor({ source, destination, port }: Packet, owner: string | undefined): readonly string[] {
    const { addresses } = this.#side.cluster;
    const ports = [...addresses.servicesAt(destination.text), ...addresses.nodePortsAt(port)];
    const ends = ports.length === 0 ? [] : [destination, ...(source ? [source] : [])];
    const homes = ends.flatMap(({ text }) => addresses.endpointsAt(text).map(({ status }) => status?.nodeName ?? ''));
    const names = new Set([
      ...ports.flatMap((each) => this.#namesOf(each)),
      ...homes.filter((each) => this.#nodes.has(each)),
    ]);
    if (owner === undefined) return [...names].toSorted();
    const other = [...this.#nodes.keys()].find((name) => name !== owner) ?? owner;
    names.delete(owner);
    return names.size > 0 ? [...names].toSorted() : [other];
  }

  /** Returns one Node of each class, and a second Node if the Nodes of that class have different endpoints. */
  #namesOf(port: ServicePort): readonly string[] {
    const known = this.#ofPorts.get(port);
    if (known) return known;
    const plans = new Set<TrafficPlan>();
    const seen = new Map<string, readonly Endpoint[] | undefined>();
    const isTold = (key: string, list: readonly Endpoint[]): boolean => {
      const first = seen.get(key);
      if (seen.has(key) && (first === undefined || areSame(first, list))) return false;
      seen.set(key, seen.has(key) ? undefined : list);
      return true;
    };
    const names = [...this.#nodes].filter(([name, node]) => {
      const plan = this.#plans.recall(port, { name, zone: zoneOf(node) });
      if (plans.has(plan)) return false;
      plans.add(plan);
      const kind = endpointClass(plan);
      const lists = [plan.clusterEndpoints, plan.localEndpoints, plan.onNode];
      return lists.filter((list, i) => isTold(`${i} ${kind}`, list)).length > 0;
    });
    const found = names.map(([name]) => name);
    this.#ofPorts.set(port, found);
    return found;
  }

  /** Returns the side as it is on one Node. Only the Node that a packet is sent to keeps its own addresses. */
  snapshotOf(name: string, isOwner: boolean): CompiledSnapshot | undefined {
    const one = this.#side.onNode(name);
    const { nodeIPs, hostAddresses } = this.#side.node;
    return isOwner ? one : one?.on({ ...one.node, nodeIPs, hostAddresses });
  }
}

function areSame(some: readonly Endpoint[], others: readonly Endpoint[]): boolean {
  return some === others || (some.length === others.length && some.every((each, i) => each === others[i]));
}
