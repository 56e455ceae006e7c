import type { ProxySettings } from '../cluster/objects.ts';
import type { KernelDelta } from '../kernel/delta.ts';
import { families, type Family } from '../kernel/family.ts';
import type { IpvsTimeouts } from '../kernel/ipvs/ipvs.ts';
import type { KernelState } from '../kernel/state.ts';
import { modeFacts, programs, proxyModes } from '../kube-proxy/modes.ts';
import type { StatePair } from './foreign-items.ts';
import type { Gap } from './not-compared.ts';
import type { KernelChange } from './changes/kernel-change.ts';
import { settingChange } from './changes/list-changes.ts';
import type { Side } from './compared-side.ts';

/**
 * Leaves out the settings that one side says nothing of: a dump tells those of a whole node, or of those that
 * kube-proxy sets only some, and a bundle asks for its own. `untoldSysctls`: whether a side has sysctls that the other
 * should tell and does not.
 */
export function alignSides(
  from: Side,
  to: Side,
): { readonly from: Side; readonly to: Side; readonly untoldSysctls: boolean } {
  const align = (side: Side, other: Side) => {
    const { told: sysctls, untold } = alignSysctls(side, other);
    const state: KernelState = { ...side.state, sysctls, ipvsTimeouts: alignTimeouts(side, other) };
    return { side: { ...side, state }, untold };
  };
  const [before, after] = [align(from, to), align(to, from)];
  return { from: before.side, to: after.side, untoldSysctls: before.untold + after.untold > 0 };
}

/** The sysctls that kube-proxy sets: the others of two nodes have nothing to do with it. */
const kubeProxySysctls: ReadonlySet<string> = new Set([
  ...proxyModes.flatMap((mode) => [...modeFacts[mode].sysctls, ...modeFacts[mode].conditionalSysctls]),
  'net.netfilter.nf_conntrack_max',
  'net.netfilter.nf_conntrack_tcp_be_liberal',
  'net.netfilter.nf_conntrack_tcp_timeout_close_wait',
  'net.netfilter.nf_conntrack_tcp_timeout_established',
  'net.netfilter.nf_conntrack_udp_timeout',
  'net.netfilter.nf_conntrack_udp_timeout_stream',
]);

/** What is to be compared of a side's sysctls, and how many more the other side should tell and does not. */
function alignSysctls(side: Side, other: Side): { readonly told: KernelState['sysctls']; readonly untold: number } {
  const own = [...side.state.sysctls];
  const isShared = ([name]: readonly [string, string]) => other.state.sysctls.has(name);
  if (other.kind !== 'dump') {
    return { told: side.kind === 'dump' ? new Map(own.filter(isShared)) : side.state.sysctls, untold: 0 };
  }
  const asked = own.filter(([name]) => side.kind !== 'dump' || kubeProxySysctls.has(name));
  const told = new Map(asked.filter(isShared));
  return { told, untold: asked.length - told.size };
}

/** A timeout of 0 is left as it is. */
function alignTimeouts(side: Side, other: Side): IpvsTimeouts | undefined {
  const own = side.state.ipvsTimeouts;
  if (side.kind !== 'dump' || other.kind === 'dump' || !own) return own;
  const asked = other.state.ipvsTimeouts;
  const pick = (name: keyof IpvsTimeouts) => ((asked?.[name] ?? 0) === 0 ? 0 : own[name]);
  return { tcp: pick('tcp'), tcpFin: pick('tcpFin'), udp: pick('udp') };
}

/**
 * Leaves out what a dump has of a family that the other side was not compiled for, but for what belongs to Services:
 * kube-proxy makes its own chains and sets of both families, whichever the Services use.
 */
export function dropUnusedFamily(
  changes: readonly KernelChange[],
  from: Side,
  to: Side,
): { readonly changes: readonly KernelChange[]; readonly gaps: readonly Gap[] } {
  const isUnused = (family: Family, side: Side, other: Side) =>
    other.kind === 'dump' && side.kind !== 'dump' && !side.families.includes(family);
  const unused = families.filter((family) => isUnused(family, from, to) || isUnused(family, to, from));
  const isLeftOut = ({ owner, family }: KernelChange) =>
    owner === undefined && family !== undefined && unused.includes(family);
  const found = new Set(changes.filter(isLeftOut).map(({ family }) => family));
  return {
    changes: changes.filter((change) => !isLeftOut(change)),
    gaps: unused
      .filter((family) => found.has(family))
      .map((family): Gap => ({ part: 'base', family, matters: true, held: true })),
  };
}

/** What differs of the settings that kpc-apply goes by on the node, where both sides were compiled. */
export function diffSettings(from: Side, to: Side): readonly KernelChange[] {
  if (!from.services || !to.services) return [];
  const before = nodeSettings(from.services.settings);
  const after = nodeSettings(to.services.settings);
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [old, wanted] = [before.get(name) ?? '', after.get(name) ?? ''];
    return old === wanted ? [] : [settingChange(name, old, wanted)];
  });
}

/** The settings that kpc-apply goes by on the node, by name: nothing in a state shows them. */
export function nodeSettings({ conntrack, ipvs, mode }: ProxySettings): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(conntrack).map(([name, value]) => [`conntrack.${name}`, String(value)] as const),
    ...(programs(mode, 'virtualServers') ? [['ipvs.excludeCIDRs', ipvs.excludeCIDRs.join(',')] as const] : []),
  ]);
}

/** A timeout that is left as it is from now on: nothing is to be done about it, but it is no longer asked for. */
export function diffAskedTimeouts({ from, to }: StatePair): KernelDelta['ipvsTimeouts'] {
  const none: IpvsTimeouts = { tcp: 0, tcpFin: 0, udp: 0 };
  const before = from.ipvsTimeouts ?? none;
  const after = to.ipvsTimeouts ?? none;
  const same = before.tcp === after.tcp && before.tcpFin === after.tcpFin && before.udp === after.udp;
  return same ? undefined : { from: before, to: after };
}
