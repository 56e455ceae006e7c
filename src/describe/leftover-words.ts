import { nameSome } from '../base/name-some.ts';
import type { Owners } from '../diff/changes/owners.ts';
import { count } from '../diff/changes/counts.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { LeftChain } from '../kube-proxy/left-chains.ts';
import type { Leftovers } from './decompile.ts';

/** What another mode left on a node, a line for each kind; nothing where it left nothing. */
export function describeLeftovers(leftovers: Leftovers, owners: Owners): readonly string[] {
  const { chains, virtualServers, sets, addresses } = leftovers;
  const dead = chains.filter(({ reachedFrom }) => reachedFrom.length === 0);
  const live = chains.filter(({ reachedFrom }) => reachedFrom.length > 0);
  const ofIpvs = [
    ...(virtualServers.length > 0
      ? [`${count(virtualServers.length, 'virtual server')} (${nameServers(leftovers)})`]
      : []),
    ...(sets.length > 0 ? [`${count(sets.length, 'set')} (${nameSome(sets)})`] : []),
    ...(addresses.length > 0
      ? [`${count(addresses.length, 'address', 'addresses')} on kube-ipvs0 (${nameSome(addresses)})`]
      : []),
  ];
  return [
    ...(dead.length > 0
      ? [`Left by iptables mode, nothing jumps to them: ${nameChains(dead)}${ofServices(dead, owners)}`]
      : []),
    ...live.map(
      ({ table, chain, reachedFrom }) =>
        `Left by iptables mode, still reached from ${nameSome(reachedFrom)}: chain ${chain.name} (${table}) with ` +
        `${count(chain.rules.length, 'rule')}${doesRefuse(chain.rules) ? (chain.rules.length === 1 ? ' that refuses packets' : ' that refuse packets') : ''}${ofRules(chain.rules, owners)}`,
    ),
    ...(ofIpvs.length > 0 ? [`Left by IPVS mode: ${ofIpvs.join(', ')}`] : []),
  ];
}

function nameServers({ virtualServers }: Leftovers): string {
  return nameSome(
    virtualServers.map(({ address, port, protocol }) => `${joinHostPort(address.text, port)}/${protocol}`),
  );
}

function nameChains(chains: readonly LeftChain[]): string {
  return `${count(chains.length, 'chain')} (${nameSome(chains.map(({ chain }) => chain.name))})`;
}

function ofServices(chains: readonly LeftChain[], owners: Owners): string {
  const names = new Set(chains.flatMap(({ chain }) => owners.ofChain(chain) ?? []));
  return names.size === 0 ? '' : `, of ${nameSome([...names].sort())}`;
}

function doesRefuse(rules: LeftChain['chain']['rules']): boolean {
  return rules.every(({ args }) => args.some((arg) => arg.kind === 'jump' && arg.target.kind === 'reject'));
}

function ofRules(rules: LeftChain['chain']['rules'], owners: Owners): string {
  const names = new Set(rules.flatMap((rule) => owners.ofRule(rule) ?? []));
  return names.size === 0 ? '' : `, for ${nameSome([...names].sort())}`;
}
