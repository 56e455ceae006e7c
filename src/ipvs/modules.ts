import type { Family } from '../kernel/family.ts';
import type { RuleArg, Tables } from '../kernel/iptables.ts';
import type { VirtualServer } from '../kernel/ipvs.ts';

/**
 * The kernel modules that a state in IPVS mode needs, in load order. Most kernels load the later ones by themselves
 * when a rule or set asks for them; nodes that forbid that need them named.
 */
export function neededModules(
  virtualServers: readonly VirtualServer[],
  nodeScheduler: string,
  iptables: { readonly [F in Family]?: Tables },
): readonly string[] {
  const schedulers = new Set([nodeScheduler, ...virtualServers.map(({ scheduler }) => scheduler)]);
  const usesTunnels = virtualServers.some(({ realServers }) => realServers.some((rs) => rs.forwarding === 'tunnel'));
  const matches = new Set(ruleArgs(iptables).map((arg) => arg.kind));
  return [
    'ip_vs',
    ...[...schedulers].toSorted().map((scheduler) => `ip_vs_${scheduler}`),
    'nf_conntrack',
    'dummy',
    'ip_set',
    'ip_set_hash_ip',
    'ip_set_hash_ipport',
    'ip_set_hash_ipportip',
    'ip_set_hash_ipportnet',
    'ip_set_bitmap_port',
    'xt_set',
    'xt_comment',
    'xt_mark',
    'xt_addrtype',
    'xt_conntrack',
    ...(matches.has('ipvs') ? ['xt_ipvs'] : []),
    // physdev sees bridge ports only where bridged packets pass iptables.
    ...(matches.has('physdev-is-in') ? ['br_netfilter', 'xt_physdev'] : []),
    ...(usesTunnels ? ['ipip'] : []),
  ];
}

function ruleArgs(iptables: { readonly [F in Family]?: Tables }): readonly RuleArg[] {
  return Object.values(iptables)
    .flatMap((tables) => Object.values(tables))
    .flatMap((chains) => [...chains.values()])
    .flatMap((chain) => chain.rules)
    .flatMap((rule) => rule.args);
}
