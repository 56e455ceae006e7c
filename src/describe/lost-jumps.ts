import { showsRules } from '../dumps/coverage.ts';
import type { Side } from '../dumps/side.ts';
import type { Family } from '../kernel/family.ts';
import { isBuiltInChain, type Chain } from '../kernel/iptables/iptables.ts';
import { jumpChain } from '../kernel/restrict.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { programs, type ProxyMode } from '../kube-proxy/modes.ts';

/** Why they are lost, and what to do. */
export const lostJumpCause = "something removed kube-proxy's jump; restart kube-proxy";

const entries = ['PREROUTING', 'OUTPUT'] as const;

/**
 * The built-in chains of table nat in which nothing leads to the rules of Services, though these are there: kube-proxy makes both
 * jumps (iptablesJumpChains in iptables/proxier.go), and something removed one. Empty in modes whose Services do not hang on these.
 */
export function findLostJumps(
  { kind, state, coverage }: Side,
  mode: ProxyMode,
  family: Family,
): readonly (typeof entries)[number][] {
  const translates = programs(mode, 'iptables') && !programs(mode, 'virtualServers') && !programs(mode, 'proxyPorts');
  const nat = state.iptables[family]?.nat;
  if (kind !== 'dump' || !translates || !nat || !showsRules(coverage, family)) return [];
  if ((nat.get(baseChains.services)?.rules ?? []).length === 0) return [];
  const jumps = ({ rules }: Chain): boolean => rules.some((rule) => jumpChain(rule) === baseChains.services);
  // A chain of the administrator's may lead there, too.
  if ([...nat.values()].some((chain) => !isBuiltInChain('nat', chain.name) && jumps(chain))) return [];
  return entries.filter((entry) => {
    const chain = nat.get(entry);
    return !chain || !jumps(chain);
  });
}
