import type { Tables } from '../../kernel/iptables.ts';
import type { VirtualServer } from '../../kernel/ipvs.ts';
import { matchModules } from '../../kernel/match-modules.ts';

/**
 * The kernel modules that a state in IPVS mode needs, in load order. Most kernels load those of sets and matches by
 * themselves when a set or rule asks for them; nodes that forbid that need them named.
 */
export function neededModules(
  virtualServers: readonly VirtualServer[],
  nodeScheduler: string,
  tables: readonly Tables[],
): readonly string[] {
  const schedulers = new Set([nodeScheduler, ...virtualServers.map(({ scheduler }) => scheduler)]);
  const usesTunnels = virtualServers.some(({ realServers }) => realServers.some((rs) => rs.forwarding === 'tunnel'));
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
    ...matchModules(tables),
    ...(usesTunnels ? ['ipip'] : []),
  ];
}
