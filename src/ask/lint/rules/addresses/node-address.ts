import { parseAddress } from '../../../../kernel/address.ts';
import type { LintRule } from '../../rule.ts';

/** Shows that a packet from another node to a claimed node address stays on the sending node. */
export const nodeAddress: LintRule<'node-address'> = {
  show: ({ address, node }, { nodes }) => {
    const to = parseAddress(address);
    const other = nodes.find(({ nodeName }) => nodeName !== node);
    // Any port without a Service would do. 10250 is the kubelet's.
    return (
      to &&
      other && { from: 'node', to, port: 10250, protocol: 'TCP', node: other.nodeName, ends: ['local', 'refused'] }
    );
  },
};
