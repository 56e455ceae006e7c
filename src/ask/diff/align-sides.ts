import { usualHealthz } from '../../kube-proxy/node-port-listeners.ts';
import { groupBy } from '../../cluster/grouping.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { diffStates, emptyState, type KernelDelta, type KernelState } from '../../kernel/state.ts';
import { families, type Family, isLoopback } from '../../kernel/address.ts';
import type { Rule, Tables } from '../../kernel/iptables/iptables.ts';
import { changedChain } from '../../kernel/iptables/iptables-delta.ts';
import { ruleMeaning } from '../../kernel/iptables/iptables-meaning.ts';
import type { IpvsTimeouts } from '../../kernel/ipvs/ipvs.ts';
import { modeFacts, programs, proxyModes } from '../../kube-proxy/modes.ts';
import { subtract, type KernelChange } from '../changes/kernel-change.ts';
import { listKernelChanges, settingChange } from '../changes/list-changes.ts';
import { findOwners, labelInComment } from '../../kube-proxy/owners.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { StatePair } from './foreign-items.ts';
import type { ComparisonGap } from './not-compared.ts';

/**
 * Drops sysctls that only one side covers. A dump shows all sysctls of a node, or some of those that kube-proxy sets. A bundle has only the
 * sysctls that the bundle sets. `unshownSysctls`: the sysctls that one side has and the other should show but does not.
 */
export function alignSides(
  from: Snapshot,
  to: Snapshot,
): { readonly from: Snapshot; readonly to: Snapshot; readonly unshownSysctls: readonly string[] } {
  const align = (side: Snapshot, other: Snapshot) => {
    const { shown: sysctls, unshown } = alignSysctls(side, other);
    const state: KernelState = { ...side.state, sysctls, ipvsTimeouts: alignTimeouts(side, other) };
    return { side: side.with({ state: () => state }), unshown };
  };
  const [before, after] = [align(from, to), align(to, from)];
  return { from: before.side, to: after.side, unshownSysctls: [...before.unshown, ...after.unshown].sort() };
}

/** The sysctls that kube-proxy sets. kube-proxy does not cause differences in any other sysctl. */
const kubeProxySysctls: ReadonlySet<string> = new Set([
  ...proxyModes.flatMap((mode) => [...modeFacts[mode].sysctls, ...modeFacts[mode].conditionalSysctls]),
  'net.netfilter.nf_conntrack_max',
  'net.netfilter.nf_conntrack_tcp_be_liberal',
  'net.netfilter.nf_conntrack_tcp_timeout_close_wait',
  'net.netfilter.nf_conntrack_tcp_timeout_established',
  'net.netfilter.nf_conntrack_udp_timeout',
  'net.netfilter.nf_conntrack_udp_timeout_stream',
]);

function alignSysctls(
  side: Snapshot,
  other: Snapshot,
): { readonly shown: KernelState['sysctls']; readonly unshown: readonly string[] } {
  const own = [...side.state.sysctls];
  const isShared = ([name]: readonly [string, string]) => other.state.sysctls.has(name);
  if (other.kind !== 'dump') {
    return { shown: side.kind === 'dump' ? new Map(own.filter(isShared)) : side.state.sysctls, unshown: [] };
  }
  const asked = own.filter(([name]) => side.kind !== 'dump' || kubeProxySysctls.has(name));
  const unshown = asked.flatMap((each) => (isShared(each) ? [] : [each[0]]));
  return { shown: new Map(asked.filter(isShared)), unshown };
}

/** Keeps a dump's timeouts only if the compiled side sets them. With a timeout of 0, kube-proxy leaves the kernel's value alone. */
function alignTimeouts(side: Snapshot, other: Snapshot): IpvsTimeouts | undefined {
  const own = side.state.ipvsTimeouts;
  if (side.kind !== 'dump' || other.kind === 'dump' || !own) return own;
  const asked = other.state.ipvsTimeouts;
  const pick = (name: keyof IpvsTimeouts) => ((asked?.[name] ?? 0) === 0 ? 0 : own[name]);
  return { tcp: pick('tcp'), tcpFin: pick('tcpFin'), udp: pick('udp') };
}

/**
 * Drops the dump's objects in a family for which the other side was not compiled, but keeps the objects of Services. kube-proxy makes its
 * base chains and sets in both families, even if the Services use only one.
 */
export function dropUnusedFamily(
  changes: readonly KernelChange[],
  from: Snapshot,
  to: Snapshot,
): { readonly changes: readonly KernelChange[]; readonly gaps: readonly ComparisonGap[] } {
  const isUnused = (family: Family, side: Snapshot, other: Snapshot) =>
    other.kind === 'dump' && side.kind !== 'dump' && !side.families.includes(family);
  const unused = families.filter((family) => isUnused(family, from, to) || isUnused(family, to, from));
  const isLeftOut = ({ owner, family }: KernelChange) =>
    owner === undefined && family !== undefined && unused.includes(family);
  const found = new Set(changes.filter(isLeftOut).map(({ family }) => family));
  return {
    changes: changes.filter((change) => !isLeftOut(change)),
    gaps: unused
      .filter((family) => found.has(family))
      .map((family): ComparisonGap => ({ part: 'base', family, held: true })),
  };
}

export function diffSettings(from: Snapshot, to: Snapshot): readonly KernelChange[] {
  if (!from.settings || !to.settings) return [];
  const before = nodeSettings(from.settings);
  const after = nodeSettings(to.settings);
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [old, wanted] = [before.get(name) ?? '', after.get(name) ?? ''];
    return old === wanted ? [] : [settingChange(name, old, wanted)];
  });
}

/** Finds node addresses that only one side has, if both sides show some. In iptables mode, no rule shows where node ports listen. */
export function diffNodeAddresses(
  from: Snapshot,
  to: Snapshot,
): { readonly changes: readonly KernelChange[]; readonly gaps: readonly ComparisonGap[] } {
  const known = [from, to].filter((side) => side.kind !== 'dump' && knowsAddresses(side));
  if (known.length < 2) {
    const isGap = known.length > 0 && from.kind !== 'dump' && to.kind !== 'dump';
    return { changes: [], gaps: isGap ? [{ part: 'nodeAddresses', family: undefined, held: false }] : [] };
  }
  const nobody = findOwners([]);
  const delta = diffStates({ ...emptyState, links: from.links }, { ...emptyState, links: to.links });
  return { changes: listKernelChanges(delta, { from: nobody, to: nobody }), gaps: [] };
}

/** Loopback addresses do not count, because every node has them. */
function knowsAddresses({ links }: Snapshot): boolean {
  return links.some(({ addresses }) => addresses.some(({ address }) => !isLoopback(address)));
}

/** Returns, by name, the settings that only kpc-apply uses on the node and that no state shows. */
export function nodeSettings({
  conntrack,
  healthzBindAddress,
  ipvs,
  mode,
}: ProxySettings): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(conntrack).map(([name, value]) => [`conntrack.${name}`, String(value)] as const),
    ['healthzBindAddress', healthzBindAddress ?? usualHealthz],
    ...(programs(mode, 'virtualServers') ? [['ipvs.excludeCIDRs', ipvs.excludeCIDRs.join(',')] as const] : []),
  ]);
}

/**
 * Compares two states by what their rules do, ignoring comments. `comments`: the number of rules that differ only in comments. Also reports
 * a timeout that is no longer set, because the kernel then keeps the old value.
 */
export function diffAligned({ from, to }: StatePair): { readonly delta: KernelDelta; readonly comments: number } {
  const delta = diffStates(from, to);
  const iptables: { [F in Family]?: Tables } = { ...from.iptables };
  let comments = 0;
  for (const family of families) {
    for (const { table, changes } of delta.iptables[family] ?? []) {
      const [before, after] = [from.iptables[family]?.[table], to.iptables[family]?.[table]];
      const chains = new Map(before);
      for (const name of new Set(changes.map(changedChain))) {
        const [old, fresh] = [before?.get(name), after?.get(name)];
        const pairs = old && fresh && pairRules(old.rules, fresh.rules);
        if (!pairs || pairs.size === 0) continue;
        comments += pairs.size;
        const align = (rule: Rule): Rule => pairs.get(rule) ?? rule;
        chains.set(name, { ...old, rules: old.rules.map(align), whole: old.whole?.map(align) });
      }
      iptables[family] = { ...iptables[family], [table]: chains };
    }
  }
  const aligned = comments === 0 ? delta : diffStates({ ...from, iptables }, to);
  const none: IpvsTimeouts = { tcp: 0, tcpFin: 0, udp: 0 };
  const [before, after] = [from.ipvsTimeouts ?? none, to.ipvsTimeouts ?? none];
  const isSame = (['tcp', 'tcpFin', 'udp'] as const).every((name) => before[name] === after[name]);
  return { delta: { ...aligned, ipvsTimeouts: isSame ? undefined : { from: before, to: after } }, comments };
}

/**
 * Pairs each rule that only one side has with a rule of the other side that differs only in its comment. Rules whose comments name
 * different Service ports are not paired. A comment without a name matches any comment.
 */
function pairRules(from: readonly Rule[], to: readonly Rule[]): ReadonlyMap<Rule, Rule> {
  const pairs = new Map<Rule, Rule>();
  const made = groupBy(subtract(to, from, ruleMeaning), bareMeaning);
  for (const rule of subtract(from, to, ruleMeaning)) {
    const others: Rule[] = made.get(bareMeaning(rule)) ?? [];
    const label = labelInComment(rule);
    const isAlike = (other: Rule): boolean => labelInComment(other) === label;
    const isSilent = (other: Rule): boolean => label === undefined || labelInComment(other) === undefined;
    const other = others.find(isAlike) ?? others.find(isSilent);
    if (!other) continue;
    pairs.set(rule, other);
    others.splice(others.indexOf(other), 1);
  }
  return pairs;
}

function bareMeaning(rule: Rule): string {
  return ruleMeaning({ args: rule.args.filter(({ kind }) => kind !== 'comment') });
}
