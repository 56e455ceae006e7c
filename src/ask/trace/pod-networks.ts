import { contains, type Address, type Network } from '../../kernel/address.ts';
import { isNetworkRange } from '../../kernel/address-range.ts';
import { families } from '../../kernel/family.ts';
import { passingRules, tableNames } from '../../kernel/iptables/iptables.ts';
import { chainsOf } from '../../kernel/nftables/table.ts';
import { jumpChain, type KernelState } from '../../kernel/state.ts';
import { baseChains, parseServiceChain } from '../../kube-proxy/chain-names.ts';
import { isKubeProxyTable, nftChains } from '../../kube-proxy/nft-table.ts';

/** How kube-proxy's rules recognise packets of pods: by networks, by interfaces, or not at all. */
export interface PodTraffic {
  readonly networks: readonly Network[];
  /** Names, or prefixes ending in "+" or "*". */
  readonly interfaces: readonly string[];
}

/** Where kube-proxy marks packets to masquerade: in its own tables, and as nft lists the iptables ones. */
const markChains: ReadonlySet<string> = new Set([nftChains.markForMasquerade, baseChains.markMasquerade]);

/**
 * How a state's rules recognise pods: packets to a cluster IP are masqueraded unless they come from one (isLocal in
 * pkg/proxy/util/localdetector.go).
 */
export function podTrafficOf({ iptables, nftables }: KernelState): PodTraffic {
  const networks = new Map<string, Network>();
  const interfaces = new Set<string>();
  const chains = families.flatMap((family) =>
    tableNames.flatMap((name) => [...(iptables[family]?.[name]?.values() ?? [])]),
  );
  for (const chain of chains) {
    // There is one for each endpoint, which marks packets from that alone.
    if (parseServiceChain(chain.name)?.kind === 'endpoint') continue;
    for (const rule of passingRules(chain)) {
      if (jumpChain(rule) !== baseChains.markMasquerade) continue;
      for (const arg of rule.args) {
        if (arg.kind === 'source' && arg.negated && isNetworkRange(arg.range)) networks.set(arg.range.text, arg.range);
        if (arg.kind === 'in-interface' && arg.negated) interfaces.add(arg.name);
      }
    }
  }
  for (const { name, chains: own } of nftables) {
    for (const { expressions } of [...own.values()].flatMap(({ rules }) => rules)) {
      const marks = expressions.some(
        (each) =>
          (each.kind === 'change-mark' && isKubeProxyTable(name)) ||
          chainsOf(each).some((chain) => markChains.has(chain)),
      );
      for (const each of marks ? expressions : []) {
        if (each.kind !== 'match' || each.operator !== '!=' || 'set' in each.right) continue;
        for (const [value] of each.right.elements.map(({ key }) => key)) {
          if (each.left[0]?.name.endsWith(' saddr') && value?.kind === 'network')
            networks.set(value.network.text, value.network);
          if (each.left[0]?.name === 'iifname' && value?.kind === 'word') interfaces.add(value.text);
        }
      }
    }
  }
  return { networks: [...networks.values()], interfaces: [...interfaces] };
}

export function isIn(networks: readonly Network[], address: Address): boolean {
  return networks.some((network) => contains(network, address));
}
