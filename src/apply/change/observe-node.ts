import type { Family } from '../../kernel/family.ts';
import type { RuleLinesByFamily } from '../../kernel/iptables/parse-save.ts';
import { formatTables } from '../../kernel/nftables/format.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { isNothingOwned, joinOwned } from '../state/owned-names.ts';
import { readBalancerFile, recallTables, type KnownTables } from '../state/state-files.ts';
import type { Failure } from '../state/failure.ts';
import { readJournal, readRecord, type OwnershipRecord, type Snapshot, type StateFolder } from '../state/record.ts';
import { countNftTransactions, type Step } from '../plan/steps.ts';
import type { Host } from '../node/host.ts';
import { readVariants, type Variants } from '../node/tools.ts';
import { readModuleIndex } from '../node/kernel-modules.ts';
import {
  neededOf,
  parseReading,
  readNode,
  textsBut,
  type NodeReading,
  type ReadingPart,
  type ReadingScope,
} from '../node/node-reading.ts';
import { isLaterBy, readNftGeneration, type NftGeneration } from '../node/nft-generation.ts';
import { readTraffic, type OpenTraffic } from '../node/open-traffic.ts';
import { describeConflict, type Claims, type Conflict } from '../plan/ownership-draft.ts';
import { nameSome } from '../../base/printable.ts';
import {
  makePlan,
  servesByRulesAlone,
  type DrainTerms,
  type NodeState,
  type Plan,
  type WantedNode,
} from '../plan/plan.ts';
import type { ChangeOrigin } from '../state/history.ts';

/** The node, the files that kpc-apply keeps about it, and who hears of the progress. */
export interface Session {
  readonly host: Host;
  readonly folder: StateFolder;
  readonly onEvent: (event: ChangeEvent) => void;
  /** Aborted when the operator asks to stop: what has been changed is then put back. */
  readonly signal?: AbortSignal | undefined;
  /** The command that has the balancer read its configuration: the program and its words. */
  readonly balancerReload?: readonly string[] | undefined;
  /** Whether the operator knows that no kube-proxy, and no tool of a killed apply, runs where kpc-apply cannot see it. */
  readonly assumesAlone?: boolean | undefined;
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
  /** Made anew for each look at the node, since some of it depends on what the node is like. */
  readonly target: (variants: Variants) => Promise<WantedNode>;
  readonly adopt: boolean;
  readonly excluded: Claims['excluded'];
  readonly clusterIPs?: Claims['clusterIPs'];
  /** Milliseconds until a real server is removed even if it has connections; undefined waits until they end. */
  readonly drainTimeout: number | undefined;
  /** Milliseconds to wait for a confirmation, before everything is put back; undefined does not ask. */
  readonly confirmTimeout?: number | undefined;
  /**
   * Throws a Failure if the node is not fit to be changed. `isIdle`: there is nothing to change, and nothing is in the
   * way. `node` is the node that the plan is based on, and `reading` what its tools printed.
   */
  readonly prepare?:
    ((plan: Plan, isIdle: boolean, seen: Pick<Observation, 'node' | 'reading'>) => Promise<void>) | undefined;
  /** Whether rules that a kube-proxy left, and that still serve, are in the way of the first apply. */
  readonly refusesLeftovers?: boolean | undefined;
  /** What will be owned, if that is not simply what the target has. */
  readonly ownedAfter?: OwnedNames | undefined;
  /** The Service ports of UDP afterwards, for the record. */
  readonly udpPorts?: OwnershipRecord['udpPorts'];
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

/** Plans a change without making it. */
export async function observe(session: Session, request: ChangeRequest): Promise<Observation> {
  const { owned, record } = await readOwned(session);
  const observation = await look(session, request, owned, drainTerms(session.host, request, record));
  warnOfOtherVariant(session, observation);
  return observation;
}

/** Warns of rules of the other variant of iptables that stay, or may be there. */
export function warnOfOtherVariant({ onEvent }: Session, { unread, plan }: Observation): void {
  const [failure] = unread;
  if (failure) {
    const { code, tool, message } = failure;
    const why = code === 'tool-missing' ? `${tool} is missing` : message.split('\n', 1).join();
    const text = `${why}: it is unknown whether a kube-proxy left rules that it would show, which take connections too`;
    onEvent({ kind: 'warning', text });
  }
  const { leftovers, conflicts } = plan.ownership;
  const isRefused = (name: string) => conflicts.some((conflict) => conflict.name === name);
  const staying = leftovers.filter((each) => each.isOfOtherVariant && each.isInEffect && !isRefused(each.name));
  if (staying.length === 0) return;
  const names = nameSome(staying.map(describeConflict));
  onEvent({ kind: 'warning', text: `these still take connections: ${names}; apply --adopt takes them over` });
}

/** The clock of a whole change: a drain whose time is over by now ends, and no other does until the next change. */
export function drainTerms(host: Host, request: ChangeRequest, record?: OwnershipRecord): DrainTerms {
  const { draining: known = [], leftIpvs } = record ?? {};
  return { timeout: request.drainTimeout, now: host.now(), uptime: host.uptime(), known, leftIpvs };
}

/** What kpc-apply made, by the record and by the journal of an apply that did not finish. */
export interface OwnedState {
  readonly record: OwnershipRecord;
  readonly unfinished: Snapshot | undefined;
  readonly owned: OwnedNames;
}

/** Reads the record and the journal. Throws a Failure if either is damaged. */
export async function readOwned({ host, folder }: Session): Promise<OwnedState> {
  const record = await readRecord(host, folder);
  const unfinished = await readJournal(host, folder);
  const owned = unfinished ? joinOwned(record.owned, unfinished.touched) : record.owned;
  return { record, unfinished, owned };
}

/** A look at a node, and what would have to change. */
export interface Observation {
  readonly reading: NodeReading;
  /** Why rules could not be read in which nothing is wanted or recorded: of another mode, or another variant of iptables. */
  readonly unread: readonly Failure[];
  /** kube-proxy's tables of nftables at one generation of the rules; undefined if that is not certain. */
  readonly tables: KnownTables | undefined;
  readonly plan: Plan;
  readonly node: NodeState;
  readonly rules: RuleLinesByFamily;
  /** The connections and clock that the plan is based on. */
  readonly traffic: OpenTraffic;
  readonly terms: DrainTerms;
}

/** What was done to a node since an earlier look. That look still holds for all other parts. */
export interface Progress {
  /** All that was done, as one plan. */
  readonly plan: Plan;
  readonly changed: ReadonlySet<ReadingPart>;
  readonly steps: readonly Step[];
  /** The connections that the change was based on. */
  readonly traffic: OpenTraffic;
}

/** What a look may rely on, so that it need not read everything. */
interface Grounds {
  /** Whether the tables of nftables may be as the state folder knows them. */
  readonly recalls?: boolean | undefined;
  readonly since?: (Progress & { readonly earlier: Observation }) | undefined;
}

/** Looks at the node, and says what would have to change. */
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
      // Most nodes have only the tools of their own mode.
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

/** Reads the node. The tables of nftables are listed only where the generation of the rules does not tell what they are. */
async function readAtGeneration(
  host: Host,
  scope: ReadingScope,
  { folder, since }: Pick<Grounds, 'since'> & { readonly folder: StateFolder | undefined },
): Promise<Pick<Observation, 'reading' | 'tables'>> {
  const unchanged = since && textsBut(since.earlier.reading, since.changed);
  const generation = scope.needed.has('nft ipv4') ? await readNftGeneration(host) : undefined;
  const known =
    generation && (since ? deduceTables(since, generation) : folder && (await recallTables(host, folder, generation)));
  const reading = await readNode(host, scope, { ...unchanged, ...known });
  const isRead = !unchanged || unchanged['nft ipv4'] === undefined;
  if (known || !generation || !isRead) return { reading, tables: known };
  const isOneMoment = isLaterBy(0, generation, await readNftGeneration(host));
  return { reading, tables: isOneMoment ? tablesOf(reading, generation) : undefined };
}

function tablesOf(reading: NodeReading, generation: NftGeneration): KnownTables {
  return { generation, 'nft ipv4': reading['nft ipv4'], 'nft ipv6': reading['nft ipv6'] };
}

/**
 * The tables after a change, if the rules are known from before it and no program has made a transaction since but kpc-apply
 * those of this change.
 */
function deduceTables(
  { earlier, plan, steps }: Progress & { readonly earlier: Observation },
  generation: NftGeneration,
): KnownTables | undefined {
  const transactions = countNftTransactions(plan, steps);
  if (!earlier.tables || transactions === undefined) return undefined;
  // A table that is not owned is in no plan.
  if (earlier.node.state.nftables.length > plan.present.nftables.length) return undefined;
  if (!isLaterBy(transactions, earlier.tables.generation, generation)) return undefined;
  if (transactions === 0) return { ...earlier.tables, generation };
  const textOf = (family: Family) => formatTables(plan.state.nftables.filter((table) => table.family === family));
  return { generation, 'nft ipv4': textOf('ipv4'), 'nft ipv6': textOf('ipv6') };
}

/**
 * The plan, with the rules of a kube-proxy that packets still meet in the way. Once there is a record, what a kube-proxy wrote
 * since must not keep a watch from its repairs; nor an apply, except where it takes connections without being changed itself.
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
