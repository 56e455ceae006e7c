import { planNodePorts } from '../../cluster/node-context.ts';
import { stalePortsOf, type StalePorts } from '../../cluster/stale-slices.ts';
import { addressAfter, contains, isLoopback } from '../../kernel/address.ts';
import { families } from '../../kernel/family.ts';
import type { Link } from '../../kernel/link/link.ts';
import type { SocketAddress } from '../../kernel/ports-and-marks.ts';
import { prepareEvaluator, type Evaluator } from '../../packet/evaluate.ts';
import { unknownOwn, type Fate, type Packet } from '../../packet/packet.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { evaluateOnAny } from './any-node.ts';
import { knowledgeOf, wholeState } from './knowledge.ts';
import { podTrafficOf, type PodTraffic } from './pod-networks.ts';
import { hasProtocol } from '../../cluster/model.ts';
import { meetsRequirement, type LabelSelector } from '../../cluster/objects.ts';
import { allOf, type Maybe } from '../../packet/reason.ts';

export interface Scene {
  readonly side: Snapshot;
  readonly asked: Snapshot;
  /** The node's own links, without those that kube-proxy makes. In a comparison, they may be the other side's. */
  readonly links: readonly Link[];
  readonly evaluate: Evaluator;
  /**
   * Like `evaluate`, which returned `fate`, but without facts from the other side of a comparison, as in `kpc trace`. Evaluates again only
   * what may end otherwise.
   */
  readonly alone: (packet: Packet, fate: Fate) => Fate | undefined;
  readonly stale: StalePorts;
  readonly podTraffic: PodTraffic;
}

/**
 * Reports whether a packet goes to a node port at an address that the input does not have. A Node lists one or two addresses, but a node
 * may have more: on another network card, a VPN, or a virtual IP.
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
    // The first address of the node's pod network is usually the node's own, on its bridge.
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
 * Gives the node an unknown address if the input shows none. A node always has an address, and node ports listen there if they listen on
 * all addresses or the primary one.
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

/**
 * Returns the other side's cluster IPs that no Service on this side has. This side alone does not show that no node has these addresses.
 */
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

/** Parts of a state that a dump may leave out. They are then assumed to equal the other side's. */
export const partsOfDump = ['sets', 'virtualServers', 'links', 'sysctls'] as const;

/**
 * Completes two sides of one node. Facts that one side lacks, such as the node's addresses and cluster IPs, come from the other. `wholes`:
 * the sides with their objects, if the scenes lack them.
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
  const missing = partsOfDump.filter((part) => !side.coverage[part] && other.side.coverage[part]);
  const knowsAddresses = scene.links.some(({ addresses }) => addresses.length > 0);
  const clusterIPs = clusterIPsOnlyOf(other.side, side);
  if (missing.length === 0 && knowsAddresses && clusterIPs.size + stale.size === 0) return scene;
  const taken = Object.fromEntries(missing.map((part) => [part, other.side.state[part]]));
  const shown = Object.fromEntries(missing.map((part) => [part, true]));
  const { allAddresses } = (missing.includes('links') ? other : scene).side.coverage;
  const coverage = { ...side.coverage, ...shown, allAddresses };
  const completed = side.kind === 'dump' ? side.completedBy({ ...side.state, ...taken }, coverage) : side;
  const links = knowsAddresses ? scene.links : other.links;
  const evaluate = evaluatorOf(completed, links, scene.podTraffic, clusterIPs, stale);
  return { ...scene, side: completed, links, stale, evaluate, alone: evaluateAlone(scene) };
}

export interface KnownLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** Whether there are no other labels. */
  readonly isWhole: boolean;
}

export function selectsLabels(selector: LabelSelector, { labels, isWhole }: KnownLabels): Maybe {
  return allOf(selector, (requirement) =>
    isWhole || Object.hasOwn(labels, requirement.key) ? meetsRequirement(requirement, labels) : undefined,
  );
}

/** kube-apiserver labels every Namespace with its name. */
export function labelsOfNamespace(namespace: string | undefined, { side: { objects } }: Scene): KnownLabels {
  if (namespace === undefined) return { labels: {}, isWhole: false };
  const own = objects.namespaces.find(({ object }) => object.metadata.name === namespace);
  const labels = { ...own?.object.metadata.labels, 'kubernetes.io/metadata.name': namespace };
  return { labels, isWhole: own !== undefined };
}
