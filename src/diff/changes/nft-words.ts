import { count, namesOf, signed } from './counts.ts';
import type { KernelChange } from './kernel-change.ts';

type NftChange = Extract<KernelChange, { readonly kind: `nft-${string}` }>;

/** Which thing of nftables it is, and what differs of it. */
export function describeNftChange(change: NftChange): string {
  switch (change.kind) {
    case 'nft-table': {
      const name = `${change.table}${where(change)}`;
      if (change.change === 'changed') return `${name}: made anew ${describeStrangeParts(change)}`;
      return `${name} with ${count(change.chains, 'chain')} and ${count(change.sets, 'set')}`;
    }
    case 'nft-counter':
      return `${change.counter}${where(change)}`;
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

/** "without counter hits, flags dormant": what goes with the old one, and what comes with the new. */
function describeStrangeParts({
  strangeFrom,
  strangeTo,
}: NftChange & { readonly kind: 'nft-table'; readonly change: 'changed' }): string {
  const gone = strangeFrom.filter((head) => !strangeTo.includes(head));
  const come = strangeTo.filter((head) => !strangeFrom.includes(head));
  const parts = [
    ...(gone.length === 0 ? [] : [`without ${gone.join(', ')}`]),
    ...(come.length === 0 ? [] : [`with ${come.join(', ')}`]),
  ];
  return parts.join(' and ');
}

function describeRules(change: NftChange & { readonly kind: 'nft-chain' }): string {
  const { rulesFrom, rulesTo, added, removed, endpointsAdded, endpointsRemoved } = change;
  switch (change.change) {
    case 'added':
      return ` with ${count(rulesTo, 'rule')}`;
    case 'removed':
      return ` with ${count(rulesFrom, 'rule')}`;
    case 'changed': {
      const { base } = change;
      const parts = base ? [`${base.from || 'no hook'} → ${base.to || 'no hook'}`] : [];
      const endpoints = [...namesOf('+', 'endpoint', endpointsAdded), ...namesOf('−', 'endpoint', endpointsRemoved)];
      if (endpoints.length > 0) parts.push(...endpoints);
      else if (change.reordered) parts.push('the same rules in another order');
      else if (rulesFrom !== rulesTo) parts.push(`${rulesFrom} → ${count(rulesTo, 'rule')}`);
      else if (added.length > 0 && added.length === removed.length)
        parts.push(`${count(added.length, 'rule')} changed`);
      else parts.push(...signed('+', added.length), ...signed('−', removed.length));
      return `: ${parts.join(', ')}`;
    }
  }
}
