import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { describeSpecial, parseAddress } from '../kernel/address.ts';
import type { Node, Source } from '../cluster/objects.ts';

/** The types of a Node's addresses that kube-proxy looks at. */
const addressTypes: ReadonlySet<string> = new Set(['InternalIP', 'ExternalIP']);

/**
 * Warns of addresses of a Node that kube-proxy leaves out (GetNodeHostIPs in pkg/util/node takes what ParseIPSloppy reads), and
 * of those that it takes and no node should have. The API server checks none of them.
 */
export function checkNodeAddresses(node: Node, source: Source | undefined): readonly Diagnostic[] {
  return node.addresses.flatMap(({ type: field, address: value }, index) => {
    if (!addressTypes.has(field)) return [];
    const common = { node: node.metadata.name, field, value };
    const place = source?.place(['status', 'addresses', index, 'address']);
    const address = parseAddress(value);
    if (!address) return [diagnose('bad-address', { ...common, expected: 'an IP address' }, place)];
    const kind = describeSpecial(address);
    return [
      ...(kind === undefined ? [] : [diagnose('special-address', { ...common, use: 'node', kind }, place)]),
      ...(address.text === value ? [] : [diagnose('odd-address', { field, value, address: address.text }, place)]),
    ];
  });
}
