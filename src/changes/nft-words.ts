import { count, namesOf, signed } from './counts.ts';
import type { KernelChange } from './kernel-change.ts';

type NftChange = Extract<KernelChange, { readonly kind: `nft-${string}` }>;

/** Which thing of nftables it is, and what differs of it. */
export function describeNftChange(change: NftChange): string {
  switch (change.kind) {
    case 'nft-table':
      return `${change.table}${where(change)} with ${count(change.chains, 'chain')} and ${count(change.sets, 'set')}`;
    case 'nft-chain':
      return `${change.chain}${where(change)}${describeRules(change)}`;
    case 'nft-set': {
      const name = `${change.set}${where(change)}`;
      if (change.change === 'changed') return `${name}: ${change.from ?? ''} → ${change.to ?? ''}`;
      return change.elements === 0 ? name : `${name} with ${count(change.elements, 'element')}`;
    }
    case 'nft-element': {
      const { from, to } = change;
      const name = `${change.set}${where(change)} ${change.key}`;
      if (change.change === 'changed') return `${name}: ${from ?? '(nothing)'} → ${to ?? '(nothing)'}`;
      const value = to ?? from;
      return value === undefined ? name : `${name} : ${value}`;
    }
  }
}

function where({ family }: NftChange): string {
  return family === 'ipv4' ? ' (nftables)' : ' (IPv6 nftables)';
}

function describeRules(change: NftChange & { readonly kind: 'nft-chain' }): string {
  const { rulesFrom, rulesTo, added, removed, endpointsAdded, endpointsRemoved } = change;
  switch (change.change) {
    case 'added':
      return ` with ${count(rulesTo, 'rule')}`;
    case 'removed':
      return ` with ${count(rulesFrom, 'rule')}`;
    case 'changed': {
      const endpoints = [...namesOf('+', 'endpoint', endpointsAdded), ...namesOf('−', 'endpoint', endpointsRemoved)];
      if (endpoints.length > 0) return `: ${endpoints.join(', ')}`;
      if (change.reordered) return ': the same rules in another order or at another hook';
      if (rulesFrom !== rulesTo) return `: ${rulesFrom} → ${count(rulesTo, 'rule')}`;
      if (added.length === removed.length) return `: ${count(added.length, 'rule')} changed`;
      return `: ${[...signed('+', added.length), ...signed('−', removed.length)].join(', ')}`;
    }
  }
}
