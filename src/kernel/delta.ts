import { families, type Family } from './family.ts';
import { applyTablesDelta, diffTables, type TableDelta } from './iptables-delta.ts';
import type { Tables } from './iptables.ts';
import { applySetsDelta, diffSets, splitSetsDelta, type SetChange } from './ipset-delta.ts';
import { applyVirtualServersDelta, diffVirtualServers, type VirtualServerChange } from './ipvs-delta.ts';
import type { IpvsTimeouts } from './ipvs.ts';
import { applyLinksDelta, diffLinks, splitLinksDelta, type LinkChange } from './link-delta.ts';
import { applyNftDelta, diffNftTables, splitNftDelta, type NftTableDelta } from './nftables/delta.ts';
import { partition } from './split.ts';
import type { KernelState } from './state.ts';

/**
 * How to get from one state to another, by kind of object. Within one kind the changes are in an order in which they
 * can be made; each has its formatter (formatTablesDelta and so on), which writes the input of the tool that makes it.
 */
export interface KernelDelta {
  readonly iptables: { readonly [F in Family]?: readonly TableDelta[] };
  readonly nftables: readonly NftTableDelta[];
  readonly sets: readonly SetChange[];
  readonly virtualServers: readonly VirtualServerChange[];
  readonly links: readonly LinkChange[];
  readonly sysctls: readonly SysctlChange[];
  readonly ipvsTimeouts: TimeoutsChange | undefined;
  readonly modules: readonly ModuleChange[];
}

type SysctlChange =
  | { readonly kind: 'set-sysctl'; readonly name: string; readonly from: string | undefined; readonly to: string }
  /** Nobody asks for it any more. A sysctl cannot be taken away: it keeps its value. */
  | { readonly kind: 'drop-sysctl'; readonly name: string; readonly from: string };

export interface TimeoutsChange {
  readonly from: IpvsTimeouts;
  /** 0 leaves a timeout as it is. */
  readonly to: IpvsTimeouts;
}

/** Module names. One that nobody asks for any more stays loaded: others may use it. */
interface ModuleChange {
  readonly kind: 'load-module' | 'drop-module';
  readonly name: string;
}

/**
 * The difference between two states, by meaning: neither origins nor the order of chains, sets and entries take part;
 * the order of rules does. A family without tables counts as one without chains.
 */
export function diffStates(from: KernelState, to: KernelState): KernelDelta {
  const iptables: { [F in Family]?: readonly TableDelta[] } = {};
  for (const family of families) {
    const tables = diffTables(from.iptables[family] ?? {}, to.iptables[family] ?? {});
    if (tables.length > 0) iptables[family] = tables;
  }
  return {
    iptables,
    nftables: diffNftTables(from.nftables, to.nftables),
    sets: diffSets(from.sets, to.sets),
    virtualServers: diffVirtualServers(from.virtualServers, to.virtualServers),
    links: diffLinks(from.links, to.links),
    sysctls: diffSysctls(from.sysctls, to.sysctls),
    ipvsTimeouts: diffTimeouts(from.ipvsTimeouts ?? noTimeouts, to.ipvsTimeouts ?? noTimeouts),
    modules: diffModules(from.modules, to.modules),
  };
}

/** Whether there is nothing to change. */
export function isEmptyDelta(delta: KernelDelta): boolean {
  return (
    families.every((family) => (delta.iptables[family] ?? []).length === 0) &&
    delta.nftables.length === 0 &&
    delta.sets.length === 0 &&
    delta.virtualServers.length === 0 &&
    delta.links.length === 0 &&
    delta.sysctls.length === 0 &&
    delta.ipvsTimeouts === undefined &&
    delta.modules.length === 0
  );
}

/** Whether nothing is to be changed in `a` to make it mean the same as `b`: see diffStates. */
export function equalStates(a: KernelState, b: KernelState): boolean {
  return isEmptyDelta(diffStates(a, b));
}

/** The state after the changes. */
export function applyDelta(state: KernelState, delta: KernelDelta): KernelState {
  const iptables: { [F in Family]?: Tables } = { ...state.iptables };
  for (const family of families) {
    const tables = delta.iptables[family];
    if (tables) iptables[family] = applyTablesDelta(state.iptables[family] ?? {}, tables);
  }
  return {
    iptables,
    nftables: applyNftDelta(state.nftables, delta.nftables),
    sets: applySetsDelta(state.sets, delta.sets),
    virtualServers: applyVirtualServersDelta(state.virtualServers, delta.virtualServers),
    links: applyLinksDelta(state.links, delta.links),
    sysctls: applySysctls(state.sysctls, delta.sysctls),
    ipvsTimeouts: delta.ipvsTimeouts
      ? mergeTimeouts(state.ipvsTimeouts ?? noTimeouts, delta.ipvsTimeouts.to)
      : state.ipvsTimeouts,
    modules: applyModules(state.modules, delta.modules),
  };
}

/**
 * The delta in two: what is made before anything goes, and what goes once everything new is there. Applying both, one
 * after the other, is applying the delta. Tables stay whole, with the additions, since iptables-restore changes one at
 * once: so the rules of a set are gone before the set goes.
 */
export function splitDelta(delta: KernelDelta): { readonly additions: KernelDelta; readonly removals: KernelDelta } {
  const nftables = splitNftDelta(delta.nftables);
  const sets = splitSetsDelta(delta.sets);
  const virtualServers = partition(delta.virtualServers, isServerRemoval);
  const links = splitLinksDelta(delta.links);
  const sysctls = partition(delta.sysctls, (change) => change.kind === 'drop-sysctl');
  const modules = partition(delta.modules, (change) => change.kind === 'drop-module');
  return {
    additions: {
      ...delta,
      nftables: nftables.additions,
      sets: sets.additions,
      virtualServers: virtualServers.additions,
      links: links.additions,
      sysctls: sysctls.additions,
      modules: modules.additions,
    },
    removals: {
      iptables: {},
      nftables: nftables.removals,
      sets: sets.removals,
      virtualServers: virtualServers.removals,
      links: links.removals,
      sysctls: sysctls.removals,
      ipvsTimeouts: undefined,
      modules: modules.removals,
    },
  };
}

function isServerRemoval(change: VirtualServerChange): boolean {
  return change.kind === 'delete-service' || change.kind === 'delete-real-server';
}

function diffSysctls(from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>): readonly SysctlChange[] {
  const changes: SysctlChange[] = [];
  for (const [name, value] of to) {
    const old = from.get(name);
    if (old === undefined || !isSameValue(old, value)) changes.push({ kind: 'set-sysctl', name, from: old, to: value });
  }
  for (const [name, value] of from) if (!to.has(name)) changes.push({ kind: 'drop-sysctl', name, from: value });
  return changes;
}

/** The kernel prints tabs between the numbers of a sysctl that has several. */
function isSameValue(a: string, b: string): boolean {
  return a === b || a.trim().split(/\s+/).join(' ') === b.trim().split(/\s+/).join(' ');
}

function applySysctls(
  sysctls: ReadonlyMap<string, string>,
  changes: readonly SysctlChange[],
): ReadonlyMap<string, string> {
  const result = new Map(sysctls);
  for (const change of changes) {
    if (change.kind === 'set-sysctl') result.set(change.name, change.to);
    else result.delete(change.name);
  }
  return result;
}

const noTimeouts: IpvsTimeouts = { tcp: 0, tcpFin: 0, udp: 0 };

/** A timeout that `to` leaves as it is does not differ. */
function diffTimeouts(from: IpvsTimeouts, to: IpvsTimeouts): TimeoutsChange | undefined {
  const merged = mergeTimeouts(from, to);
  return merged.tcp === from.tcp && merged.tcpFin === from.tcpFin && merged.udp === from.udp ? undefined : { from, to };
}

function mergeTimeouts(from: IpvsTimeouts, to: IpvsTimeouts): IpvsTimeouts {
  return { tcp: to.tcp || from.tcp, tcpFin: to.tcpFin || from.tcpFin, udp: to.udp || from.udp };
}

function diffModules(from: readonly string[], to: readonly string[]): readonly ModuleChange[] {
  const before = new Set(from);
  const after = new Set(to);
  return [
    ...to.filter((name) => !before.has(name)).map((name): ModuleChange => ({ kind: 'load-module', name })),
    ...from.filter((name) => !after.has(name)).map((name): ModuleChange => ({ kind: 'drop-module', name })),
  ];
}

function applyModules(modules: readonly string[], changes: readonly ModuleChange[]): readonly string[] {
  const dropped = new Set(changes.filter((change) => change.kind === 'drop-module').map((change) => change.name));
  const loaded = changes.filter((change) => change.kind === 'load-module').map((change) => change.name);
  return [...modules.filter((name) => !dropped.has(name)), ...loaded];
}
