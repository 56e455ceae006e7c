import { isLoopback, parseAddress } from '../../../../kernel/address.ts';
import { unanswered, type LintRule } from '../../rule.ts';

/** Shows which Service port gets a packet if two have the same address and port. */
export const addressConflict: LintRule<'address-conflict'> = {
  show: ({ address, port, rival }, { nodes }, service) => {
    const claiming = service?.ports.find(({ label }) => label === rival);
    const [node] = nodes;
    const own = claiming && node?.node.nodeIPs[claiming.family];
    const to = address === undefined ? own : parseAddress(address);
    if (!claiming || !to || isLoopback(to)) return undefined;
    const { protocol } = claiming;
    return {
      from: 'external',
      to,
      port,
      protocol,
      node: node?.nodeName ?? '',
      ends: ['delivered', 'local', ...unanswered],
    };
  },
};
