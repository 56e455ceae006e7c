import { findNearest } from '../base/find-nearest.ts';
import type { ListeningPlace } from '../diagnostics/addresses.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import {
  addressOddity,
  describeSpecial,
  isLoopback,
  parseAddress,
  parseNetwork,
  type Address,
} from '../kernel/address.ts';
import type { Place } from '../kernel/origin.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { NodeContext } from '../cluster/model.ts';
import { describeNode, nodeAddresses } from '../cluster/node-context.ts';
import type { Node, ProxySettings, Source } from '../cluster/objects.ts';

type AddressSettings = Pick<ProxySettings, 'mode' | 'bindAddress' | 'nodePortAddresses'>;

/** The types of addresses that may be none of IP. */
const otherTypes: ReadonlySet<string> = new Set(['Hostname', 'InternalDNS', 'ExternalDNS']);

const addressTypes = ['InternalIP', 'ExternalIP'] as const;

/**
 * Warns of addresses of a Node that kube-proxy leaves out (GetNodeHostIPs in pkg/util/node takes what ParseIPSloppy reads), and
 * of those that it takes and no node should have. The API server checks none of them.
 */
export function checkNodeAddresses(
  node: Node,
  source: Source | undefined,
  settings: AddressSettings,
  /** Whether --host-addresses gives the node's addresses. */
  isTold: boolean,
): Diagnostic[] {
  // Of a large fleet nearly all are.
  if (node.addresses.every(isRight)) return [];
  const { nodeIPs } = describeNode(node.metadata.name, node, undefined, settings);
  const listening: Listening = { node, nodeIPs, settings, isTold };
  return node.addresses.flatMap((entry, index) => {
    const place = (field: string) => source?.place(['status', 'addresses', index, field]);
    if (otherTypes.has(entry.type)) return [];
    return hasAddressType(entry)
      ? describeAddress(entry, listening, place('address'))
      : [describeType(entry, index, listening, place('type'))];
  });
}

type NodeAddress = Node['addresses'][number];

function hasAddressType({ type }: NodeAddress): boolean {
  return addressTypes.some((known) => known === type);
}

function isRight(entry: NodeAddress): boolean {
  if (otherTypes.has(entry.type)) return true;
  const address = hasAddressType(entry) ? parseAddress(entry.address) : undefined;
  return address?.text === entry.address && describeSpecial(address) === undefined;
}

function describeType(
  { type }: NodeAddress,
  index: number,
  listening: Listening,
  place: Place | undefined,
): Diagnostic {
  const node = listening.node.metadata.name;
  const meant = findNearest(type, addressTypes);
  const listens = listeningWithout(listening);
  return diagnose('bad-address', { problem: 'node-type', node, index, type, meant, listens }, place);
}

function describeAddress(
  { type, address: text }: NodeAddress,
  listening: Listening,
  place: Place | undefined,
): readonly Diagnostic[] {
  const common = { node: listening.node.metadata.name, field: type, value: text };
  const address = parseAddress(text);
  if (!address) {
    const hasPrefixLength = parseNetwork(text) !== undefined;
    const listens = listeningWithout(listening);
    return [diagnose('bad-address', { problem: 'no-node-address', ...common, hasPrefixLength, listens }, place)];
  }
  return [...describeKind(address, common, listening, place), ...describeOddity(address, text, type, place)];
}

function describeKind(
  address: Address,
  common: { readonly node: string; readonly field: string; readonly value: string },
  listening: Listening,
  place: Place | undefined,
): readonly Diagnostic[] {
  const kind = describeSpecial(address);
  if (kind === undefined) return [];
  const listens = listeningWith(address, listening);
  return [diagnose('bad-address', { problem: 'special-node-address', ...common, kind, listens }, place)];
}

function describeOddity(address: Address, value: string, field: string, place: Place | undefined): Diagnostic[] {
  if (value === address.text) return [];
  const problem = addressOddity(value, address);
  return [diagnose('odd-address', { problem, field, value, address: address.text }, place)];
}

/** What decides where node ports listen. */
interface Listening {
  readonly node: Node;
  readonly nodeIPs: NodeContext['nodeIPs'];
  readonly settings: AddressSettings;
  /** Whether --host-addresses gives the node's addresses. */
  readonly isTold: boolean;
}

/** Where node ports listen where an address counts for nothing. */
function listeningWithout({ node, nodeIPs, settings, isTold }: Listening): ListeningPlace {
  if (nodeAddresses(node).length > 0) return 'as-without';
  if (modeFacts[settings.mode].nodePorts === 'known-addresses') return isTold ? 'as-without' : 'unknown';
  return isOnlyPrimary(settings) && Object.values(nodeIPs).every(isLoopback) ? 'everywhere' : 'as-without';
}

/** Where node ports listen where kube-proxy takes an address for the node's own. */
function listeningWith(address: Address, { nodeIPs, settings, isTold }: Listening): ListeningPlace {
  if (modeFacts[settings.mode].nodePorts === 'known-addresses') {
    return isTold || isLoopback(address) ? 'as-without' : 'assumed';
  }
  const { nodePortAddresses } = settings;
  if (!nodePortAddresses.includes('primary') || nodeIPs[address.family].text !== address.text) return 'as-without';
  if (!isLoopback(address)) return 'there';
  if (!isOnlyPrimary(settings)) return 'as-without';
  return Object.values(nodeIPs).every(isLoopback) ? 'everywhere' : 'as-without';
}

/** Whether node ports listen on the node's own addresses alone. */
function isOnlyPrimary({ nodePortAddresses }: AddressSettings): boolean {
  return nodePortAddresses.join() === 'primary';
}
