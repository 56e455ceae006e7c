import type { NodeContext } from '../cluster/model.ts';
import type { Manifest } from './manifest.ts';
import { readAddress, readNetwork } from './stored-address.ts';

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

/** What a manifest says of the node. */
export function writeNode(node: NodeContext): Manifest['node'] {
  return {
    name: node.name,
    zone: node.zone,
    podCIDRs: node.podCIDRs.map(({ text }) => text),
    nodeIPs: { ipv4: node.nodeIPs.ipv4.text, ipv6: node.nodeIPs.ipv6.text },
    hostAddresses: node.hostAddresses.map(({ text }) => text),
  };
}
