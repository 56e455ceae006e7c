import { addressesOn } from '../../kernel/link/link.ts';
import { detectLocalTraffic } from '../../cluster/plan-masquerade.ts';
import { podNetworksOf } from '../../cluster/node-context.ts';
import { fullName, type Pod } from '../../cluster/objects.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import { nearest } from '../../base/names.ts';
import {
  type Address,
  addressBits,
  contains,
  type Family,
  isLinkLocal,
  isLoopback,
  type Network,
  parseAddress,
  parseNetwork,
} from '../../kernel/address.ts';
import { freeAddressIn, networksOfLinks } from './free-address.ts';
import { findNamedPods } from './named-pods.ts';
import { addressOfNode } from './node-addresses.ts';
import { isIn } from './pod-networks.ts';
import { sceneOf, type Scene } from './scene.ts';
import {
  read,
  absent,
  wrong,
  senderKinds,
  wrongSender,
  type Question,
  type Sender,
  type SenderName,
  type Read,
  type Wrong,
} from './question.ts';

export type NamedSender = Pick<Question, 'from' | 'inInterface' | 'namespace'>;

export function readSender({ from, inInterface, namespace }: NamedSender, family: Family, scene: Scene): Read<Sender> {
  const { side } = scene;
  const sender = (who: SenderName, address: Address, isPod: boolean, isExample = false): Read<Sender> => {
    const found = isPod ? podInterface(scene, family) : side.kind === 'dump' ? undefined : 'eth0';
    const enters =
      side.kind === 'dump' ? { interface: inInterface ?? found } : { interface: inInterface, usual: found };
    return read({ who, address, enters, isPod, isExample });
  };
  const kind = senderKinds.find((each) => each === from);
  if (kind === 'node') return read({ who: { kind }, address: undefined, enters: undefined });
  if (kind) {
    const found = findStranger(kind, family, scene);
    if (found) return sender({ kind }, found, kind === 'pod', true);
    return nodesUnnamed(scene) ?? wrong({ problem: 'no-address-for', sender: kind });
  }
  const address = parseAddress(from);
  if (address) {
    if (address.family !== family) return wrong({ problem: 'other-family', from });
    if (inInterface === undefined && isHeldByNode(address, scene))
      return read({ who: { kind: 'node' }, address, enters: undefined });
    const isPod = side.node !== undefined && isIn(side.node.podCIDRs, address);
    const isHere = isPod || side.endpoints.at(address.text)[0]?.isLocal === true;
    return sender(isPod ? { kind: 'pod' } : whoIsClient(address, scene), address, isHere);
  }
  const faulty = wrongSender(from);
  if (faulty) return faulty;
  const found = findNamedPods(from, namespace, side);
  if (found.kind === 'wrong') return found;
  const { name, pods } = found.value;
  const pod = chooseOn(pods, side.nodeName);
  if (!pod && side.objects.unread.has('pods'))
    return wrong({ problem: 'unread', what: `Pod ${name}`, kinds: ['Pods'] });
  if (!pod) {
    const use = from === side.nodeName ? 'node' : addressOfNode(from, side)?.text;
    if (use !== undefined) return absent({ problem: 'is-node', name: from, kind: 'Pod', use });
    const near = [...nearest(from.toLowerCase(), senderKinds), ...found.value.near];
    return absent({ problem: 'no-sender', name, from, kinds: senderKinds, near, lacksPods: side.pods.size === 0 });
  }
  const podName = fullName(pod.metadata);
  const { nodeName, hostNetwork } = pod.spec;
  const own = pod.status?.addresses.find((each) => each.family === family);
  const isHere = nodeName !== '' && nodeName === side.node?.name;
  // To the kernel, a Pod on the host network is the node itself. A dump may not show the node's name.
  if (hostNetwork && (isHere || (own && isHeldByNode(own, scene))))
    return read({
      who: { kind: 'named-pod', name: podName, home: nodeName, on: 'this-host' },
      address: undefined,
      enters: undefined,
    });
  if (!own) return wrong({ problem: 'no-address-of-pod', pod: podName, family });
  const on = isHere ? 'this-node' : hostNetwork ? 'other-host' : 'other-node';
  return nodesUnnamed(scene) ?? sender({ kind: 'named-pod', name: podName, home: nodeName, on }, own, isHere);
}

function whoIsClient({ text }: Address, { side: { endpoints } }: Scene): SenderName {
  const [own] = endpoints.at(text);
  return own ? { kind: 'endpoint', isLocal: own.isLocal, home: own.nodeName } : { kind: 'client' };
}

/** Reports whether the node has the address, even if only for a Service. */
function isHeldByNode(address: Address, { side, links }: Scene): boolean {
  const { text } = address;
  return (
    isLoopback(address) ||
    side.heldAddresses.has(text) ||
    links.some(({ addresses }) => addresses.some((each) => each.address.text === text))
  );
}

/**
 * Returns the scene for a sender's packets. For a Pod or endpoint, this is the scene of its own node, if the input has that Node and
 * nothing names another. For any other sender, it is the present scene.
 */
export function sceneOfSender({ from, namespace }: Pick<Question, 'from' | 'namespace'>, scene: Scene): Scene {
  const { side } = scene;
  if (side.kind !== 'manifests' || side.settings.hostnameOverride !== '') return scene;
  const home = homeOf(from, namespace, side);
  const own = home === '' || home === side.nodeName ? undefined : side.onNode(home);
  return own ? sceneOf(own) : scene;
}

/** Returns the node of a Pod or endpoint; '' if it has none, or its node is unknown. */
function homeOf(from: string, namespace: string | undefined, side: Scene['side']): string {
  if (senderKinds.some((each) => each === from)) return '';
  const address = parseAddress(from);
  if (address) return side.endpoints.at(address.text)[0]?.nodeName ?? '';
  const found = findNamedPods(from, namespace, side);
  return found.kind === 'read' ? (chooseOn(found.value.pods, side.nodeName)?.spec.nodeName ?? '') : '';
}

function chooseOn(pods: readonly Pod[], node: string): Pod | undefined {
  return pods.find(({ spec }) => spec.nodeName !== '' && spec.nodeName === node) ?? pods[0];
}

function nodesUnnamed({ side }: Scene): Wrong | undefined {
  const nodes = side.objects.nodes.length;
  return side.node?.name === '' && nodes > 1 ? wrong({ problem: 'no-node-named', nodes }) : undefined;
}

/** Returns the interface by which kube-proxy recognises pods. Returns cni0 if kube-proxy recognises pods by address. */
function podInterface({ side, podTraffic }: Scene, family: Family): string | undefined {
  const [seen] = podTraffic.interfaces;
  if (side.kind === 'dump') return seen?.replace(/\*$/, '0');
  const local = detectLocalTraffic(side.settings, side.node, family);
  if (local?.kind === 'from-interface') return local.name;
  return local?.kind === 'from-interfaces' ? `${local.prefix}0` : 'cni0';
}

/** Documentation networks, which no cluster uses (RFC 5737, RFC 3849, RFC 9637). */
const outside = {
  ipv4: ['198.51.100.0/24', '203.0.113.0/24', '192.0.2.0/24'],
  ipv6: ['2001:db8:ffff::/64', '3fff::/64'],
};

function findStranger(
  kind: Exclude<(typeof senderKinds)[number], 'node'>,
  family: Family,
  scene: Scene,
): Address | undefined {
  if (kind === 'external') {
    const found = outside[family].flatMap((text) => freeAddressIn(parseNetwork(text), scene) ?? []);
    return found.find((address) => scene.evaluate.placeOf(address) === 'out') ?? found[0];
  }
  const { side } = scene;
  return side.kind === 'dump' ? findPodOfDump(kind, family, scene) : findPod(kind, family, scene, side);
}

function findPod(
  kind: 'pod' | 'remote-pod',
  family: Family,
  scene: Scene,
  { node: { name, podCIDRs }, settings, objects }: CompiledSnapshot,
): Address | undefined {
  const besideOf = (isLocal: boolean | undefined) => beside(family, scene, (each) => each.isLocal === isLocal);
  if (kind === 'pod') {
    const own = podCIDRs.find((network) => network.family === family);
    return freeAddressIn(own, scene) ?? besideOf(true);
  }
  const others = objects.nodes.flatMap(({ object }) => (object.metadata.name === name ? [] : object.podCIDRs));
  for (const text of [...others, ...settings.clusterCIDRs]) {
    const network = parseNetwork(text.trim());
    const found = network?.family === family ? freeAddressIn(network, scene, podCIDRs) : undefined;
    if (found) return found;
  }
  return besideOf(false) ?? besideOf(undefined);
}

/**
 * Picks a pod address for a dump, because a dump does not show where endpoints are. Pods have addresses in the network that the rules name,
 * or else in the Pod networks of Nodes beside the dump. Pods of this node have addresses in a link's network inside that network, or routes
 * of their own. If nothing names a network, picks an address next to an endpoint's. If routes are listed, they must lead to the address.
 */
function findPodOfDump(kind: 'pod' | 'remote-pod', family: Family, scene: Scene): Address | undefined {
  const wide = podNetworks(family, scene);
  const isPods = (address: Address): boolean => wide.length === 0 || isIn(wide, address);
  const here = networksHere(wide, scene).filter((network) => network.family === family && isPods(network.address));
  const { side } = scene;
  const { placeOf, isNeighbour } = scene.evaluate;
  const besideOf = (isHere: boolean | undefined) =>
    beside(
      family,
      scene,
      ({ address }) =>
        (wide.length === 0 ? !isNeighbour(address) : isIn(wide, address)) &&
        (isHere === undefined || isIn(here, address) === isHere) &&
        (kind === 'pod' || placeOf(address) !== 'here'),
    );
  const free = (except: readonly Network[]) => wide.map((network) => freeAddressIn(network, scene, except));
  const others = [besideOf(here.length > 0 ? false : undefined), ...free(here)];
  if (kind === 'remote-pod') return others.find((each) => each && placeOf(each) !== 'here');
  const routed = (side.routes[family]?.routes ?? []).flatMap(({ type, destination: { prefixLength, address } }) =>
    type === 'unicast' && prefixLength === addressBits[family] && isPods(address) ? [address] : [],
  );
  const found = [
    ...here.map((each) => freeAddressIn(each, scene)),
    ...routed.toSorted((a, b) => Number(side.endpoints.has(a.text)) - Number(side.endpoints.has(b.text))),
    besideOf(undefined),
    ...free([]),
  ];
  return found.find((each) => each && (placeOf(each) ?? 'here') === 'here');
}

function podNetworks(family: Family, { podTraffic, side }: Scene): readonly Network[] {
  const ofFamily = (networks: readonly Network[]) => networks.filter((each) => each.family === family);
  const ofRules = ofFamily(podTraffic.networks);
  return ofRules.length > 0 ? ofRules : ofFamily(podNetworksOf(side.objects.nodes));
}

/** Returns the networks of links that hold pods: networks in one of `wide`, and networks with an endpoint and no neighbour of the node. */
function networksHere(wide: readonly Network[], { links, side: { endpoints }, evaluate }: Scene): readonly Network[] {
  return links.flatMap((link) => {
    const own = networksOfLinks([link]).filter(
      ({ address, prefixLength }) => prefixLength < addressBits[address.family] && !isLinkLocal(address),
    );
    const isPods = (network: Network): boolean =>
      isIn(wide, network.address) ||
      (!evaluate.isNeighbour(network.address) &&
        [...endpoints.of(network.family)].some(({ address }) => contains(network, address)));
    return own.some(isPods) ? own : [];
  });
}

/** Returns an address next to the address of an endpoint that is not on the host network. */
function beside(
  family: Family,
  scene: Scene,
  isMeant: (endpoint: { readonly address: Address; readonly isLocal: boolean | undefined }) => boolean,
): Address | undefined {
  const { endpoints, addressesOfHosts } = scene.side;
  const own = addressesOn(scene.links);
  for (const endpoint of endpoints.of(family)) {
    const { address } = endpoint;
    if (own.has(address.text) || addressesOfHosts.has(address.text) || !isMeant(endpoint)) continue;
    return freeAddressIn(parseNetwork(`${address.text}/${family === 'ipv4' ? 24 : 120}`), scene) ?? address;
  }
  return undefined;
}
