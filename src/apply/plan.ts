import { diffStates, isEmptyDelta, type KernelDelta } from '../kernel/delta.ts';
import { splitSetsDelta } from '../kernel/ipset-delta.ts';
import { diffVirtualServers } from '../kernel/ipvs-delta.ts';
import { diffLinks } from '../kernel/link-delta.ts';
import type { Link } from '../kernel/link.ts';
import { restrictState } from '../kernel/restrict.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import type { OpenTraffic } from './open-traffic.ts';
import { planDrain, type DrainPlan, type DrainPolicy } from './drain.ts';
import { findModule, type ModuleIndex } from './modules.ts';
import type { Setting } from './node-decisions.ts';
import { ownershipOf } from './belongings.ts';
import { takeShare, type Claims, type Share } from './ownership.ts';
import { serviceLink } from '../kube-proxy/link.ts';
import type { DrainingServer } from './record.ts';

/** What a node is to be like. */
export interface Target {
  /** The tools' part: sysctls and modules stand in the two lists below. */
  readonly state: KernelState;
  readonly settings: readonly Setting[];
  readonly modules: readonly string[];
}

/** What a node is like. */
export interface NodeState {
  readonly state: KernelState;
  /** File → value. */
  readonly settings: Readonly<Record<string, string>>;
  readonly modules: ModuleIndex;
  /** Only asked of what goes. */
  readonly traffic: OpenTraffic;
}

/** A setting that has another value, or none yet. */
export interface SettingChange {
  readonly setting: Setting;
  readonly from: string | undefined;
}

/** Everything that is to change on a node, as data. */
export interface Plan {
  readonly modules: readonly string[];
  readonly settings: readonly SettingChange[];
  readonly delta: KernelDelta;
  /** Real servers that keep their connections until these end. */
  readonly draining: readonly DrainingServer[];
  /** Open connections to real servers that drain. */
  readonly kept: number;
  /** Open connections that end with the real server or virtual server that they go through. */
  readonly cut: number;
  /** Whether iptables rules take over from IPVS: see planDrain. */
  readonly leavesIpvs: boolean;
  /**
   * Addresses that no virtual server needs any more, but connections that the node itself opened: one to an address of
   * its own comes from that address.
   */
  readonly held: readonly string[];
  /** When the node left IPVS, as DrainTerms has it, where addresses are still left of that. */
  readonly leftIpvs: number | undefined;
  readonly share: Share;
  /** What is ours, as it is. */
  readonly present: KernelState;
  /** The same as it is wanted in the end. */
  readonly wanted: KernelState;
  /** The state that the delta leads to, of what is ours: what is wanted, and what drains. */
  readonly state: KernelState;
}

/** When a plan is made, and how long real servers may drain. */
export interface DrainTerms {
  readonly timeout: number | undefined;
  readonly now: number;
  readonly uptime: number;
  readonly known: readonly DrainingServer[];
  /** When the node left IPVS for rules, in milliseconds since it booted, where something is still left of that. */
  readonly leftIpvs: number | undefined;
}

/** Compares a node with what it is to be like. */
export function makePlan(node: NodeState, target: Target, claims: Claims, terms: DrainTerms): Plan {
  const share = takeShare(node.state, target.state, claims);
  const owns = ownershipOf(share.ours);
  const present = restrictState(node.state, owns);
  const wanted = restrictState(share.wanted, owns);
  const leavesIpvs = servesByRulesAlone(target.state);
  const ipvs = planIpvs(present, wanted, node.traffic, { ...terms, leavesIpvs });
  const state: KernelState = {
    ...wanted,
    virtualServers: ipvs.virtualServers,
    links: ipvs.links,
    ipvsTimeouts: target.state.ipvsTimeouts ?? present.ipvsTimeouts,
  };
  return {
    modules: target.modules.filter((module) => findModule(node.modules, module) === 'loadable'),
    settings: target.settings.flatMap((setting) => changeSetting(node, setting) ?? []),
    delta: diffStates(present, state),
    draining: ipvs.draining,
    kept: ipvs.kept,
    cut: ipvs.cut,
    leavesIpvs,
    held: ipvs.held,
    leftIpvs: ipvs.leftIpvs,
    share,
    present,
    wanted,
    state,
  };
}

/** Whether a state serves by iptables rules, and has no part in IPVS: no kube-ipvs0, which IPVS mode always has. */
export function servesByRulesAlone({ iptables, virtualServers, links }: KernelState): boolean {
  const hasChains = Object.values(iptables).some((tables) => Object.values(tables).some((table) => table.size > 0));
  return hasChains && virtualServers.length === 0 && links.length === 0;
}

/** The part of a plan that depends on connections. */
interface IpvsPlan extends DrainPlan, Pick<Plan, 'held' | 'leftIpvs'> {
  readonly links: readonly Link[];
}

function planIpvs(
  present: Pick<KernelState, 'virtualServers' | 'links'>,
  wanted: KernelState,
  { connections, sources }: OpenTraffic,
  drain: DrainTerms & DrainPolicy,
): IpvsPlan {
  const drained = planDrain(present.virtualServers, wanted.virtualServers, connections, drain.known, drain);
  if (!drain.leavesIpvs) return { ...drained, links: wanted.links, held: [], leftIpvs: undefined };
  const { leftIpvs = drain.uptime } = drain;
  const isOver = drain.timeout !== undefined && drain.uptime - leftIpvs >= drain.timeout;
  const served = new Set(drained.virtualServers.map((server) => server.address));
  const isNeeded = (address: string) => served.has(address) || (!isOver && sources().has(address));
  const links = keepAddresses(present.links, wanted.links, isNeeded);
  const kept = links.flatMap((link) => link.addresses.map(({ address }) => address));
  const held = kept.filter((address) => !served.has(address));
  return { ...drained, links, held, leftIpvs: kept.length > 0 ? leftIpvs : undefined };
}

/**
 * The addresses of virtual servers that stay for their connections: a packet to an address that is not the node's own
 * never gets to IPVS. And those that the node's own connections come from. Where there are none, the link goes, unless
 * it is another program's.
 */
function keepAddresses(
  present: readonly Link[],
  wanted: readonly Link[],
  isNeeded: (address: string) => boolean,
): readonly Link[] {
  const staying = new Map(wanted.map((link) => [link.name, link]));
  return present.flatMap((link) => {
    const addresses = link.name === serviceLink ? link.addresses.filter(({ address }) => isNeeded(address)) : [];
    return addresses.length > 0 ? [{ ...link, addresses }] : (staying.get(link.name) ?? []);
  });
}

/** What of a plan can be done before anybody looks at connections again. Virtual servers stay until rules replace them. */
export function withoutRelease(plan: Plan): Plan {
  if (!plan.leavesIpvs) return plan;
  const sets = splitSetsDelta(plan.delta.sets).additions;
  return { ...plan, delta: { ...plan.delta, virtualServers: [], links: [], sets } };
}

/**
 * What is left of a plan once the rest of it is done: to let go of what has no connections by then. New ones go elsewhere
 * from now on, so that none can come between the look and what is done upon it.
 */
export function planRelease(plan: Plan, traffic: OpenTraffic, terms: DrainTerms): Plan {
  const { leavesIpvs, wanted } = plan;
  const present = leavesIpvs ? plan.present : plan.state;
  const drain = { ...terms, leavesIpvs };
  const { virtualServers, links, ...ends } = planIpvs(present, wanted, traffic, drain);
  const delta: KernelDelta = {
    ...diffStates(emptyState, emptyState),
    sets: leavesIpvs ? splitSetsDelta(plan.delta.sets).removals : [],
    virtualServers: diffVirtualServers(present.virtualServers, virtualServers),
    links: diffLinks(present.links, links),
  };
  return {
    ...plan,
    modules: [],
    settings: [],
    delta,
    ...ends,
    present,
    state: { ...plan.state, virtualServers, links },
  };
}

/** Both as one, for people: what was done first, and what upon the second look at connections. */
export function joinRelease(plan: Plan, release: Plan): Plan {
  const { virtualServers, links } = release.delta;
  return {
    ...plan,
    delta: plan.leavesIpvs
      ? { ...plan.delta, virtualServers, links }
      : { ...plan.delta, virtualServers: [...plan.delta.virtualServers, ...virtualServers] },
    draining: release.draining,
    kept: release.kept,
    held: release.held,
    leftIpvs: release.leftIpvs,
    cut: plan.leavesIpvs ? release.cut : plan.cut + release.cut,
    state: release.state,
  };
}

function changeSetting(node: NodeState, setting: Setting): SettingChange | undefined {
  const from = node.settings[setting.path];
  return from === setting.value ? undefined : { setting, from };
}

/** Whether the node is as it is to be; real servers that still drain are as they are to be. */
export function isEmptyPlan(plan: Plan): boolean {
  return plan.modules.length === 0 && plan.settings.length === 0 && isEmptyDelta(plan.delta);
}
