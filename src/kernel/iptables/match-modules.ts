import { passingRules, type RuleArg, type Tables } from './iptables.ts';

/** The modules behind what a rule matches, in load order. */
const modulesOf: readonly (readonly [RuleArg['kind'], readonly string[]])[] = [
  ['match-set', ['xt_set']],
  ['comment', ['xt_comment']],
  ['mark', ['xt_mark']],
  ['address-type', ['xt_addrtype']],
  ['conntrack-state', ['xt_conntrack']],
  ['statistic', ['xt_statistic']],
  ['recent', ['xt_recent']],
  ['virtual-server', ['xt_ipvs']],
  // physdev sees bridge ports only where bridged packets pass iptables.
  ['physdev-is-in', ['br_netfilter', 'xt_physdev']],
];

/**
 * The kernel modules that the matches of these rules need. Most kernels load them by themselves when a rule asks for
 * them; nodes that forbid that need them named.
 */
export function matchModules(tables: readonly Tables[]): readonly string[] {
  const used = new Set<RuleArg['kind']>();
  for (const chains of tables.flatMap((ofFamily) => Object.values(ofFamily))) {
    for (const chain of chains.values()) {
      for (const { args } of passingRules(chain)) {
        for (const { kind } of args) used.add(kind);
      }
    }
  }
  return modulesOf.flatMap(([kind, modules]) => (used.has(kind) ? modules : []));
}
