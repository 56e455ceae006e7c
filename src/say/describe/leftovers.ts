// Objects that another mode of kube-proxy left on a node.
import { count, nameSome } from '../../base/printable.ts';
import { joinHostPort } from '../../kernel/address.ts';
import type { LeftChain } from '../../kube-proxy/left-behind.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import type { Leftovers } from '../../snapshot/decompile.ts';

/** How packets still reach a left chain: "nothing jumps to it", "still reached from PREROUTING". */
export function describeReach({ reachedFrom }: LeftChain): string {
  return reachedFrom.length === 0 ? 'nothing jumps to it' : `still reached from ${reachedFrom.join(', ')}`;
}

export function leftBy(mode: ProxyMode): string {
  return `Left by ${modeFacts[mode].title}`;
}

/** Titles for left chains that nothing jumps to, and for those that packets reach. */
export const leftChainTitles = {
  dead: `${leftBy('iptables')}, nothing jumps to them`,
  live: `${leftBy('iptables')}, packets still come to them`,
} as const;

/** One line per kind. */
export function describeLeftovers({ chains, virtualServers, sets, addresses }: Leftovers): readonly string[] {
  const counted = (names: readonly string[], one: string, more?: string, where = ''): readonly string[] =>
    names.length === 0 ? [] : [`${count(names.length, one, more)}${where} (${nameSome(names)})`];
  const dead = chains.filter(({ reachedFrom }) => reachedFrom.length === 0).map(({ chain }) => chain.name);
  const live = chains.filter(({ reachedFrom }) => reachedFrom.length > 0);
  const ofIpvs = [
    ...counted(
      virtualServers.map(({ address, port, protocol }) => `${joinHostPort(address.text, port)}/${protocol}`),
      'virtual server',
    ),
    ...counted(sets, 'set'),
    ...counted(addresses, 'address', 'addresses', ' on kube-ipvs0'),
  ];
  return [
    ...counted(dead, 'chain').map((text) => `${leftChainTitles.dead}: ${text}`),
    ...live.map((left) => {
      const { table, chain } = left;
      // In table filter, only chains that refuse packets count as leftovers.
      const refuses = table === 'filter' ? ', which refuses packets,' : '';
      const what = `chain ${chain.name} (${table})${refuses} with ${count(chain.rules.length, 'rule')}`;
      return `${leftBy('iptables')}, ${describeReach(left)}: ${what}`;
    }),
    ...(ofIpvs.length > 0 ? [`${leftBy('ipvs')}: ${ofIpvs.join(', ')}`] : []),
  ];
}
