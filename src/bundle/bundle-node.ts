import type { NodeContext } from '../cluster/model.ts';
import type { Address, Network } from '../kernel/address.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';
import type { Manifest } from './manifest.ts';

/** The node that a bundle was compiled for. */
export function nodeOfBundle({ node }: Pick<Manifest, 'node'>): NodeContext {
  return {
    name: node.name,
    zone: node.zone,
    podCIDRs: node.podCIDRs.map(readNetwork),
    nodeIPs: { ipv4: readAddress(node.nodeIPs.ipv4), ipv6: readAddress(node.nodeIPs.ipv6) },
    hostAddresses: node.hostAddresses.map(readAddress),
  };
}

/** The manifest's shape has seen to it that it is one. */
function readAddress(text: string): Address {
  const address = parseAddress(text);
  if (!address) throw new TypeError(`"${text}" is not an address`);
  return address;
}

function readNetwork(text: string): Network {
  const network = parseNetwork(text);
  if (!network) throw new TypeError(`"${text}" is not a network`);
  return network;
}
