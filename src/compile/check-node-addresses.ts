import { findNearest } from '../base/find-nearest.ts';
import type { ListeningPlace } from '../diagnostics/addresses.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { addressOddity, describeSpecial, isLoopback, parseAddress, parseNetwork } from '../kernel/address.ts';
import type { Address } from '../kernel/address.ts';
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
  /** Whether --host-addresses tells what addresses the node has. */
  isTold: boolean,
): Diagnostic[] {
  const { name } = node.metadata;
  const { nodeIPs } = describeNode(name, node, undefined, settings);
  const listening: Listening = { node, nodeIPs, settings, isTold };
  return node.addresses.flatMap(({ type, address: text }, index) => {
    const place = (field: string) => source?.place(['status', 'addresses', index, field]);
    if (otherTypes.has(type)) return [];
    if (!addressTypes.some((known) => known === type)) {
      const meant = findNearest(type, addressTypes);
      const listens = listeningWithout(listening);
      const details = { problem: 'node-type', node: name, index, type, meant, listens } as const;
      return [diagnose('bad-address', details, place('type'))];
    }
    const common = { node: name, field: type, value: text } as const;
    const address = parseAddress(text);
    if (!address) {
      const hasPrefixLength = parseNetwork(text) !== undefined;
      const listens = listeningWithout(listening);
      const details = { problem: 'no-node-address', ...common, hasPrefixLength, listens } as const;
      return [diagnose('bad-address', details, place('address'))];
    }
    const kind = describeSpecial(address);
    const listens = listeningWith(address, listening);
    return [
      ...(kind === undefined
        ? []
        : [diagnose('bad-address', { problem: 'special-node-address', ...common, kind, listens }, place('address'))]),
      ...describeOddity(address, text, type, place('address')),
    ];
  });
}

function describeOddity(address: Address, value: string, field: string, place: Place | undefined): Diagnostic[] {
  if (value === address.text) return [];
  const problem = addressOddity(value, address);
  return [diagnose('odd-address', { problem, field, value, address: address.text }, place)];
}

/** What tells where node ports listen. */
interface Listening {
  readonly node: Node;
  readonly nodeIPs: NodeContext['nodeIPs'];
  readonly settings: AddressSettings;
  /** Whether --host-addresses tells what addresses the node has. */
  readonly isTold: boolean;
}

/** Where node ports listen where an address counts for nothing. */
function listeningWithout({ node, nodeIPs, settings, isTold }: Listening): ListeningPlace {
  if (nodeAddresses(node).length > 0) return 'as-without';
  if (modeFacts[settings.mode].nodePorts === 'known-addresses') return isTold ? 'as-without' : 'unknown';
  return isPrimary(settings) && Object.values(nodeIPs).every(isLoopback) ? 'everywhere' : 'as-without';
}

/** Where node ports listen where kube-proxy takes an address for the node's own. */
function listeningWith(address: Address, { nodeIPs, settings, isTold }: Listening): ListeningPlace {
  if (modeFacts[settings.mode].nodePorts === 'known-addresses') {
    return isTold || isLoopback(address) ? 'as-without' : 'assumed';
  }
  if (!isPrimary(settings) || nodeIPs[address.family].text !== address.text) return 'as-without';
  if (!isLoopback(address)) return 'there';
  return Object.values(nodeIPs).every(isLoopback) ? 'everywhere' : 'as-without';
}

/** Whether node ports listen on the node's own addresses alone. */
function isPrimary({ nodePortAddresses }: AddressSettings): boolean {
  return nodePortAddresses.join() === 'primary';
}
