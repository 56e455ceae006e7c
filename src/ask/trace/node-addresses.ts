import { nodeAddresses } from '../../cluster/node-context.ts';
import { type Address, type Family, isLoopback, parseAddress, type Protocol } from '../../kernel/address.ts';
import type { PacketProtocol } from '../../packet/packet.ts';
import type { Scene } from './scene.ts';

interface NodeSocket {
  readonly family: Family;
  readonly protocol: PacketProtocol;
  readonly port: number;
}

type Known = Pick<Scene, 'links' | 'side'>;

/** Returns the node's addresses that links show. If these are only loopback addresses, adds those where rules serve the node port. */
export function nodeAddressesFor(socket: NodeSocket, known: Known): readonly Address[] {
  const shown = known.links
    .flatMap((link) => link.addresses)
    .filter(({ family, scope }) => family === socket.family && scope !== 'link')
    .map(({ address }) => address);
  return shown.every(isLoopback) ? [...shown, ...servedAt(socket, known)] : shown;
}

/**
 * Chooses an address of the node: one that kube-proxy uses as the node's (NodeContext's nodeIPs), else one where rules serve the node port,
 * else the first.
 */
export function nodeAddressFor(socket: NodeSocket, known: Known): Address | undefined {
  const own = nodeAddressesFor(socket, known).filter((address) => !isLoopback(address));
  const has = ({ text }: Address): boolean => own.some((each) => each.text === text);
  const { node, objects } = known.side;
  const nodeIPs = [
    ...(node ? [node.nodeIPs[socket.family]] : []),
    ...objects.nodes.flatMap(({ object }) => nodeAddresses(object)),
  ];
  return nodeIPs.find(has) ?? servedAt(socket, known).find(has) ?? own[0];
}

function servedAt({ family, protocol, port }: NodeSocket, { side }: Known): readonly Address[] {
  const listeners = side.listeners({ family, protocol: protocol.toUpperCase() as Protocol, port });
  return listeners.kind === 'listed' ? listeners.addresses.flatMap((text) => parseAddress(text) ?? []) : [];
}

/** Returns the address of the Node with this name; undefined if the input has no such Node. */
export function addressOfNode(name: string, { objects }: Scene['side']): Address | undefined {
  return nodeAddresses(objects.nodes.find(({ object }) => object.metadata.name === name)?.object)[0];
}
