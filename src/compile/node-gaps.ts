import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { NodeContext } from '../cluster/model.ts';
import { describeNode } from '../cluster/node-context.ts';
import { nameSome } from '../cluster/name-some.ts';
import { addressesIn, nodePortNetworks } from '../cluster/node-port-addresses.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { Address } from '../kernel/address.ts';
import { isLoopback, parseNetwork } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
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
  if (node.name !== '') {
    const ports = lacksAddresses
      ? ' and NodePorts have no address to listen on (or give --host-addresses)'
      : lacksPrimary(settings, node)
        ? `, and ${allAddresses}`
        : '';
    const text = `no Node object ${node.name} in the input: its zone, pod CIDRs and addresses are unknown${ports}; give it with -f (kubectl get nodes -o yaml)`;
    return { severity: 'note', code: 'no-node-object', text };
  }
  const which = nodes.size === 0 ? 'no node' : `none of the ${nodes.size} nodes is named with --node`;
  const lacks = [
    'no endpoint counts as local',
    ...modeFacts[settings.mode].gapsWithoutNode,
    ...(lacksAddresses ? ['NodePorts have no address to listen on'] : []),
    ...(!lacksAddresses && lacksPrimary(settings, node) ? [allAddresses] : []),
  ];
  const help =
    nodes.size === 0 ? 'give the Node object (kubectl get nodes -o yaml) with -f and its name with --node' : 'name one';
  return { severity: 'note', code: 'no-node', text: `${which}: ${joinWithAnd(lacks)}; ${help}` };
}

const allAddresses = "NodePorts listen on all addresses, because the node's own are unknown";

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
  const picked = settings.nodePortAddresses
    .filter((cidr) => cidr === 'primary' || parseNetwork(cidr)?.family === family)
    .join(', ');
  const help = isTold
    ? 'write a network that holds one of them'
    : 'if it has more, give what ip -j addr prints there with --host-addresses';
  const text =
    `no node port can be reached on node ${node.name}: --nodeport-addresses ${picked} has none of its addresses ` +
    `(${nameSome(own.map(({ text: address }) => address))}) that node ports can listen on; ${help}`;
  return [{ severity: 'warning', code: 'no-node-port-address', text }];
}

function servesLoopback({ mode, localhostNodePorts }: ProxySettings, family: Family): boolean {
  return modeFacts[mode].loopbackNodePorts.includes(family) && localhostNodePorts;
}

function joinWithAnd(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}
