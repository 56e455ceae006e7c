import { type Address, contains, families, type Network } from '../../kernel/address.ts';
import { singleAddress } from '../../kernel/address-range.ts';
import { passingRules, tableNames } from '../../kernel/iptables/iptables.ts';
import { conditionsOf } from '../../kernel/iptables/rule-terms.ts';
import { chainsOf, type Expression } from '../../kernel/nftables/table.ts';
import { jumpChain, type KernelState } from '../../kernel/state.ts';
import { baseChains, parseServiceChain } from '../../kube-proxy/chain-names.ts';
import { isKubeProxyTable, nftChains } from '../../kube-proxy/nft-table.ts';
import { sendersAsked } from '../../snapshot/decompiled-port.ts';

export interface PodTraffic {
  readonly networks: readonly Network[];
  /** The names of interfaces, or prefixes of names that end in "*". */
  readonly interfaces: readonly string[];
}

/** Chains in which kube-proxy marks packets for masquerading, in its own nftables tables and in iptables' tables as nft lists them. */
const markChains: ReadonlySet<string> = new Set([nftChains.markForMasquerade, baseChains.markMasquerade]);

/**
 * Finds out how a state's rules recognise pods. The rules masquerade packets to a cluster IP unless the packets come from a pod (isLocal in
 * pkg/proxy/util/localdetector.go).
 */
export function podTrafficOf({ iptables, nftables }: KernelState): PodTraffic {
  const networks = new Map<string, Network>();
  const interfaces = new Set<string>();
  const chains = families.flatMap((family) =>
    tableNames.flatMap((name) => [...(iptables[family]?.[name]?.values() ?? [])]),
  );
  const ofIptables = chains
    // Each endpoint has one such rule, which marks only packets from that endpoint.
    .filter(({ name }) => parseServiceChain(name)?.kind !== 'endpoint')
    .flatMap((chain) => passingRules(chain).filter((rule) => jumpChain(rule) === baseChains.markMasquerade))
    .map(({ args }) => conditionsOf(args));
  const ofNftables = nftables.flatMap(({ name, chains: own }) => {
    const marks = (each: Expression): boolean =>
      (each.kind === 'change-mark' && isKubeProxyTable(name)) || chainsOf(each).some((chain) => markChains.has(chain));
    const rules = [...own.values()].flatMap((chain) => chain.rules.map(({ expressions }) => expressions));
    return rules.filter((expressions) => expressions.some(marks));
  });
  for (const { who, isExcluded } of [...ofIptables, ...ofNftables].flatMap(sendersAsked)) {
    if (!isExcluded || who === 'node') continue;
    if (who.kind === 'from-interface') interfaces.add(who.name);
    else if (who.kind === 'from-interfaces') interfaces.add(`${who.prefix}*`);
    else if (!singleAddress(who.network)) networks.set(who.network.text, who.network);
  }
  return { networks: [...networks.values()], interfaces: [...interfaces] };
}

export function isIn(networks: readonly Network[], address: Address): boolean {
  return networks.some((network) => contains(network, address));
}
