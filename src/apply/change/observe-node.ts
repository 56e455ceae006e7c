import { remarkOf, type Remark, type RemarkArguments } from '../../base/findings/node-checks.ts';
import type { Family } from '../../kernel/address.ts';
import type { RuleLinesByFamily } from '../../kernel/iptables/parse-save.ts';
import { formatTables } from '../../kernel/nftables/format.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { isNothingOwned, joinOwned } from '../state/owned-names.ts';
import {
  readBalancerFile,
  recallTables,
  type KnownTables,
  readJournal,
  readRecord,
  type OwnershipRecord,
  type StoredSnapshot,
  type StateFolder,
} from '../state/record.ts';
import type { Failure } from '../state/failure.ts';
import { countNftTransactions, type PlanStep } from '../plan/steps.ts';
import type { Host } from '../node/host.ts';
import { readVariants, type Variants, isLaterBy, readNftGeneration, type NftGeneration } from '../node/tools.ts';
import { readModuleIndex } from '../node/kernel-modules.ts';
import {
  neededOf,
  parseReading,
  readWholeNode,
  textsBut,
  type NodeReading,
  type ReadingPart,
  type ReadingScope,
} from '../node/node-reading.ts';
import { readTraffic, type OpenTraffic } from '../node/open-traffic.ts';
import type { Claims, Conflict } from '../plan/ownership-draft.ts';
import {
  makePlan,
  servesByRulesAlone,
  type DrainTerms,
  type NodeState,
  type Plan,
  type WantedNode,
} from '../plan/plan.ts';
import type { ChangeOrigin } from '../state/history.ts';

export interface Session {
  readonly host: Host;
  readonly folder: StateFolder;
  readonly onEvent: (event: ChangeEvent) => void;
  readonly say: (failure: Failure) => string;
  readonly signal?: AbortSignal | undefined;
  readonly balancerReload?: readonly string[] | undefined;
  /** The operator asserts that no kube-proxy and no tool of a killed apply runs unseen. */
  readonly assumesAlone?: boolean | undefined;
}

export type ChangeEvent =
  | { readonly kind: 'recovering' }
  | { readonly kind: 'reading' }
  | { readonly kind: 'step'; readonly step: PlanStep; readonly number: number; readonly of: number }
  | { readonly kind: 'checking' }
  | { readonly kind: 'awaiting-confirmation'; readonly milliseconds: number }
  /** A tool is taking long. `since`: when the tool started, in milliseconds since 1970. `limit`: milliseconds. */
  | { readonly kind: 'waiting'; readonly command: string; readonly since: number; readonly limit: number }
  | { readonly kind: 'putting-back'; readonly because: Failure }
  | { readonly kind: 'warning'; readonly remark: Remark };

export function remark<Code extends Remark['code']>(code: Code, details: RemarkArguments[Code]): ChangeEvent {
  return { kind: 'warning', remark: remarkOf(code, details) };
}

export interface ChangeRequest {
  readonly origin: ChangeOrigin;
  readonly target: (variants: Variants) => Promise<WantedNode>;
  readonly adopt: boolean;
  readonly excluded: Claims['excluded'];
  readonly clusterIPs?: Claims['clusterIPs'];
  /** Milliseconds until a real server is removed even with connections; undefined waits until they end. */
  readonly drainTimeout: number | undefined;
  /** Milliseconds to wait for a confirmation before the change is rolled back; undefined needs no confirmation. */
  readonly confirmTimeout?: number | undefined;
  /** Throws a Failure if the node must not be changed. `isIdle`: nothing to change or adopt, and no conflicts. `seen`: the node read. */
  readonly prepare?:
    ((plan: Plan, isIdle: boolean, seen: Pick<Observation, 'node' | 'reading'>) => Promise<void>) | undefined;
  readonly refusesLeftovers?: boolean | undefined;
  readonly ownedAfter?: OwnedNames | undefined;
  readonly udpPorts?: OwnershipRecord['udpPorts'];
}

export type ChangeOutcome =
  | { readonly kind: 'unchanged' | 'changed'; readonly plan: Plan }
  | { readonly kind: 'put-back'; readonly plan: Plan; readonly failure: Failure }
  | { readonly kind: 'stuck'; readonly plan: Plan; readonly failure: Failure; readonly left: Plan | undefined };

export function isDone({ kind }: ChangeOutcome): boolean {
  return kind === 'unchanged' || kind === 'changed';
}

export async function observe(session: Session, request: ChangeRequest): Promise<Observation> {
  const { owned, record } = await readOwned(session);
  const observation = await look(session, request, owned, drainTerms(session.host, request, record));
  warnOfOtherVariant(session, observation);
  return observation;
}

export function warnOfOtherVariant({ onEvent }: Session, { unread, plan }: Observation): void {
  const [failure] = unread;
  if (failure) {
    onEvent(remark('rules-unseen', { failure: failure.finding }));
  }
  const { leftovers, conflicts } = plan.ownership;
  const isRefused = (name: string) => conflicts.some((conflict) => conflict.name === name);
  const staying = leftovers.filter((each) => each.isOfOtherVariant && each.isInEffect && !isRefused(each.name));
  if (staying.length > 0) onEvent(remark('rules-left', { objects: staying }));
}

/** Fixes one time for the whole change. A drain whose deadline is before that time ends in this change; others end later. */
export function drainTerms(host: Host, request: ChangeRequest, record?: OwnershipRecord): DrainTerms {
  const { draining: known = [], leftIpvs } = record ?? {};
  return { timeout: request.drainTimeout, now: host.now(), uptime: host.uptime(), known, leftIpvs };
}

export interface OwnedState {
  readonly record: OwnershipRecord;
  readonly unfinished: StoredSnapshot | undefined;
  readonly owned: OwnedNames;
}

/** Reads the record and the journal. Throws a Failure if either is damaged. */
export async function readOwned({ host, folder }: Session): Promise<OwnedState> {
  const record = await readRecord(host, folder);
  const unfinished = await readJournal(host, folder);
  const owned = unfinished ? joinOwned(record.owned, unfinished.touched) : record.owned;
  return { record, unfinished, owned };
}

export interface Observation {
  readonly reading: NodeReading;
  /** Failures to read rules of another mode or iptables variant, if no such rules are wanted or recorded. */
  readonly unread: readonly Failure[];
  /** kube-proxy's nftables tables and their generation; undefined if the tables may have changed during the reading. */
  readonly tables: KnownTables | undefined;
  readonly plan: Plan;
  readonly node: NodeState;
  readonly rules: RuleLinesByFamily;
  readonly traffic: OpenTraffic;
  readonly terms: DrainTerms;
}

export interface ChangeProgress {
  readonly plan: Plan;
  readonly changed: ReadonlySet<ReadingPart>;
  readonly steps: readonly PlanStep[];
  readonly traffic: OpenTraffic;
}

interface Grounds {
  readonly recalls?: boolean | undefined;
  readonly since?: (ChangeProgress & { readonly earlier: Observation }) | undefined;
}

export async function look(
  { host, folder }: Pick<Session, 'host' | 'folder'>,
  request: ChangeRequest,
  owned: OwnedNames,
  terms: DrainTerms,
  { recalls = false, since }: Grounds = {},
): Promise<Observation> {
  const before = since?.earlier;
  const variants = before?.node.variants ?? (await readVariants(host));
  const target = await request.target(variants);
  const traffic = since?.traffic ?? (await readTraffic(host, servesByRulesAlone(target.state)));
  const unread: Failure[] = [];
  const scope: ReadingScope = {
    ipvs: since ? undefined : (traffic.ipvs ?? null),
    needed: neededOf(target.state, owned, variants),
    variants,
    timeouts: target.state.ipvsTimeouts !== undefined,
    settings: target.settings.map((setting) => setting.path),
    onLeftOut: (failure, tool) => {
      // Most nodes lack the tools of other modes, so a missing tool is rarely a problem.
      const isMissed = failure.code !== 'tool-missing' || request.adopt || /-(?:legacy|nft)-save$/.test(tool);
      if (isMissed) unread.push(failure);
    },
  };
  const [{ reading: printed, tables }, balancer, modules] = await Promise.all([
    readAtGeneration(host, scope, { folder: recalls ? folder : undefined, since }),
    readBalancerFile(host, folder),
    before?.plan.modules.length === 0 ? before.node.modules : readModuleIndex(host, target.modules),
  ]);
  const { adopt, excluded, clusterIPs } = request;
  const isOurs = balancer?.isOwned || (adopt && balancer?.isAdoptable);
  const reading: NodeReading = { ...printed, balancer: isOurs ? balancer?.text : undefined };
  const rules = before?.rules ?? { ipv4: new Map(), ipv6: new Map() };
  const state = parseReading(reading, rules);
  const node: NodeState = { state, settings: reading.settings, modules, variants, traffic };
  const othersBalancer = isOurs ? undefined : balancer && { ...balancer, path: folder.balancer };
  const claims: Claims = { owned, variants, adopt, excluded, clusterIPs, othersBalancer };
  const plan = makePlan(node, target, claims, terms);
  return { reading, unread, tables, plan: refuseLeftovers(plan, request, owned), node, rules, traffic, terms };
}

async function readAtGeneration(
  host: Host,
  scope: ReadingScope,
  { folder, since }: Pick<Grounds, 'since'> & { readonly folder: StateFolder | undefined },
): Promise<Pick<Observation, 'reading' | 'tables'>> {
  const unchanged = since && textsBut(since.earlier.reading, since.changed);
  const generation = scope.needed.has('nft ipv4') ? await readNftGeneration(host) : undefined;
  const known =
    generation && (since ? deduceTables(since, generation) : folder && (await recallTables(host, folder, generation)));
  const reading = await readWholeNode(host, scope, { ...unchanged, ...known });
  const isRead = !unchanged || unchanged['nft ipv4'] === undefined;
  if (known || !generation || !isRead) return { reading, tables: known };
  const isOneMoment = isLaterBy(0, generation, await readNftGeneration(host));
  return { reading, tables: isOneMoment ? knownTables(reading, generation) : undefined };
}

function knownTables(reading: NodeReading, generation: NftGeneration): KnownTables {
  return { generation, 'nft ipv4': reading['nft ipv4'], 'nft ipv6': reading['nft ipv6'] };
}

/** Returns the tables after a change, if they were known before and only this change has modified nftables since. */
function deduceTables(
  { earlier, plan, steps }: ChangeProgress & { readonly earlier: Observation },
  generation: NftGeneration,
): KnownTables | undefined {
  const transactions = countNftTransactions(plan, steps);
  if (!earlier.tables || transactions === undefined) return undefined;
  // The plan lacks tables that are not owned, so the result would be incomplete.
  if (earlier.node.state.nftables.length > plan.present.nftables.length) return undefined;
  if (!isLaterBy(transactions, earlier.tables.generation, generation)) return undefined;
  if (transactions === 0) return { ...earlier.tables, generation };
  const textOf = (family: Family) => formatTables(plan.state.nftables.filter((table) => table.family === family));
  return { generation, 'nft ipv4': textOf('ipv4'), 'nft ipv6': textOf('ipv6') };
}

/**
 * Adds a conflict for each object of a former kube-proxy that is still in effect. If kpc-apply already owns objects, only rules in the
 * other iptables variant conflict, because an apply would not change them. `watch` then ignores even these.
 */
function refuseLeftovers(plan: Plan, { refusesLeftovers, origin }: ChangeRequest, owned: OwnedNames): Plan {
  if (!refusesLeftovers) return plan;
  const { conflicts, leftovers } = plan.ownership;
  const isFirst = isNothingOwned(owned);
  const inTheWay = leftovers.filter(
    ({ isInEffect, isOfOtherVariant }) => isInEffect && (isFirst || (isOfOtherVariant && origin.kind !== 'watch')),
  );
  const added = inTheWay.map(({ kind, name, adoptable }): Conflict => ({ kind, name, adoptable }));
  return { ...plan, ownership: { ...plan.ownership, conflicts: [...conflicts, ...added] } };
}
