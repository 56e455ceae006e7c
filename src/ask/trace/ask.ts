import type { Finding } from '../../base/findings/finding.ts';
import { addressesOn } from '../../kernel/link/link.ts';
import { type Address, families, parseAddress, parseNetwork } from '../../kernel/address.ts';
import type { Packet } from '../../packet/packet.ts';
import { isIn } from './pod-networks.ts';
import { isUnplacedDestination, type Scene } from './scene.ts';
import { wrong, type Question, type Sender, type Destination, type Trace, type Read } from './question.ts';
import { readSender } from './read-sender.ts';
import { readDestination } from './read-destination.ts';

export function packetOf(sender: Sender, target: Destination): Packet {
  return {
    source: sender.address,
    destination: target.address,
    protocol: target.protocol,
    port: target.port,
    enters: sender.enters,
  };
}

/**
 * Reports whether an address belongs to no pod and no node in the manifests. A client with such an address uses the Service's external
 * addresses.
 */
function isClientOutside(address: Address | undefined, { side, links }: Scene): boolean {
  if (!address || side.kind === 'dump') return false;
  const networks = side.settings.clusterCIDRs.flatMap((text) => parseNetwork(text.trim()) ?? []);
  const isOwn = links.some((link) => link.addresses.some((each) => each.address.text === address.text));
  const isNode = side.objects.nodes.some(({ object }) =>
    object.addresses.some((each) => each.address === address.text),
  );
  const isEndpoint = side.endpoints.has(address.text);
  const isPod = isEndpoint || isIn([...networks, ...side.node.podCIDRs], address);
  return networks.length + side.node.podCIDRs.length > 0 && !isOwn && !isNode && !isPod;
}

/** Returns the name of the sender's own node if this is certainly not the scene's node; '' if the name is unknown. Otherwise undefined. */
export function homeElsewhere({ who }: Pick<Sender, 'who'>, { side: { nodeName } }: Scene): string | undefined {
  if (who.kind === 'remote-pod') return '';
  if (who.kind !== 'named-pod' && who.kind !== 'endpoint') return undefined;
  return who.home === '' || nodeName === '' || who.home === nodeName ? undefined : who.home;
}

/** Reports whether a pod's own node handles the pod's packets to this address. It does if the address is a Service's. */
export function isTakenBySender({ address }: Pick<Destination, 'address'>, { side, links }: Scene): boolean {
  return side.endpoints.isOfService(address.text) && !addressesOn(links).has(address.text);
}

export function ask(
  { from, to, protocol, inInterface, namespace }: Question,
  scene: Scene,
):
  | { readonly kind: 'read'; readonly value: Trace }
  | {
      readonly kind: 'wrong';
      readonly faults: readonly { readonly end: 'from' | 'to'; readonly diagnostic: Finding }[];
    } {
  const asked = {
    to,
    protocol,
    namespace,
    isOutside: from === 'external' || isClientOutside(parseAddress(from), scene),
  };
  const target = readDestination(asked, parseAddress(from)?.family, scene);
  const wanted = target.kind === 'read' ? [target.value.address.family] : families;
  const senders = wanted.map((each) => readSender({ from, inInterface, namespace }, each, scene));
  const sender = senders.find(({ kind }) => kind === 'read') ?? (senders[0] as Read<Sender>);
  if (target.kind === 'read' && sender.kind === 'read') {
    const home = inInterface === undefined ? homeElsewhere(sender.value, scene) : undefined;
    if (home !== undefined && isTakenBySender(target.value, scene)) {
      const { kind, nodeName: node } = scene.side;
      const { diagnostic } = wrong({ problem: 'other-node', sender: from, to, node, home, kind });
      return { kind: 'wrong', faults: [{ end: 'from', diagnostic }] };
    }
    const packet = packetOf(sender.value, target.value);
    const isUnplaced = isUnplacedDestination(packet, scene);
    const found = scene.evaluate({ ...packet, isUnplaced });
    // In IPVS mode, each of the node's addresses has its own virtual servers. An address that is not shown therefore has none in the state.
    const isBlind = isUnplaced && scene.side.state.virtualServers.length > 0;
    const fate = isBlind && found.otherwise?.verdict === 'local' ? { ...found, otherwise: undefined } : found;
    return { kind: 'read', value: { sender: sender.value, target: target.value, fate } };
  }
  const ends = [{ end: 'from', ...sender } as const, { end: 'to', ...target } as const];
  return { kind: 'wrong', faults: ends.flatMap((each) => (each.kind === 'wrong' ? [each] : [])) };
}
