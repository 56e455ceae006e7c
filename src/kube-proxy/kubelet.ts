import { loopbackNetworks } from '../kernel/address.ts';
import type { Rule, TableName, Tables } from '../kernel/iptables/iptables.ts';
import { ruleMeaning } from '../kernel/iptables/iptables-meaning.ts';
import { baseChains } from './chain-names.ts';
import { sharedChain } from './chains.ts';

/**
 * The rule of KUBE-FIREWALL. route_localnet, which node ports on 127.0.0.1 need, would let neighbours reach what listens
 * there; this keeps them out. kubelet writes the same (syncIPTablesRules in kubelet_network_linux.go).
 */
export const localnetRule: Rule = {
  args: [
    { kind: 'comment', text: 'block incoming localnet connections' },
    { kind: 'destination', range: loopbackNetworks.ipv4 },
    { kind: 'source', range: loopbackNetworks.ipv4, negated: true },
    { kind: 'conntrack-state', states: ['RELATED', 'ESTABLISHED', 'DNAT'], negated: true },
    { kind: 'jump', target: { kind: 'drop' } },
  ],
};

const localnetMeaning = ruleMeaning(localnetRule);

export function isLocalnetRule(rule: Rule): boolean {
  return ruleMeaning(rule) === localnetMeaning;
}

/**
 * How a kubelet shows in the tables of one family.
 *
 * - current: any kubelet since 1.17. It keeps KUBE-KUBELET-CANARY in three tables, and since 1.24 KUBE-IPTABLES-HINT in
 *   mangle. With it goes KUBE-FIREWALL: in IPv4, and up to 1.26 in IPv6 too, never empty.
 * - old: one up to 1.26 (IPTablesOwnershipCleanup). It fills KUBE-MARK-DROP, and makes KUBE-MARK-MASQ and
 *   KUBE-POSTROUTING beside it. kube-proxies of that time made an empty KUBE-MARK-DROP too, so an empty one proves nothing.
 */
export type KubeletTrace = 'none' | 'current' | 'old';

export function traceKubelet(tables: Tables): KubeletTrace {
  if ((tables.nat?.get(baseChains.markDrop)?.rules.length ?? 0) > 0) return 'old';
  const { mangle, nat, filter } = tables;
  const hasCanary = [mangle, nat, filter].some((chains) => chains?.has('KUBE-KUBELET-CANARY'));
  return hasCanary || mangle?.has('KUBE-IPTABLES-HINT') ? 'current' : 'none';
}

const chainsOfOldKubelets: ReadonlySet<string> = new Set([baseChains.markMasquerade, baseChains.postrouting]);

/** Whether a kubelet that left this trace makes a chain of this name too. */
export function mayKubeletMake(trace: KubeletTrace, table: TableName, name: string): boolean {
  const isOfOld = trace === 'old' && table === 'nat' && chainsOfOldKubelets.has(name);
  return isOfOld || (trace !== 'none' && table === 'filter' && name === sharedChain);
}
