import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { NodeContext } from '../cluster/model.ts';
import { describeNode } from '../cluster/node-context.ts';
import { addressesIn, nodePortNetworks } from '../cluster/node-port-addresses.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import { isLoopback, parseNetwork, type Address } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import { modeFacts, isNodePortWord } from '../kube-proxy/modes.ts';
import type { Prepared } from './compile-node.ts';

/** What is compiled all the same for a node, but not as the user may think. */
export function describeNodeGaps(
  nodeName: string,
  prepared: Prepared,
  hostAddresses: readonly Address[] | undefined,
): readonly Diagnostic[] {
  const node = describeNode(nodeName, prepared.nodes.get(nodeName), hostAddresses, prepared.settings);
  if (!prepared.nodes.has(nodeName)) return [describeUnknownNode(node, prepared, hostAddresses !== undefined)];
  return families.flatMap((family) => findUnreachableNodePorts(node, prepared, family, hostAddresses !== undefined));
}

function describeUnknownNode(node: NodeContext, { nodes, settings }: Prepared, isTold: boolean): Diagnostic {
  const lacksAddresses = !isTold && needsAddresses(settings, node);
  const unknown = { lacksAddresses, listensOnAll: !lacksAddresses && lacksPrimary(settings, node) };
  if (node.name !== '') return diagnose('no-node-object', { of: 'node', name: node.name, ...unknown });
  const { mode } = settings;
  return diagnose('no-node', { problem: 'compiled-for-any', nodes: nodes.size, mode, ...unknown });
}

/** Whether node ports are to listen on the node's own addresses alone, and it has none: then they listen on all. */
function lacksPrimary({ nodePortAddresses }: ProxySettings, { nodeIPs }: NodeContext): boolean {
  return nodePortAddresses.join() === 'primary' && families.every((family) => isLoopback(nodeIPs[family]));
}

function needsAddresses(settings: ProxySettings, node: NodeContext): boolean {
  const { nodePorts } = modeFacts[settings.mode];
  switch (nodePorts) {
    case 'known-addresses':
      return true;
    case 'any-local-address':
      return families.some((family) => !nodePortNetworks(settings, node, family).matchesAll);
  }
}

/** A warning where --nodeport-addresses picks none of the addresses that a node is known to have. */
function findUnreachableNodePorts(
  node: NodeContext,
  { cluster, settings }: Prepared,
  family: Family,
  isTold: boolean,
): readonly Diagnostic[] {
  const networks = nodePortNetworks(settings, node, family);
  const own = node.hostAddresses.filter((address) => address.family === family);
  if (networks.matchesAll || own.length === 0) return [];
  if (!cluster.servicePorts.some((port) => port.family === family && port.nodePort > 0)) return [];
  const isServed = (address: Address) => !isLoopback(address) || servesLoopback(settings, family);
  if (addressesIn(networks, node).some(isServed)) return [];
  // kube-proxy itself listens there: see describeLocalhostListeners.
  if (settings.nftablesLocalhostNodePorts && networks.namesLoopback) return [];
  const picked = settings.nodePortAddresses.filter(
    (text) => isNodePortWord(text) || parseNetwork(text)?.family === family,
  );
  const addresses = own.map(({ text }) => text);
  return [diagnose('no-node-port-address', { node: node.name, picked, addresses, areAll: isTold })];
}

function servesLoopback({ mode, localhostNodePorts }: ProxySettings, family: Family): boolean {
  return modeFacts[mode].loopbackNodePorts.includes(family) && localhostNodePorts;
}
