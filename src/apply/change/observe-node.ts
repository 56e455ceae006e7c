import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { families, type Family } from '../../kernel/family.ts';
import { applyTablesDelta } from '../../kernel/iptables/iptables-delta.ts';
import type { Tables } from '../../kernel/iptables/iptables.ts';
import { createRuleLines, type RuleLinesByFamily } from '../../kernel/iptables/rule-lines.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isEmptyBelongings, type Belongings } from '../state/belongings.ts';
import type { Host } from '../node/host.ts';
import { readModuleIndex } from '../node/kernel-modules.ts';
import { neededParts, neededTables, parseReading, readNode } from '../node/node-reading.ts';
import { listTraffic, trafficIn, type OpenTraffic } from '../node/open-traffic.ts';
import type { Claims, Conflict } from '../plan/share-draft.ts';
import { makePlan, servesByRulesAlone, type DrainTerms, type NodeState, type Plan, type Target } from '../plan/plan.ts';
import type { ChangeOrigin } from '../state/history.ts';
import {
  beginLook,
  type EarlierLook,
  type QuickReading,
  type SettledLook,
  type Settling,
} from '../quick/small-change.ts';

/** What is wanted of the node. */
export interface ChangeRequest {
  readonly origin: ChangeOrigin;
  /**
   * Made anew for each look at the node, since some of it depends on what the node is like. `files` are those of the
   * bundle as far as it is in sight, where not all of it is.
   */
  readonly target: (files?: BundleFiles) => Promise<Target>;
  /** The bundle that the target is, and what is known of the one before it: undefined reads and compares everything. */
  readonly settling?: Settling | undefined;
  /** Families that the node must have. */
  readonly families: readonly Family[];
  readonly adopt: boolean;
  readonly excluded: Claims['excluded'];
  readonly clusterIPs?: Claims['clusterIPs'];
  /** Milliseconds until a real server goes even with connections; undefined waits for their end. */
  readonly drainTimeout: number | undefined;
  /** Milliseconds to wait for a confirmation, before everything is put back; undefined does not ask. */
  readonly confirmTimeout?: number | undefined;
  /**
   * Throws a Failure where the node is not fit to be changed. `isIdle`: nothing is to be changed, and nothing is in the
   * way. `node` is what the plan was made upon.
   */
  readonly prepare?: ((plan: Plan, isIdle: boolean, node: NodeState) => Promise<void>) | undefined;
  /** Whether rules that a kube-proxy left, and that would serve besides, are in the way of the first apply. */
  readonly refusesLeftovers?: boolean | undefined;
  /** What will be ours, where that is not simply what the target has. */
  readonly belongings?: Belongings | undefined;
}

/** A look at a node, and what would have to change. The plan is of what was in focus alone. */
export interface Observation extends QuickReading {
  readonly plan: Plan;
  readonly node: NodeState;
  readonly rules: RuleLinesByFamily;
  /** By which connections and clock the plan was made. */
  readonly traffic: OpenTraffic;
  readonly terms: DrainTerms;
}

/** A look after a change, by the connections that the change went by. */
export interface SecondLook extends EarlierLook {
  readonly earlier: Observation;
  readonly traffic: OpenTraffic;
}

/** Looks at the node, and says what would have to change. */
export async function look(
  host: Host,
  request: ChangeRequest,
  owned: Belongings,
  terms: DrainTerms,
  back?: SettledLook | SecondLook,
): Promise<Observation> {
  const second = back?.kind === 'earlier' ? back : undefined;
  const before = second?.earlier;
  const quick = request.settling && (await beginLook(host, request.settling, back));
  const target = await request.target(quick?.focus?.bundle());
  const listing = second ? undefined : await listTraffic(host, servesByRulesAlone(target.state));
  const scope = {
    ipvs: listing && (listing.ipvs ?? null),
    needed: neededParts(target.state, owned),
    tables: neededTables(target.state, owned),
    families: request.families,
    timeouts: target.state.ipvsTimeouts !== undefined,
    nftables: target.state.nftables.length > 0 || owned.nftTables.length > 0,
    settings: target.settings.map((setting) => setting.path),
  };
  const traffic = second?.traffic ?? trafficIn(listing ?? { ipvs: undefined, sockets: [] });
  const readWhole = async (): Promise<QuickReading> => {
    const reading = await readNode(host, scope, second && { reading: second.earlier.reading, changed: second.changed });
    return { reading, focus: undefined, nftStamp: undefined, isKnown: false };
  };
  const [found, modules] = await Promise.all([
    quick ? quick.read(scope, owned) : readWhole(),
    before?.plan.modules.length === 0 ? before.node.modules : readModuleIndex(host, target.modules),
  ]);
  const { reading, focus } = found;
  const rules = before?.rules ?? { ipv4: createRuleLines(), ipv6: createRuleLines() };
  const earlier = before && !before.focus ? { reading: before.reading, state: before.node.state } : undefined;
  const state = focus ? parseReading(focus.node(reading)) : parseReading(reading, { rules, earlier });
  const node: NodeState = { state, settings: reading.settings, modules, traffic };
  const { adopt, excluded, clusterIPs } = request;
  const claims: Claims = { owned, adopt, excluded, clusterIPs };
  const asked = focus === quick?.focus ? target : await request.target(focus?.bundle());
  // What rules guarded for a while is no part of what is wanted.
  const wanted =
    earlier && before && !before.plan.takeover
      ? { ...asked, state: { ...asked.state, iptables: afterwards(before.plan, asked.state) } }
      : asked;
  const plan = makePlan(node, wanted, claims, terms);
  // Once there is a record, what a kube-proxy wrote since must not keep a watch from its repairs.
  const mustRefuse = request.refusesLeftovers === true && isEmptyBelongings(owned);
  const shown = mustRefuse ? refuseLeftovers(plan) : plan;
  return { ...found, plan: shown, node, rules, traffic, terms };
}

/** A plan in which rules of a kube-proxy that packets still meet are in the way. */
function refuseLeftovers(plan: Plan): Plan {
  const { conflicts, leftovers } = plan.share;
  const inTheWay = leftovers.filter(({ isInEffect }) => isInEffect);
  const added = inTheWay.map(({ kind, name, isHeld }): Conflict => ({ kind, name, adoptable: !isHeld, isHeld }));
  return { ...plan, share: { ...plan.share, conflicts: [...conflicts, ...added] } };
}

/**
 * The wanted tables, of the values that were read where these mean the same: what has not been changed then compares at
 * no cost. A plan's changes lead from what is there to what is wanted, no more and no less.
 */
function afterwards({ present, delta }: Plan, wanted: KernelState): KernelState['iptables'] {
  const iptables: { [F in Family]?: Tables } = {};
  for (const family of families) {
    if (wanted.iptables[family] === undefined) continue;
    iptables[family] = applyTablesDelta(present.iptables[family] ?? {}, delta.iptables[family] ?? []);
  }
  return iptables;
}
