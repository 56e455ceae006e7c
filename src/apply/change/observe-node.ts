import type { BundleFiles } from '../../bundle/make-bundle.ts';
import type { Family } from '../../kernel/family.ts';
import { isEmptyBelongings, type Belongings, joinBelongings } from '../state/belongings.ts';
import type { Failure } from '../state/failure.ts';
import { readRecord, readSnapshot, type OwnershipRecord, type Snapshot, type StateFolder } from '../state/record.ts';
import type { Step } from '../plan/steps.ts';
import type { Host } from '../node/host.ts';
import { readModuleIndex } from '../node/kernel-modules.ts';
import { neededOf, parseReading } from '../node/node-reading.ts';
import { readTraffic } from '../node/open-traffic.ts';
import type { Claims, Conflict } from '../plan/share-draft.ts';
import { makePlan, servesByRulesAlone, type DrainTerms, type NodeState, type Plan, type Target } from '../plan/plan.ts';
import type { ChangeOrigin } from '../state/history.ts';
import { beginLook, type Grounds, type Observation, type Settling } from '../quick/small-change.ts';

/** The node, the files that kpc-apply keeps about it, and who hears of the progress. */
export interface Session {
  readonly host: Host;
  readonly folder: StateFolder;
  readonly onEvent: (event: ChangeEvent) => void;
  /** Aborted when the operator asks to stop: what has been changed is then put back. */
  readonly signal?: AbortSignal | undefined;
}

/** How a change goes on, for an operator who watches. */
export type ChangeEvent =
  | { readonly kind: 'recovering' }
  | { readonly kind: 'reading' }
  | { readonly kind: 'step'; readonly step: Step; readonly number: number; readonly of: number }
  | { readonly kind: 'checking' }
  | { readonly kind: 'awaiting-confirmation'; readonly milliseconds: number }
  /** A tool takes long: since when (milliseconds since 1970), and how long it may take at most, in milliseconds. */
  | { readonly kind: 'waiting'; readonly command: string; readonly since: number; readonly limit: number }
  | { readonly kind: 'putting-back'; readonly because: Failure }
  /** Something is not as it should be, and does not stop the work. */
  | { readonly kind: 'warning'; readonly text: string };

/** What is wanted of the node. */
export interface ChangeRequest {
  readonly origin: ChangeOrigin;
  /**
   * Made anew for each look at the node, since some of it depends on what the node is like. `files` are those of the
   * bundle as far as it is in sight, if not all of it is.
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
   * Throws a Failure if the node is not fit to be changed. `isIdle`: there is nothing to change, and nothing is in the
   * way. `node` is what the plan was made upon.
   */
  readonly prepare?: ((plan: Plan, isIdle: boolean, node: NodeState) => Promise<void>) | undefined;
  /** Whether rules that a kube-proxy left, and that still serve, are in the way of the first apply. */
  readonly refusesLeftovers?: boolean | undefined;
  /** What will be ours, if that is not simply what the target has. */
  readonly belongings?: Belongings | undefined;
}

/** The outcome of a change of the node; `plan` is the intended change. */
export type ChangeOutcome =
  | { readonly kind: 'unchanged' | 'changed'; readonly plan: Plan }
  /** It failed, and the node is as it was. */
  | { readonly kind: 'put-back'; readonly plan: Plan; readonly failure: Failure }
  /** It failed, and not everything could be put back. */
  | { readonly kind: 'stuck'; readonly plan: Plan; readonly failure: Failure; readonly left: Plan | undefined };

/** Whether the node is in the wanted state. */
export function isDone({ kind }: ChangeOutcome): boolean {
  return kind === 'unchanged' || kind === 'changed';
}

/** Looks at the node and says what would have to change. Changes nothing. */
export async function observe(session: Session, request: ChangeRequest): Promise<Observation> {
  const { owned, record } = await readHoldings(session);
  return look(session.host, request, owned, drainTerms(session.host, request, record));
}

/** One moment for a whole change: whatever has had its time then has it, and nothing else until the next change. */
export function drainTerms(host: Host, request: ChangeRequest, record?: OwnershipRecord): DrainTerms {
  const { draining: known = [], leftIpvs } = record ?? {};
  return { timeout: request.drainTimeout, now: host.now(), uptime: host.uptime(), known, leftIpvs };
}

/** What is ours by the record, and by the journal of an apply that did not finish. */
export interface Holdings {
  readonly record: OwnershipRecord;
  readonly unfinished: Snapshot | undefined;
  readonly owned: Belongings;
}

/** Reads the record and the journal. Throws a Failure if either is damaged. */
export async function readHoldings({ host, folder }: Session): Promise<Holdings> {
  const record = await readRecord(host, folder);
  const unfinished = await readSnapshot(host, folder.journal);
  const owned = unfinished ? joinBelongings(record.owned, unfinished.touched) : record.owned;
  return { record, unfinished, owned };
}

/** Looks at the node, and says what would have to change. */
export async function look(
  host: Host,
  request: ChangeRequest,
  owned: Belongings,
  terms: DrainTerms,
  grounds?: Grounds,
): Promise<Observation> {
  const again = grounds?.kind === 'earlier' ? grounds : undefined;
  const before = again?.earlier;
  const quick = await beginLook(host, request.settling, grounds);
  const target = await request.target(quick.focus?.bundle());
  const traffic = again?.traffic ?? (await readTraffic(host, servesByRulesAlone(target.state)));
  const scope = {
    ipvs: again ? undefined : (traffic.ipvs ?? null),
    needed: neededOf(target.state, owned),
    families: request.families,
    timeouts: target.state.ipvsTimeouts !== undefined,
    settings: target.settings.map((setting) => setting.path),
  };
  const [found, modules] = await Promise.all([
    quick.read(scope, owned),
    before?.plan.modules.length === 0 ? before.node.modules : readModuleIndex(host, target.modules),
  ]);
  const { reading, focus } = found;
  const rules = before?.rules ?? { ipv4: new Map(), ipv6: new Map() };
  const state = focus ? parseReading(focus.node(reading)) : parseReading(reading, rules);
  const node: NodeState = { state, settings: reading.settings, modules, traffic };
  const { adopt, excluded, clusterIPs } = request;
  const claims: Claims = { owned, adopt, excluded, clusterIPs };
  const wanted = focus === quick.focus ? target : await request.target(focus?.bundle());
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
  const added = inTheWay.map(({ kind, name, adoptable }): Conflict => ({ kind, name, adoptable }));
  return { ...plan, share: { ...plan.share, conflicts: [...conflicts, ...added] } };
}
