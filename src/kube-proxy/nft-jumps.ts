import type { Expression } from '../kernel/nftables/expression.ts';
import type { NftChain } from '../kernel/nftables/table.ts';
import { nftChains } from './nft-names.ts';

/** The priority before DNAT, while packets still have the destination that the client asked for. */
const preDnat = -110;

const { firewallCheck, serviceEndpointsCheck, nodePortEndpointsCheck, clusterIPsCheck } = nftChains;

const hooks = [
  [nftChains.filterPreroutingPreDnat, 'filter', 'prerouting', preDnat, [firewallCheck]],
  [nftChains.filterOutputPreDnat, 'filter', 'output', preDnat, [firewallCheck]],
  [nftChains.filterInput, 'filter', 'input', 0, [nodePortEndpointsCheck, serviceEndpointsCheck]],
  [nftChains.filterForward, 'filter', 'forward', 0, [serviceEndpointsCheck, clusterIPsCheck]],
  [nftChains.filterOutput, 'filter', 'output', 0, [serviceEndpointsCheck, clusterIPsCheck]],
  [nftChains.natPrerouting, 'nat', 'prerouting', -100, [nftChains.services]],
  [nftChains.natOutput, 'nat', 'output', -100, [nftChains.services]],
  [nftChains.natPostrouting, 'nat', 'postrouting', 100, [nftChains.masquerading]],
] as const;

const ifNew: Expression = {
  kind: 'match',
  left: [{ name: 'ct state' }],
  right: { kind: 'value', value: { kind: 'word', text: 'new' } },
};

function jump(chain: string): Expression {
  return { kind: 'verdict', verdict: { kind: 'jump', chain } };
}

/**
 * The base chains, with the jumps by which packets come to all others (nftablesBaseChains, nftablesJumpChains). Those of type filter
 * see packets that open a connection only: later ones need no check.
 */
export const hookedChains: readonly NftChain[] = hooks.map(([name, type, hook, priority, targets]) => ({
  name,
  base: { type, hook, priority },
  rules: targets.map((target) => ({ expressions: type === 'filter' ? [ifNew, jump(target)] : [jump(target)] })),
}));
