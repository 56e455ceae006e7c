import {
  diffStates,
  isEmptyDelta,
  restrictState,
  emptyState,
  type KernelDelta,
  type KernelState,
} from '../../kernel/state.ts';
import { hasRules, settleTables } from '../../kernel/iptables/iptables-delta.ts';
import { diffVirtualServers } from '../../kernel/ipvs/ipvs-delta.ts';
import type { Link } from '../../kernel/link/link.ts';
import type { OpenTraffic } from '../node/open-traffic.ts';
import { planDrain, type DrainPolicy } from '../change/drain-servers.ts';
import { addGuard, closeAddresses, guardOf } from './access-guard.ts';
import type { Variants } from '../node/tools.ts';
import { findModule, type ModuleIndex } from '../node/kernel-modules.ts';
import { isMet, type RequiredSysctl } from './node-decisions.ts';
import { ownershipOf } from '../state/owned-names.ts';
import { decideOwnership } from './ownership.ts';
import type { Claims, OwnershipDecision } from './ownership-draft.ts';
import { boundAddresses, serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import type { DrainingServer } from '../state/record.ts';

export interface WantedNode {
  /** Everything but sysctls and modules, which are in the lists below. */
  readonly state: KernelState;
  readonly settings: readonly RequiredSysctl[];
  readonly modules: readonly string[];
}

export interface NodeState {
  readonly state: KernelState;
  readonly settings: Readonly<Record<string, string>>;
  readonly modules: ModuleIndex;
  readonly variants: Variants;
  readonly traffic: OpenTraffic;
}

export interface RequiredChange {
  readonly setting: RequiredSysctl;
  readonly from: string | undefined;
}

export interface Plan {
  readonly modules: readonly string[];
  readonly settings: readonly RequiredChange[];
  /** Settings that another program changed after kpc-apply. They stay unchanged. */
  readonly leftSettings: readonly RequiredChange[];
  readonly delta: KernelDelta;
  readonly draining: readonly DrainingServer[];
  readonly kept: number;
  /** Open connections that end when their server is removed. */
  readonly cut: number;
  /** The state in which iptables rules have replaced IPVS and its addresses are still guarded; undefined without IPVS. */
  readonly takeover: KernelState | undefined;
  /** The whole change, or only the part before or after the state `takeover`. */
  readonly stage: 'whole' | 'before takeover' | 'after takeover';
  /** Uptime in milliseconds when the node left IPVS; undefined once no IPVS address remains. */
  readonly leftIpvs: number | undefined;
  readonly ownership: OwnershipDecision;
  readonly variants: Variants;
  /** The part of the node's present state that kpc-apply owns. */
  readonly present: KernelState;
  readonly wanted: KernelState;
  /** The owned state after the change: the wanted objects, and those still draining. */
  readonly state: KernelState;
}

export interface DrainTerms extends Omit<DrainPolicy, 'leavesIpvs'> {
  readonly known: readonly DrainingServer[];
  /** Uptime in milliseconds when the node switched from IPVS to rules; undefined once no IPVS address remains. */
  readonly leftIpvs: number | undefined;
}

export function makePlan(node: NodeState, target: WantedNode, claims: Claims, terms: DrainTerms): Plan {
  const bare = decideOwnership(node.state, target.state, claims);
  const { ownership, guard } = planGuard(node, target, claims, bare);
  const { variants } = node;
  const owns = ownershipOf(ownership.owned, variants);
  const present = restrictState(node.state, owns);
  const wanted: KernelState = {
    ...restrictState(ownership.wanted, owns),
    ipvsTimeouts: target.state.ipvsTimeouts ?? present.ipvsTimeouts,
  };
  const guarded = guard && addGuard(wanted, guard, 'after');
  const takeover = guarded && {
    ...guarded,
    iptables: settleTables(present.iptables, guarded.iptables),
    virtualServers: present.virtualServers,
    links: present.links,
  };
  const { state, ...ipvs } = planIpvs(present, wanted, node.traffic, { ...terms, leavesIpvs: guard !== undefined });
  const changes = target.settings
    .map((setting): RequiredChange => ({ setting, from: node.settings[setting.path] }))
    .filter(({ setting, from }) => from !== setting.value);
  return {
    modules: target.modules.filter((module) => findModule(node.modules, module) === 'loadable'),
    settings: changes.filter((change) => !isMet(change.setting, change.from) && !isLeftAlone(change)),
    leftSettings: changes.filter(isLeftAlone),
    delta: diffStates(present, state),
    ...ipvs,
    takeover,
    stage: 'whole',
    ownership,
    variants,
    present,
    wanted,
    state,
  };
}

/** Plans the guard for addresses left from IPVS mode. The change may touch the guard, but the guard is not owned afterwards. */
function planGuard({ state, variants }: NodeState, target: WantedNode, claims: Claims, bare: OwnershipDecision) {
  if (!servesByRulesAlone(target.state)) return { ownership: bare, guard: undefined };
  const owns = ownershipOf(bare.owned, variants);
  const { links, virtualServers } = restrictState({ ...state, iptables: {} }, owns);
  const addresses = boundAddresses({ links });
  if (addresses.length === 0 && virtualServers.length === 0) return { ownership: bare, guard: undefined };
  const present = restrictState(state, owns);
  const guard = guardOf(present);
  const guarded = addGuard(
    addGuard(target.state, guard, 'after'),
    closeAddresses(present, addresses, virtualServers),
    'after',
  );
  const { owned, ownedDuring, conflicts } = decideOwnership(state, guarded, claims);
  return { ownership: { ...bare, owned, ownedDuring, conflicts }, guard };
}

/** Reports whether rules of iptables or nftables alone serve this state. IPVS mode always has the link kube-ipvs0. */
export function servesByRulesAlone({ iptables, nftables, virtualServers, links }: KernelState): boolean {
  return (
    (Object.values(iptables).some(hasRules) || nftables.length > 0) && virtualServers.length === 0 && links.length === 0
  );
}

function planIpvs(
  present: KernelState,
  wanted: KernelState,
  { connections, sources }: OpenTraffic,
  drain: DrainTerms & DrainPolicy,
) {
  const { virtualServers, ...ends } = planDrain(
    present.virtualServers,
    wanted.virtualServers,
    connections,
    drain.known,
    drain,
  );
  const state = { ...wanted, virtualServers };
  if (!drain.leavesIpvs) return { ...ends, state, leftIpvs: undefined };
  const { leftIpvs = drain.uptime } = drain;
  const isOver = drain.timeout !== undefined && drain.uptime - leftIpvs >= drain.timeout;
  const served = new Set(virtualServers.map((server) => server.address.text));
  const isNeeded = (address: string) => served.has(address) || (!isOver && sources().has(address));
  const links = keepAddresses(present.links, wanted.links, isNeeded);
  const kept = boundAddresses({ links });
  return {
    ...ends,
    state: { ...addGuard(state, closeAddresses(present, kept, virtualServers), 'after'), links },
    leftIpvs: kept.length > 0 ? leftIpvs : undefined,
  };
}

/**
 * Keeps the addresses of remaining virtual servers, because IPVS sees only packets to the node's own addresses. Also keeps the addresses
 * that the node's own connections come from. A link left without addresses is removed, unless it is foreign.
 */
function keepAddresses(
  present: readonly Link[],
  wanted: readonly Link[],
  isNeeded: (address: string) => boolean,
): readonly Link[] {
  const staying = new Map(wanted.map((link) => [link.name, link]));
  return present.flatMap((link) => {
    const addresses = link.name === serviceLink ? link.addresses.filter(({ address }) => isNeeded(address.text)) : [];
    return addresses.length > 0 ? [{ ...link, addresses }] : (staying.get(link.name) ?? []);
  });
}

/** Returns the changes to make before connections are counted again. Virtual servers stay until rules replace them. */
export function withoutRelease(plan: Plan): Plan {
  const { takeover, present } = plan;
  return takeover ? { ...plan, stage: 'before takeover', delta: diffStates(present, takeover), state: takeover } : plan;
}

/** Returns the remaining changes, which remove servers without connections. No new connection can start meanwhile. */
export function planRelease(plan: Plan, traffic: OpenTraffic, terms: DrainTerms): Plan {
  const { takeover, wanted } = plan;
  const present = takeover ?? plan.state;
  const { state, ...ends } = planIpvs(present, wanted, traffic, { ...terms, leavesIpvs: takeover !== undefined });
  const virtualServers = diffVirtualServers(present.virtualServers, state.virtualServers);
  const delta = takeover ? diffStates(takeover, state) : { ...diffStates(emptyState, emptyState), virtualServers };
  return { ...plan, modules: [], settings: [], ...ends, stage: 'after takeover', delta, present, state };
}

export function joinRelease(plan: Plan, release: Plan): Plan {
  const { draining, kept, leftIpvs, cut, state } = release;
  const ends = { draining, kept, leftIpvs, state };
  if (plan.takeover) return { ...plan, ...ends, delta: diffStates(plan.present, state), cut };
  const virtualServers = diffVirtualServers(plan.present.virtualServers, state.virtualServers);
  return { ...plan, ...ends, delta: { ...plan.delta, virtualServers }, cut: plan.cut + cut };
}

export function listStages(plan: Plan): readonly Plan[] {
  if (!plan.takeover || plan.stage !== 'whole') return [plan];
  const rest = { modules: [], settings: [], delta: diffStates(plan.takeover, plan.state), present: plan.takeover };
  return [withoutRelease(plan), { ...plan, ...rest, stage: 'after takeover' }];
}

function isLeftAlone({ setting: { onlyFrom }, from }: RequiredChange): boolean {
  return onlyFrom !== undefined && (from === undefined || !onlyFrom.includes(from));
}

/** Reports whether the node is in the wanted state, apart from draining real servers. */
export function isEmptyPlan(plan: Plan): boolean {
  return plan.modules.length === 0 && plan.settings.length === 0 && isEmptyDelta(plan.delta);
}

export function listLeftAddresses({ leftIpvs, state }: Plan): readonly string[] {
  return leftIpvs === undefined ? [] : boundAddresses(state);
}
