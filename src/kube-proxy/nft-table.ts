import type { Expression, NftTable, NftChain } from '../kernel/nftables/table.ts';
import { nftChains, nftSets } from './nft-names.ts';

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

const fixedChains: readonly string[] = [...hookedChains.map(({ name }) => name), nftChains.services];

/**
 * Whether a listing shows all of kube-proxy's table: the chains that it always has, and whatever the rules and maps name, which
 * the kernel keeps as long as something names it.
 */
export function isWholeNftTable({ chains, sets }: NftTable): boolean {
  if (!fixedChains.every((name) => chains.has(name)) || !sets.has(nftSets.serviceIPs)) return false;
  const isShown = (named: Named): boolean => named.chains.every((name) => chains.has(name)) && hasSet(named);
  const hasSet = ({ set }: Named): boolean => set === undefined || sets.has(set);
  const ofSets = [...sets.values()].every(
    ({ isPart, elements }) =>
      !isPart && elements.every(({ value }) => !value || !('chain' in value) || chains.has(value.chain)),
  );
  return (
    ofSets &&
    [...chains.values()].every(({ rules }) => rules.every((rule) => rule.expressions.map(namedBy).every(isShown)))
  );
}

/** The chains and the set that an expression names. */
interface Named {
  readonly chains: readonly string[];
  readonly set: string | undefined;
}

function namedBy(expression: Expression): Named {
  switch (expression.kind) {
    case 'match':
      return { chains: [], set: expression.right.kind === 'set' ? expression.right.set : undefined };
    case 'verdict':
      return { chains: 'chain' in expression.verdict ? [expression.verdict.chain] : [], set: undefined };
    case 'verdict-map':
      return { chains: [], set: expression.map };
    case 'goto-random':
      return { chains: expression.chains, set: undefined };
    case 'write-set':
      return { chains: [], set: expression.set };
    case 'dnat':
    case 'dnat-random':
    case 'set-mark':
    case 'masquerade':
    case 'reject':
    case 'counter':
    case 'unknown':
      return { chains: [], set: undefined };
  }
}
