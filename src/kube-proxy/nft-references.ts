import type { Expression } from '../kernel/nftables/expression.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import { hookedChains } from './nft-jumps.ts';
import { nftChains, nftSets } from './nft-names.ts';

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
