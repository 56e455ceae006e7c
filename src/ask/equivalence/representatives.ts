import {
  keyOfPort,
  portAddresses,
  type Cluster,
  type Endpoint,
  type ServicePort,
  type ShownPort,
} from '../../cluster/model.ts';
import { zoneOf } from '../../cluster/node-context.ts';
import type { Node, ProxySettings } from '../../cluster/objects.ts';
import { groupBy, uniqueBy } from '../../cluster/grouping.ts';
import { isNetworkRange, networkOfRange, parseAddressRange, type AddressRange } from '../../kernel/address-range.ts';
import { addressBits, parseAddress, parseNetwork, prefixKey, type Address } from '../../kernel/address.ts';
import { compareText } from '../../kernel/compare.ts';
import { PlanMemo, endpointClass, statusOf, type TrafficPlan } from '../../cluster/plan-traffic.ts';
import type { Scene } from '../trace/scene.ts';
import { portKey, type ProtocolPort } from './questions.ts';

/** The packets to compare on a node: packets to these addresses, and to these ports of the node itself. */
export interface Only {
  readonly addresses: ReadonlySet<string>;
  readonly ports: ReadonlySet<ProtocolPort>;
}

export function packetsTo(servicePorts: readonly ShownPort[]): Only {
  const addresses = new Set<string>();
  const ports = new Set<ProtocolPort>();
  for (const port of servicePorts) {
    const { protocol, nodePort, healthCheckNodePort, endpoints = [] } = port;
    for (const { address } of [...portAddresses(port), ...endpoints]) if (address) addresses.add(address.text);
    if (nodePort) ports.add(portKey(protocol, nodePort));
    if (healthCheckNodePort) ports.add(portKey('tcp', healthCheckNodePort));
  }
  return { addresses, ports };
}

/** Returns the packets to Service ports that nodes with and without endpoints treat differently. Undefined if there are none. */
export function packetsToPlaced(servicePorts: readonly ServicePort[]): Only | undefined {
  const placed = servicePorts.filter(looksAtPlace);
  return placed.length === 0 ? undefined : packetsTo(placed);
}

/** A node that represents other nodes, with the packets to compare on it. `only` is undefined if all packets are compared. */
export interface StandIn {
  readonly node: string;
  readonly only: Only | undefined;
}

/** A node, with the nodes that represent it. If all its packets are traced, only the node itself is listed. */
export interface Represented {
  readonly node: string;
  readonly by: readonly string[];
}

/** A cluster as one side reads it. The manifests of the two sides may differ in any way, and their releases may follow different hints. */
export interface ClusterSide {
  readonly nodes: ReadonlyMap<string, Node>;
  readonly cluster: Pick<Cluster, 'servicePorts' | 'addresses' | 'serviceCidrs'>;
  readonly settings: ProxySettings;
  /** Each node's addresses that the Node object does not list. */
  readonly hosts?: ReadonlyMap<string, readonly Address[]> | undefined;
}

/**
 * Chooses the nodes that together show every difference between a cluster's nodes, except their own addresses. How a node treats packets to
 * a Service depends on which of the Service's endpoints it uses and has, if a traffic policy, hints or the endpoints' addresses decide
 * that. It also depends on the kinds of the node's addresses and of its endpoints, on which of the node's addresses are Service addresses
 * too, and on which networks in settings and Services contain addresses of the node and its Pods. A node represents only itself if it or
 * its endpoints differ between the sides.
 */
export function chooseStandIns(sides: readonly ClusterSide[], names: readonly string[]) {
  const shapes = sides.map(nodeShapes);
  const kindOf = (endpoint: Endpoint): string =>
    [statusOf(endpoint), isStrange(endpoint), ...shapes.map(({ placeOf }) => placeOf(endpoint.address))].join(' ');
  const owns = sides.map(ownOfNodes);
  const servicePorts = [...new Set(sides.flatMap(({ cluster }) => cluster.servicePorts))];
  const ofNodes = new Set(
    sides.flatMap(({ nodes }) =>
      [...nodes.values()].flatMap(({ addresses }) => addresses.map(({ address }) => address)),
    ),
  );
  /** Reports whether the endpoint's address also belongs to a Node or Service. kpc then treats the endpoint like that Node or Service. */
  const isStrange = ({ address: { text } }: Endpoint): boolean =>
    ofNodes.has(text) || sides.some(({ cluster }) => cluster.addresses.servicesAt(text).length > 0);
  const bound = groupBy(
    servicePorts.filter((port) => looksAtPlace(port) || port.endpoints.some(isStrange)),
    keyOfPort,
  );
  const traffic = new PlanMemo();
  const ids = new Map<TrafficPlan, number>();
  const idOf = (plan: TrafficPlan): number => {
    const id = ids.get(plan) ?? ids.size;
    ids.set(plan, id);
    return id;
  };
  const seen = new Map<string, string>();
  const firstWith = (key: string, name: string): string => {
    const first = seen.get(key) ?? name;
    seen.set(key, first);
    return first;
  };
  const found = names.map((name): StandIn & { readonly by: ReadonlySet<string> } => {
    // A node that differs between the sides may resemble another node on only one of them, so it represents no other node.
    if (new Set(owns.map((ownOf) => ownOf(name))).size > 1) return { node: name, only: undefined, by: new Set([name]) };
    const like = firstWith(shapes.map(({ shapeOf }) => shapeOf(name)).join(' '), name);
    const identity = { name, zone: zoneOf(sides[0]?.nodes.get(name)) };
    const firsts = [...bound].map(([of, ports]) => {
      const plans = ports.map((port) => traffic.recall(port, identity));
      const key = plans.map(idOf).join(' ');
      const known = seen.get(key);
      if (known !== undefined) return known;
      const used = new Set(plans.map(endpointsIn));
      // If the two sides use different endpoints, nodes are alike only if they use the same endpoints on each side.
      const classes = plans.map((plan) => endpointClass(plan, kindOf));
      return firstWith(key, firstWith([of, ...(used.size > 1 ? [...used] : []), ...classes].join(' | '), name));
    });
    if (like === name) return { node: name, only: undefined, by: new Set([name]) };
    return {
      node: name,
      only: packetsTo([...bound.values()].filter((_, i) => firsts[i] === name).flat()),
      by: new Set([like, ...firsts]),
    };
  });
  return {
    standIns: found.flatMap(({ node, only, by }) => (by.has(node) ? [{ node, only }] : [])),
    represented: found.map(({ node, by }) => ({ node, by: [...by].toSorted() })),
  };
}

function endpointsIn({ clusterEndpoints, localEndpoints }: TrafficPlan): string {
  return [clusterEndpoints, localEndpoints].map((list) => list.map(({ label }) => label).join()).join(' / ');
}

/** Returns two functions: one finds what distinguishes a node from others on a side, the other finds which networks contain an address. */
function nodeShapes(side: ClusterSide) {
  const { nodes, cluster, hosts } = side;
  const { servicePorts } = cluster;
  const placeOf = networkPlaces(side);
  const external = new Set(
    servicePorts.flatMap((port) => [...port.externalIPs, ...port.loadBalancerIPs].map(({ text }) => text)),
  );
  const hosted = new Map<string | undefined, Set<string>>();
  for (const endpoint of servicePorts.flatMap(({ endpoints }) => endpoints)) {
    const { nodeName } = endpoint.status;
    const kinds = hosted.get(nodeName) ?? new Set();
    hosted.set(nodeName, kinds.add(`${statusOf(endpoint)} ${placeOf(endpoint.address)}`));
  }
  const shapeOf = (name: string): string => {
    const node = nodes.get(name);
    const addresses = (node?.addresses ?? []).map(({ type, address: text }) => {
      const address = parseAddress(text);
      return [type, address?.family, address && placeOf(address), external.has(text) && text];
    });
    const pods = (node?.podCIDRs ?? []).map((cidr) => {
      const network = parseNetwork(cidr);
      return [network?.family, network && placeOf(network)];
    });
    const listed = (hosts?.get(name) ?? []).map((each) => [
      each.family,
      placeOf(each),
      external.has(each.text) && each.text,
    ]);
    return JSON.stringify([node?.kubernetesVersion, addresses, listed, pods, [...(hosted.get(name) ?? [])].toSorted()]);
  };
  return { placeOf, shapeOf };
}

/** Returns a function that finds which networks in settings and Services contain an address or overlap a network. */
function networkPlaces({ cluster: { servicePorts, serviceCidrs }, settings }: ClusterSide) {
  const named = [
    ...textsIn(settings).flatMap((text) => parseNetwork(text) ?? []),
    ...servicePorts.flatMap(({ sourceRanges }) => sourceRanges),
    ...serviceCidrs.map(({ network }) => network),
  ];
  const networks = uniqueBy(named, ({ text }) => text);
  const byPrefix = new Map(networks.map((each) => [prefixKey(each.address, each.prefixLength), each.text]));
  const lengths = [...new Set(networks.map(({ prefixLength }) => prefixLength))].toSorted((a, b) => a - b);
  const partsAt = remember((length: number) =>
    groupBy(
      networks.filter(({ prefixLength }) => prefixLength > length),
      ({ address }) => prefixKey(address, length),
    ),
  );
  const placeOf = remember((text: string): string => {
    const range = parseAddressRange(text);
    if (!range) return '';
    const { address, prefixLength } = networkOfRange(range);
    const holding = lengths.filter((length) => length <= prefixLength && length <= addressBits[address.family]);
    const parts = isNetworkRange(range) ? (partsAt(prefixLength).get(prefixKey(address, prefixLength)) ?? []) : [];
    return [
      ...holding.flatMap((length) => byPrefix.get(prefixKey(address, length)) ?? []),
      ...parts.map((part) => `part ${part.text}`),
    ].join();
  });
  return ({ text }: AddressRange): string => placeOf(text);
}

function remember<K, V>(find: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>();
  return (key) => {
    const value = known.get(key) ?? find(key);
    known.set(key, value);
    return value;
  };
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function ownOfNodes({ nodes, cluster: { servicePorts } }: ClusterSide): (name: string) => string {
  const placed = servicePorts.flatMap(({ label, endpoints }) =>
    endpoints.map(({ status: { nodeName }, address }) => ({ nodeName, text: `${label} ${address.text}` })),
  );
  const byNode = groupBy(placed, ({ nodeName }) => nodeName ?? '');
  return (name) => {
    const node = nodes.get(name);
    const texts = (byNode.get(name) ?? []).map(({ text }) => text).toSorted(compareText);
    return JSON.stringify([node?.addresses, node?.podCIDRs, zoneOf(node), node?.kubernetesVersion, texts]);
  };
}

type Side = Scene['side'];

/**
 * Returns pairs of the two sides on single Nodes. Together, these show every difference in packets to these Service ports. Empty if a side
 * is a dump or is compiled for a named Node.
 */
export function pairsOnAny(
  from: Side,
  to: Side,
  servicePorts: readonly ServicePort[],
): readonly (readonly [Side, Side])[] {
  if (from.kind === 'dump' || to.kind === 'dump' || !from.anyOf || !to.anyOf) return [];
  const sides = [from, to].flatMap(({ anyOf: nodes, cluster, settings }) =>
    nodes ? [{ nodes, cluster: { ...cluster, servicePorts }, settings }] : [],
  );
  const names = [...from.anyOf.keys()].filter((name) => to.anyOf?.has(name));
  return chooseStandIns(sides, names).standIns.flatMap(({ node }) => {
    const [old, fresh] = [from.onNode(node), to.onNode(node)];
    return old && fresh ? [[old, fresh] as const] : [];
  });
}

function looksAtPlace({ externalPolicyLocal, internalPolicyLocal, endpoints }: ServicePort): boolean {
  const isHinted = endpoints.some(({ status }) => status.zoneHints.length > 0 || status.nodeHints.length > 0);
  return externalPolicyLocal || internalPolicyLocal || isHinted;
}
